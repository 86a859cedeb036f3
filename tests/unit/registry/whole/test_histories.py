"""Random histories: replay and compaction give the same state, and a small model agrees."""

import copy
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.registry.deleting import delete_subject, delete_version
from penstock.registry.errors import RegistryError
from penstock.registry.registering import SchemaRequest, register
from penstock.registry.settings import change_config, change_mode
from penstock.registry.state import RegistryState
from penstock.schemas.definitions.avro import AvroDefinition

SUBJECTS = ["a", "b", ":.c:a", ":.c:b"]
TEXTS = ['"int"', '"long"', '"string"', '{"type":"array","items":"int"}']
Log = list[tuple[bytes, bytes | None]]


def parse(_kind: object, text: str, references: Any) -> AvroDefinition:
    return AvroDefinition.parse(text, references)


def replayed(log: Iterable[tuple[bytes, bytes | None]]) -> RegistryState:
    state = RegistryState()
    for key, value in log:
        state.apply(key, value)
    return state


def compacted(log: Log) -> Log:
    last = {key: at for at, (key, _) in enumerate(log)}
    return [entry for at, entry in enumerate(log) if last[entry[0]] == at]


@dataclass
class Model:
    """Versions by subject as (id, text, deleted), and all ids ever given, by context."""

    versions: dict[str, dict[int, tuple[int, str, bool]]] = field(default_factory=dict)
    given: dict[str, list[str]] = field(default_factory=dict)  # The text of id n is at n - 1.

    def register(self, subject: str, text: str) -> tuple[int, int]:
        mine = self.versions.setdefault(subject, {})
        for version in sorted(mine, reverse=True):
            schema_id, held, deleted = mine[version]
            if held == text and not deleted:
                return schema_id, version
        context = ".c" if subject.startswith(":.c:") else "."
        given = self.given.setdefault(context, [])
        alive = {
            one[0]
            for name, held in self.versions.items()
            if name.startswith(":.c:") == (context == ".c")
            for one in held.values()
            if one[1] == text
        }
        if not alive:
            given.append(text)
        schema_id = min(alive, default=len(given))
        version = max(mine, default=0) + 1
        mine[version] = (schema_id, text, False)
        return schema_id, version

    def delete(self, subject: str, permanent: bool) -> tuple[int, ...] | None:
        mine = self.versions.get(subject, {})
        alive = [version for version in sorted(mine) if not mine[version][2]]
        if not mine or bool(alive) == permanent:
            return None
        gone = sorted(mine) if permanent else alive
        for version in gone:
            self._take(subject, version, permanent)
        return tuple(gone)

    def delete_version(self, subject: str, version: int, permanent: bool) -> tuple[int, ...] | None:
        mine = self.versions.get(subject, {})
        if version not in mine or mine[version][2] != permanent:
            return None
        self._take(subject, version, permanent)
        return (version,)

    def _take(self, subject: str, version: int, permanent: bool) -> None:
        schema_id, text, _ = self.versions[subject][version]
        if permanent:
            del self.versions[subject][version]
        else:
            self.versions[subject][version] = (schema_id, text, True)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), st.sampled_from(SUBJECTS), st.sampled_from(TEXTS)),
        st.tuples(st.just("delete"), st.sampled_from(SUBJECTS), st.booleans()),
        st.tuples(
            st.just("version"),
            st.sampled_from(SUBJECTS),
            st.tuples(st.integers(1, 4), st.booleans()),
        ),
        st.tuples(st.just("config"), st.sampled_from(SUBJECTS), st.just("FULL")),
        st.tuples(st.just("mode"), st.sampled_from(SUBJECTS), st.just("READWRITE")),
    ),
    max_size=40,
)


def attempted(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except RegistryError:
        return None


@settings(max_examples=150, deadline=None)
@given(STEPS, st.data())
def test_a_history_agrees_with_the_model_and_survives_replay(
    steps: list[Any], data: st.DataObject
) -> None:
    state, model, log = RegistryState(), Model(), Log()
    named: dict[str, set[int]] = {}
    state.apply(b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"NONE"}')
    log.append((b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"NONE"}'))
    for kind, subject, detail in steps:
        if kind == "register":
            request = SchemaRequest.of({"schema": detail})
            done: Any = attempted(lambda: register(state, subject, request, parse))  # noqa: B023
            if done is None:  # A config step may have asked for more than this schema can do.
                continue
            assert (done.version.schema_id, done.version.version) == model.register(subject, detail)
            named.setdefault(subject[:3], set()).add(done.version.schema_id)
        elif kind == "delete":
            done = attempted(lambda: delete_subject(state, subject, permanent=detail))  # noqa: B023
            assert (done and done.versions) == model.delete(subject, detail)
        elif kind == "version":
            done = attempted(
                lambda: delete_version(state, subject, str(detail[0]), permanent=detail[1])  # noqa: B023
            )
            assert (done and done.versions) == model.delete_version(subject, *detail)
        elif kind == "config":
            done = change_config(state, subject, {"compatibility": detail})
        else:
            done = change_mode(state, subject, detail)
        for record in done.records if done else ():
            log.append((record.key, record.value))
            state.apply(record.key, record.value)
    assert replayed(log) == state
    assert replayed(compacted(log)) == state
    cut = data.draw(st.integers(0, len(log)))
    assert replayed([*compacted(log[:cut]), *log[cut:]]) == state
    prefix = replayed(log[:cut])
    rest = copy.deepcopy(prefix)
    for key, value in log[cut:]:
        rest.apply(key, value)
    assert rest == state


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(SUBJECTS[:2]), st.integers(0, 30)), max_size=40))
def test_no_id_ever_names_two_schemas(steps: list[tuple[str, int]]) -> None:
    """Deleting for good and restarting from a compacted topic after every step does not matter."""
    log: Log = [
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"NONE"}')
    ]
    texts: dict[int, str] = {}
    for subject, symbol in steps:
        state = replayed(compacted(log))
        text = json.dumps({"type": "enum", "name": "E", "symbols": [f"S{symbol}"]})
        made = register(state, subject, SchemaRequest.of({"schema": text}), parse)
        held = texts.setdefault(made.version.schema_id, made.version.content.text)
        assert held == made.version.content.text
        log += [(record.key, record.value) for record in made.records]
        if symbol % 3 == 0:
            for permanent in (False, True):
                gone = delete_subject(replayed(compacted(log)), subject, permanent=permanent)
                log += [(record.key, record.value) for record in gone.records]
