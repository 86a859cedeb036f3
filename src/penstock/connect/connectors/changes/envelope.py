"""Debezium's envelope: a change with the row before and after it, and where it was found.

Schemas are made once for each shape of a table. A connector brings the columns, each with the
function that reads its values, and the schema of its `source` block.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.records import SourceRecord
from penstock.connect.values.schema import (
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaType,
    struct_schema,
)
from penstock.connect.values.struct import StructValue

ENVELOPE_VERSION = 2
SNAPSHOT_SCHEMA = Schema(
    type=SchemaType.STRING,
    optional=True,
    name="io.debezium.data.Enum",
    version=1,
    parameters={"allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false"
                           ",incremental"},
    default="false",
)  # fmt: skip
_TRANSACTION = struct_schema(
    {"id": STRING_SCHEMA, "total_order": INT64_SCHEMA, "data_collection_order": INT64_SCHEMA},
    name="event.block",
    version=1,
    optional=True,
)


class RowOperation(StrEnum):
    """What happened to a row."""

    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    READ = "r"  # By a snapshot.
    TRUNCATE = "t"


class Unsent:
    """The value of a column that the server left out because it did not change."""

    def __repr__(self) -> str:
        return "UNSENT"


UNSENT = Unsent()


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedColumn:
    """One column: its schema, how values are read, and what stands for one that was not sent."""

    name: str
    schema: Schema
    read: Callable[[Any], Any]
    unsent: Any = None
    place: int = 0  # In the rows that the server sends.


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedTable:
    """One shape of a table, ready to make events of its rows."""

    label: str  # schema.table
    topic: str
    columns: tuple[CapturedColumn, ...]
    key_places: tuple[int, ...]  # In `columns`; empty: the records have no key.
    key_schema: Schema | None
    row_schema: Schema
    envelope: Schema
    names: Mapping[str, Any]  # What the source block says of the table.

    def row(self, sent: Sequence[Any]) -> StructValue:
        """A row as it was sent."""
        return StructValue(self.row_schema, tuple([self._value(c, sent) for c in self.columns]))

    def key(self, row: StructValue) -> StructValue | None:
        """The key of a row; None: the table has none."""
        if self.key_schema is None:
            return None
        return StructValue(self.key_schema, tuple([row.values[at] for at in self.key_places]))

    def event(
        self,
        operation: RowOperation,
        before: StructValue | None,
        after: StructValue | None,
        source: StructValue,
        now_ns: int,
    ) -> StructValue:
        """The value of a change's record."""
        now_us = now_ns // 1000
        return StructValue(
            self.envelope,
            (before, after, source, None, operation.value, now_us // 1000, now_us, now_ns),
        )

    def _value(self, column: CapturedColumn, sent: Sequence[Any]) -> Any:
        value = sent[column.place]
        if value is None:
            return None
        if value is UNSENT:
            return column.unsent
        try:
            return column.read(value)
        except (ArithmeticError, ValueError, DataError) as error:
            raise DataError(
                f"table {self.label}, column {column.name}: {value!r:.200} cannot be read: {error}"
            ) from error


def captured_table(
    *,
    label: str,
    topic: str,
    columns: Sequence[CapturedColumn],
    key: Sequence[str],
    source: Schema,
    names: Mapping[str, Any],
) -> CapturedTable:
    """The schemas of a table's records, under the names that Debezium gives them."""
    row = struct_schema({one.name: one.schema for one in columns}, name=f"{topic}.Value")
    places = {one.name: at for at, one in enumerate(columns)}
    key_places = tuple(places[name] for name in key if name in places)
    return CapturedTable(
        label=label,
        topic=topic,
        columns=tuple(columns),
        key_places=key_places,
        key_schema=_key_schema(topic, [columns[at] for at in key_places]),
        row_schema=row.as_optional(),
        envelope=envelope_schema(topic, row.as_optional(), source),
        names=names,
    )


def _key_schema(topic: str, columns: Sequence[CapturedColumn]) -> Schema | None:
    if not columns:
        return None
    return struct_schema({one.name: one.schema for one in columns}, name=f"{topic}.Key")


def envelope_schema(topic: str, row: Schema, source: Schema) -> Schema:
    """The schema of changes whose rows are of a schema, which allows null."""
    return struct_schema(
        {
            "before": row,
            "after": row,
            "source": source,
            "transaction": _TRANSACTION,
            "op": STRING_SCHEMA,
            "ts_ms": OPTIONAL_INT64_SCHEMA,
            "ts_us": OPTIONAL_INT64_SCHEMA,
            "ts_ns": OPTIONAL_INT64_SCHEMA,
        },
        name=f"{topic}.Envelope",
        version=ENVELOPE_VERSION,
    )


def as_last(event: StructValue) -> StructValue:
    """The same event, told as the last of its snapshot."""
    told = _with(event["source"], "snapshot", "last")
    return _with(event, "source", told)


def _with(struct: StructValue, name: str, value: Any) -> StructValue:
    at = struct.schema.place(name)
    assert at is not None
    return StructValue(struct.schema, (*struct.values[:at], value, *struct.values[at + 1 :]))


HEARTBEAT_KEY = struct_schema(
    {"serverName": STRING_SCHEMA}, name="io.debezium.connector.common.ServerNameKey"
)
HEARTBEAT_VALUE = struct_schema(
    {"ts_ms": INT64_SCHEMA}, name="io.debezium.connector.common.Heartbeat"
)


def heartbeat(
    topic: str, server: str, now_ms: int, partition: Mapping[str, Any], offset: Mapping[str, Any]
) -> SourceRecord:
    """A record that moves a position on where captured tables do not change."""
    return SourceRecord(
        topic=topic,
        key_schema=HEARTBEAT_KEY,
        key=StructValue(HEARTBEAT_KEY, (server,)),
        value_schema=HEARTBEAT_VALUE,
        value=StructValue(HEARTBEAT_VALUE, (now_ms,)),
        source_partition=partition,
        source_offset=offset,
    )
