"""Schemas out of the registry, ready to encode and decode with, each asked for once.

Whoever sends looks at what is `known` first, which never waits; `find` and `codec` ask the registry
where they must, and are for a thread. What is remembered is bounded, since the texts of schemas
come from outside.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from penstock.rest.payloads.record_names import name_in_text, name_of
from penstock.rest.payloads.schema_choice import SchemaChoice
from penstock.schemas.documents.codec import DocumentCodec, document_codec
from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.registry_client import NewSchema
from penstock.schemas.serializers.chosen_schema import READING, WRITING, refuse_rules

T = TypeVar("T")

CHOICES_MAX = 1_000
IDS_MAX = 1_000
LATEST_S = 1.0  # How long the latest schema of a subject is taken for the latest.


class RegisteredAt(NamedTuple):
    """A place that a schema has in the registry."""

    schema_id: int
    subject: str
    version: int | None  # None: the schema was named by its id.


class SchemaRegistry(Protocol):
    """What is asked of a registry; every call may wait."""

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema of an id; raises UnknownSchema."""

    def at_version(self, subject: str, version: int | None) -> RegisteredAt:
        """A version of a subject, or (None) the latest."""

    def register(self, subject: str, schema: NewSchema) -> RegisteredAt:
        """The place of a schema in a subject, a new one if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSchema:
    """A schema that a request meant, at hand."""

    codec: DocumentCodec
    kind: SchemaKind
    subject: str
    version: int | None


class SchemaFinder:
    """Finds schemas and remembers them. Safe for threads."""

    def __init__(
        self, registry: SchemaRegistry, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._choices: _Recent[tuple[float, FoundSchema]] = _Recent(CHOICES_MAX)
        self._by_id: _Recent[_ById] = _Recent(IDS_MAX)

    def known(self, choice: SchemaChoice) -> FoundSchema | None:
        """The schema if it is at hand; None: `find` has to ask for it."""
        kept = self._choices.get(_key(choice))
        if kept is None or kept[0] < self._clock():
            return None
        return kept[1]

    def find(self, choice: SchemaChoice) -> FoundSchema:
        """The schema that a request means; raises SchemaError, or what the registry raises."""
        known = self.known(choice)
        if known is not None:
            return known
        found = self._ask(choice)
        until_s = self._clock() + LATEST_S if choice.is_latest else float("inf")
        self._choices.put(_key(choice), (until_s, found))
        return found

    def codec(self, schema_id: int) -> DocumentCodec:
        """The schema that a record's header names."""
        known = self._known_by_id(schema_id)
        refuse_rules(known.stored, READING)
        return known.codec

    def _known_by_id(self, schema_id: int) -> "_ById":
        known = self._by_id.get(schema_id)
        if known is None:
            stored = self._registry.by_id(schema_id)
            known = _ById(document_codec(stored), stored, name_of(stored))
            self._by_id.put(schema_id, known)
        return known

    def _ask(self, choice: SchemaChoice) -> FoundSchema:
        place = self._place(choice)
        known = self._known_by_id(place.schema_id)
        kind = refuse_rules(known.stored, WRITING).kind
        if choice.kind is not None and kind is not choice.kind:
            raise SchemaError(
                f"schema {place.schema_id} is {kind}, but {choice.kind} is what was sent"
            )
        return FoundSchema(
            codec=known.codec, kind=kind, subject=place.subject, version=place.version
        )

    def _place(self, choice: SchemaChoice) -> RegisteredAt:
        if choice.schema_id is not None:
            subject = choice.subject_of(self._known_by_id(choice.schema_id).record)
            return RegisteredAt(choice.schema_id, subject, None)
        if choice.text is None:
            return self._registry.at_version(choice.subject_of(None), choice.version)
        assert choice.kind is not None
        subject = choice.subject_of(name_in_text(choice.kind, choice.text))
        new = NewSchema(kind=choice.kind, text=choice.text, references=choice.references)
        return self._registry.register(subject, new)


class _ById(NamedTuple):
    """What is known of an id."""

    codec: DocumentCodec
    stored: StoredSchema
    record: str | None  # The name of the outermost type.


def _key(choice: SchemaChoice) -> Hashable:
    """A choice without its text, which may be large."""
    if choice.text is None:
        return choice
    return replace(choice, text=sha256(choice.text.encode(errors="surrogatepass")).hexdigest())


class _Recent(Generic[T]):
    """Those that were used last."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._kept: OrderedDict[Any, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def put(self, key: Hashable, value: T) -> None:
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            if len(self._kept) > self._size_max:
                self._kept.popitem(last=False)
