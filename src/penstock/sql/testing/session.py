"""A server of SQL in memory: topics are lists, queries run in Streams' test driver.

Every record goes through all queries before the next statement, so what a script sees does not
depend on timing. INSERT writes, ASSERT VALUES reads the next record of a topic and compares it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.sql.analysis.creating import columns_of_elements
from penstock.sql.analysis.inserting import RowValues, analyse_insert_row, row_values
from penstock.sql.analysis.persistent import QueryInto
from penstock.sql.analysis.properties import GivenProperties
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import (
    ROWTIME,
    SYSTEM_COLUMNS,
    WINDOWEND,
    WINDOWSTART,
    Relation,
)
from penstock.sql.commands.applying import COMMANDS, Commands
from penstock.sql.formats.serdes import TopicSerdes, topic_serdes
from penstock.sql.functions.table import FunctionTable
from penstock.sql.language.statements import (
    AssertRow,
    AssertSource,
    InsertRow,
    Statement,
)
from penstock.sql.planning.planner import Planner
from penstock.sql.testing.memory_schemas import MemorySchemas
from penstock.sql.types.text import plain_text
from penstock.streams import Serde, SerdeError, StreamRecord, TestDriver, Windowed

_UNITS_APART = 1e-9


class AssertionFailed(ValueError):
    """A record, stream or table is not what the script says."""


@dataclass(slots=True)
class _Topic:
    """The records of a topic, as bytes, and how many ASSERTs have read."""

    records: list[StreamRecord] = field(default_factory=list)
    read: int = 0
    is_asserted: bool = False


@dataclass(slots=True)
class TestSession:
    """What a script has made so far."""

    __test__ = False  # pytest takes classes by this name for tests.

    functions: FunctionTable
    catalog: Catalog = field(default_factory=Catalog)
    schemas: MemorySchemas = field(default_factory=MemorySchemas)
    log: list[str] = field(default_factory=list)  # The processing log.
    _topics: dict[str, _Topic] = field(default_factory=dict)
    _drivers: dict[str, TestDriver] = field(default_factory=dict)
    _waiting: deque[tuple[str, StreamRecord]] = field(default_factory=deque)

    def run(self, statement: Statement) -> None:
        """Carry a statement out; StatementRefused or AssertionFailed says why it cannot be."""
        match statement:
            case InsertRow():
                self._insert(analyse_insert_row(statement, self.catalog, self.functions))
            case AssertRow():
                self._assert_row(statement)
            case AssertSource():
                self._assert_source(statement)
            case _ if isinstance(statement, COMMANDS):
                self._command(statement)
            case _:
                name = type(statement).__name__
                raise StatementRefused(
                    f"A test script has no place for {name}.", place=statement.at
                )

    def finish(self) -> None:
        """All records of topics that were looked at have been looked at."""
        for name, topic in self._topics.items():
            left = len(topic.records) - topic.read
            if topic.is_asserted and left:
                raise AssertionFailed(f"the topic {name} has {left} more: {self._shown(name)}")

    def write(self, topic: str, key: bytes | None, value: bytes | None, time_ms: int) -> None:
        """A record as it lies in a topic; it goes through all queries."""
        self._waiting.append((topic, StreamRecord(key=key, value=value, timestamp_ms=time_ms)))
        self._drain()

    def _command(self, statement: Any) -> None:
        commands = Commands(self.functions, self.schemas)
        outcome = commands.apply(self.catalog, statement)
        started = None if outcome.started is None else self._driver(outcome.started)
        self.catalog = outcome.catalog
        for ended in outcome.ended:
            self._drivers.pop(ended, None)
        if started is not None and outcome.started is not None:
            self._drivers[outcome.started.note.id] = started

    def _driver(self, query: QueryInto) -> TestDriver:
        planner = Planner.of(self.catalog, self.functions, self.schemas, self.log.append)
        return TestDriver(planner.plan(query), as_bytes=True)

    def _insert(self, row: RowValues) -> None:
        serdes = self._serdes(row.relation)
        value = {c.name: row.values.get(c.name) for c in row.relation.columns.values}
        key = _bytes(serdes.key, row.key)
        self.write(row.relation.topic, key, _bytes(serdes.value, value), row.time_ms or 0)

    def _serdes(self, relation: Relation) -> TopicSerdes:
        return topic_serdes(relation, self.schemas)

    def _drain(self) -> None:
        while self._waiting:
            name, record = self._waiting.popleft()
            self._topics.setdefault(name, _Topic()).records.append(record)
            for driver in self._drivers.values():
                self._pipe(driver, name, record)

    def _pipe(self, driver: TestDriver, name: str, record: StreamRecord) -> None:
        if not any(name in node.topics for node in driver.topology.sources):
            return
        try:
            driver.pipe_input(name, record.key, record.value, record.timestamp_ms, record.headers)
        except SerdeError as error:
            self.log.append(f"A record of {name} cannot be read: {error}")
        sinks = [t for node in driver.topology.nodes if node.kind == "sink" for t in node.topics]
        for sink in sinks:
            if sink not in driver.topology.internal_topics:
                self._waiting.extend((sink, made) for made in driver.read_all(sink))

    def _assert_row(self, statement: AssertRow) -> None:
        relation = self.catalog.relation(statement.target, statement.at)
        topic = self._topics.setdefault(relation.topic, _Topic())
        topic.is_asserted = True
        wanted = _wanted(statement, relation, self.catalog, self.functions)
        if topic.read >= len(topic.records):
            raise AssertionFailed(f"{statement}: the topic {relation.topic} has no further record")
        record = topic.records[topic.read]
        topic.read += 1
        found = _row_of(record, relation, self._serdes(relation))
        if (found is None) != statement.is_tombstone and record.value is None:
            raise AssertionFailed(f"{statement}: a tombstone came, {_key_shown(record)}")
        if statement.is_tombstone and record.value is not None:
            raise AssertionFailed(f"{statement}: a record came and no tombstone: {_listed(found)}")
        keyed = _keys_of(record, relation, self._serdes(relation)) if found is None else found
        for name, value in wanted.items():
            if not _is_same(keyed.get(name), value):
                raise AssertionFailed(
                    f"{statement}: {name} is {_text(keyed.get(name))} and not {_text(value)} in "
                    f"{_listed(keyed)}"
                )

    def _assert_source(self, statement: AssertSource) -> None:
        wanted = statement.source
        relation = self.catalog.relation(wanted.name, statement.at)
        columns = columns_of_elements(wanted, self.catalog)
        if relation.kind != wanted.kind:
            raise AssertionFailed(f"{wanted.name} is a {relation.kind}, not a {wanted.kind}")
        if wanted.columns and columns != relation.columns:
            raise AssertionFailed(f"{wanted.name} has the columns {relation.columns}")
        for name, value in GivenProperties.of_source(wanted.properties).values.items():
            found = _property(relation, name)
            if found != value:
                raise AssertionFailed(f"{wanted.name} has {name} {found!r} and not {value!r}")

    def _shown(self, name: str) -> str:
        topic = self._topics[name]
        relation = next((r for r in self.catalog.relations.values() if r.topic == name), None)
        if relation is None:
            return str(topic.records[topic.read])
        serdes = self._serdes(relation)
        record = topic.records[topic.read]
        row = _row_of(record, relation, serdes)
        return _listed(_keys_of(record, relation, serdes) if row is None else row)


def _property(relation: Relation, name: str) -> Any:
    known: dict[str, Callable[[], Any]] = {
        "KAFKA_TOPIC": lambda: relation.topic,
        "KEY_FORMAT": lambda: relation.key_format.name,
        "VALUE_FORMAT": lambda: relation.value_format.name,
        "FORMAT": lambda: relation.value_format.name,
        "TIMESTAMP": lambda: relation.time and relation.time.name,
        "TIMESTAMP_FORMAT": lambda: relation.time and relation.time.format,
        "WRAP_SINGLE_VALUE": lambda: relation.value_format.is_wrapped,
        "PARTITIONS": lambda: relation.partitions,
        "WINDOW_TYPE": lambda: relation.key_window and relation.key_window.kind,
    }
    if name not in known:
        raise StatementRefused(f"ASSERT does not look at {name}.")
    return known[name]()


def _bytes(serde: Serde[Any], value: Any) -> bytes | None:
    try:
        return serde.serialize(value)
    except SerdeError as error:
        raise StatementRefused(str(error)) from None


def _wanted(
    statement: AssertRow, relation: Relation, catalog: Catalog, functions: FunctionTable
) -> dict[str, Any]:
    """The values that are asserted; ROWTIME and the bounds of a window may be among them."""
    names = statement.columns or tuple(
        c.name
        for c in (relation.columns.keys if statement.is_tombstone else relation.columns.all)
        if c.role in ("KEY", "VALUE")
    )
    if len(names) != len(statement.values):
        raise StatementRefused(f"{statement}: {len(names)} columns and {len(statement.values)} "
                               "values", place=statement.at)  # fmt: skip
    pairs = list(zip(names, statement.values, strict=True))
    plain = [(name, value) for name, value in pairs if name not in SYSTEM_COLUMNS]
    made: dict[str, Any] = {}
    if plain:
        columns, values = zip(*plain, strict=True)
        rest = AssertRow(target=statement.target, columns=columns, values=values)
        made = row_values(rest, relation, catalog, functions).values
    system = {name: value for name, value in pairs if name in SYSTEM_COLUMNS}
    return {**made, **{name: getattr(value, "value", None) for name, value in system.items()}}


def _keys_of(record: StreamRecord, relation: Relation, serdes: TopicSerdes) -> dict[str, Any]:
    row: dict[str, Any] = {ROWTIME: record.timestamp_ms}
    key = serdes.key.deserialize(record.key)
    if isinstance(key, Windowed):
        row |= {WINDOWSTART: key.window.start_ms, WINDOWEND: key.window.end_ms}
        key = key.key
    names = [column.name for column in relation.columns.keys]
    return row | (dict.fromkeys(names) if key is None else dict(zip(names, key, strict=True)))


def _row_of(record: StreamRecord, relation: Relation, serdes: TopicSerdes) -> dict[str, Any] | None:
    try:
        value = serdes.value.deserialize(record.value)
        keys = _keys_of(record, relation, serdes)
    except SerdeError as error:
        raise AssertionFailed(f"a record of {relation.topic} cannot be read: {error}") from None
    return None if value is None else {**keys, **value}


def _is_same(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) and isinstance(wanted, float):
        if found != found or wanted != wanted:
            return found != found and wanted != wanted  # NaN is NaN, here.
        return found == wanted or abs(found - wanted) <= _UNITS_APART * max(abs(found), abs(wanted))
    return bool(found == wanted) and (found is None) == (wanted is None)


def _key_shown(record: StreamRecord) -> str:
    return f"with the key {record.key!r}"


def _listed(row: dict[str, Any] | None) -> str:
    return "nothing" if row is None else ", ".join(f"{n} = {_text(v)}" for n, v in row.items())


def _text(value: Any) -> str:
    if isinstance(value, list | dict | bytes):
        return repr(value)
    return "NULL" if value is None else plain_text(value)
