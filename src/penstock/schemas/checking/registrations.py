"""Which schema ids may stand in which topic, as far as the registry was asked.

A schema never changes under its id, so a good answer stays good; a bad one is believed for some
seconds, because a schema may be registered a moment after its first record came. However many
batches bring the same unknown id, the registry is asked once. Asking blocks, so it is done in a
few threads of our own, and never on the event loop.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from penstock.records.schema_check import SchemasAway, SchemaScope
from penstock.records.schema_ids import NULL
from penstock.schemas.checking.record_names import record_names
from penstock.schemas.errors import FormatError
from penstock.schemas.lookup import StoredSchema
from penstock.schemas.registry_client import RegistryUnreachable
from penstock.schemas.subject_names import find_strategy, topic_name

REFUSED_S: Final = 5.0
AWAY_S: Final = 1.0  # So long nobody waits for a registry that has just not answered.
IDS_MAX: Final = 10_000  # Of each kind remembered; a stranger can name any number of them.
ASKED_MAX: Final = 64  # Ids of one batch that the registry is asked about.
_THREADS: Final = 2


class RegistryQuestions(Protocol):
    """What is asked of a registry, by calls that block."""

    def subjects_of(self, schema_id: int) -> Collection[str] | None:
        """The subjects that have the schema; None: nobody knows the id."""

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What the registry says about an id."""

    subjects: frozenset[str]
    record_names: frozenset[str]  # Empty where the subject is named after the topic alone.


class Registrations:
    """Answers from memory, or asks; only its event loop touches it."""

    def __init__(
        self, registry: RegistryQuestions, *, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._registry = registry
        self._now_s = now_s
        self._good: dict[SchemaScope, set[int]] = {}
        self._refused: dict[tuple[SchemaScope, int], tuple[str, float]] = {}  # Until when.
        self._asking: dict[tuple[int, bool], asyncio.Future[_Known | None]] = {}
        self._away: tuple[str, float] | None = None
        self._threads = ThreadPoolExecutor(_THREADS, "schema-registry")

    def good_ids(self, scope: SchemaScope) -> Set[int]:
        """The ids known to be registered for the scope; NULL is one of them."""
        found = self._good.get(scope)
        if found is None:
            found = self._good[scope] = {NULL}
        return found

    async def refusals(self, ids: Collection[int], scope: SchemaScope) -> dict[int, str]:
        """Of these ids those that may not stand there, and why; raises SchemasAway."""
        refused: dict[int, str] = {}
        asked = 0
        for schema_id in sorted(ids):
            if schema_id in self.good_ids(scope):
                continue
            reason = self._remembered(scope, schema_id)
            if reason is None and asked == ASKED_MAX:
                reason = f"the batch names more than {ASKED_MAX} schema ids that are not known yet"
            elif reason is None:
                asked += 1
                reason = await self._judge(schema_id, scope)
            if reason:
                refused[schema_id] = reason
        return refused

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _remembered(self, scope: SchemaScope, schema_id: int) -> str | None:
        found = self._refused.get((scope, schema_id))
        return found[0] if found is not None and self._now_s() < found[1] else None

    async def _judge(self, schema_id: int, scope: SchemaScope) -> str:
        """Why the id may not stand there; empty: it may."""
        needs_names = find_strategy(scope.strategy) is not topic_name
        reason = _refusal(schema_id, scope, await self._known(schema_id, needs_names))
        if reason:
            if len(self._refused) >= IDS_MAX:
                self._refused.clear()
            self._refused[scope, schema_id] = reason, self._now_s() + REFUSED_S
        else:
            good = self._good[scope]
            if len(good) >= IDS_MAX:
                self._good[scope] = good = {NULL}
            good.add(schema_id)
        return reason

    async def _known(self, schema_id: int, needs_names: bool) -> _Known | None:
        if self._away is not None and self._now_s() < self._away[1]:
            raise SchemasAway(self._away[0])
        key = schema_id, needs_names
        asking = self._asking.get(key)
        if asking is None:
            loop = asyncio.get_running_loop()
            asking = loop.run_in_executor(self._threads, self._ask, schema_id, needs_names)
            self._asking[key] = asking
            asking.add_done_callback(partial(self._note_answer, key))
        try:
            return await asyncio.shield(asking)
        except RegistryUnreachable as error:
            self._away = str(error), self._now_s() + AWAY_S
            raise SchemasAway(str(error)) from error

    def _note_answer(self, key: tuple[int, bool], asking: "asyncio.Future[_Known | None]") -> None:
        self._asking.pop(key, None)
        if not asking.cancelled():
            asking.exception()  # Whoever asked may be gone by now.

    def _ask(self, schema_id: int, needs_names: bool) -> _Known | None:
        """In a thread."""
        subjects = self._registry.subjects_of(schema_id)
        if subjects is None:
            return None
        names: frozenset[str] = frozenset()
        if needs_names:
            with suppress(FormatError, ValueError):  # One that cannot be read has no names.
                names = record_names(self._registry.by_id(schema_id))
        return _Known(subjects=frozenset(subjects), record_names=names)


def _refusal(schema_id: int, scope: SchemaScope, known: _Known | None) -> str:
    """Why the id may not stand there; empty: it may."""
    if known is None:
        return f"the {scope.side} has schema id {schema_id}, which the registry does not know"
    strategy = find_strategy(scope.strategy)
    names = [None] if strategy is topic_name else sorted(known.record_names)
    wanted = [strategy(scope.topic, scope.is_key, name) for name in names]
    if known.subjects.intersection(wanted):
        return ""
    under = " or ".join(wanted) or "any subject that its record could be named after"
    return (
        f"the {scope.side} has schema id {schema_id}, which is not registered under the subject "
        f"{under}"
    )
