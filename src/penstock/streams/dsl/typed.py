"""Where the DSL takes a column expression: its types come from the serdes of the stream."""

from collections.abc import Callable
from typing import Any

from penstock.streams.columns.expression import Column
from penstock.streams.columns.in_python import computing
from penstock.streams.columns.resolve import RecordType, TypedColumn, expecting, resolved
from penstock.streams.plan.graph import TopologyError
from penstock.streams.values.column_types import BOOLEAN, STRING, ColumnType, ColumnTypeError
from penstock.streams.values.json_fields import json_serde
from penstock.streams.values.records import StreamRecord
from penstock.streams.values.serdes import BYTES, DOUBLE, JSON, LONG, Serde
from penstock.streams.values.serdes import STRING as STRING_SERDE

_SERDES: dict[str, Serde[Any]] = {
    "string": STRING_SERDE,
    "long": LONG,
    "double": DOUBLE,
    "bytes": BYTES,
}


def natural_serde(kind: ColumnType) -> Serde[Any]:
    """How values of a type are written if nobody says otherwise."""
    if kind.name == "struct":
        return json_serde(kind)
    return _SERDES.get(kind.name) or Serde(JSON.name, JSON.to_bytes, JSON.from_bytes, kind)


def record_type(key: Serde[Any] | None, value: Serde[Any] | None) -> RecordType:
    """What the serdes say of a record; a function before may have made anything of it."""
    return RecordType(key=key.type if key else None, value=value.type if value else None)


def typed(column: Any, record: RecordType, what: str) -> TypedColumn:
    """An expression with its types; TopologyError tells what does not fit."""
    if not isinstance(column, Column):
        raise TopologyError(f"{what} must be a column expression, and is {column!r}")
    try:
        return resolved(column, record)
    except ColumnTypeError as error:
        raise TopologyError(f"{what}: {error}") from None


def condition(column: Column, record: RecordType, what: str) -> TypedColumn:
    """An expression that is true or false."""
    return _of_type(column, record, BOOLEAN, what)


def topic_name(column: Column, record: RecordType) -> TypedColumn:
    """An expression that names a topic."""
    return _of_type(column, record, STRING, "the topic")


def row_function(column: TypedColumn) -> Callable[[Any, Any], Any]:
    """An expression over a table's row, as a function of key and value."""
    compute = computing(column)
    return lambda key, value: compute(StreamRecord(key=key, value=value, timestamp_ms=-1))


def _of_type(column: Column, record: RecordType, kind: ColumnType, what: str) -> TypedColumn:
    try:
        return expecting(column, record, kind, what)
    except ColumnTypeError as error:
        raise TopologyError(f"{what}: {error}") from None
