"""Types of databases as Connect's schemas, and values of their libraries as Connect's values."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

from penstock.connect.connectors.jdbc.connection import TableColumn
from penstock.connect.errors.kinds import DataError
from penstock.connect.values.logical import (
    DATE_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    WIDE,
    decimal_schema,
)
from penstock.connect.values.schema import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Schema,
)

_FREE_SCALE = 127  # As Confluent's connector has it where a column tells none.


class NumericMapping(StrEnum):
    """`numeric.mapping`: what becomes of decimals."""

    NONE = "none"
    PRECISION_ONLY = "precision_only"
    BEST_FIT = "best_fit"
    EAGER_DOUBLE = "best_fit_eager_double"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldCodec:
    """The schema of a column, and what makes a value of it; null stays null."""

    name: str
    schema: Schema
    read: Callable[[Any], Any]


def field_codec(column: TableColumn, mapping: NumericMapping) -> FieldCodec:
    """How a column travels; a type that is not known travels as text."""
    word = column.type.removesuffix(" unsigned")
    if word in ("numeric", "decimal"):
        schema, read = _decimal(column, mapping)
    else:
        schema, read = _TYPES.get(word, (STRING_SCHEMA, _text))
    shown = schema.as_optional() if column.is_nullable else schema
    return FieldCodec(name=column.name, schema=shown, read=read)


def _decimal(column: TableColumn, mapping: NumericMapping) -> tuple[Schema, Callable[[Any], Any]]:
    precision, scale = column.precision or 0, column.scale
    is_fit = mapping in (NumericMapping.BEST_FIT, NumericMapping.EAGER_DOUBLE)
    whole = is_fit or mapping is NumericMapping.PRECISION_ONLY
    if scale == 0 and whole and 0 < precision < 19:
        return _integer_schema(precision), int
    eager = mapping is NumericMapping.EAGER_DOUBLE
    if is_fit and scale is not None and scale > 0 and (eager or 0 < precision < 19):
        return FLOAT64_SCHEMA, float
    digits = _FREE_SCALE if scale is None else scale
    return decimal_schema(digits), lambda value: _scaled(value, digits)


def _integer_schema(precision: int) -> Schema:
    bounds = ((3, INT8_SCHEMA), (5, INT16_SCHEMA), (10, INT32_SCHEMA))
    return next((schema for below, schema in bounds if precision < below), INT64_SCHEMA)


def _scaled(value: Any, scale: int) -> Decimal:
    number = Decimal(str(value))
    if not number.is_finite():
        raise DataError(f"{value} is no decimal")
    return number.quantize(Decimal(1).scaleb(-scale), context=WIDE)


def _text(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode()
    return str(value)


def _timestamp(value: Any) -> datetime:
    if isinstance(value, int | float):  # SQLite keeps what it is given: milliseconds, by JDBC.
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value)
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return aware.astimezone(UTC)


def _date(value: Any) -> date:
    return date.fromisoformat(value[:10]) if isinstance(value, str) else value


def _time(value: Any) -> time:
    if isinstance(value, timedelta):  # PyMySQL's.
        return (datetime(1970, 1, 1, tzinfo=UTC) + value).time()
    return time.fromisoformat(value) if isinstance(value, str) else value.replace(tzinfo=None)


def moment_of(value: Any) -> datetime:
    """The instant in a column that tells when a row changed; DataError: it is none."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    try:
        return _timestamp(value)
    except (TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{value!r} is no timestamp") from error


_Codec = tuple[Schema, Callable[[Any], Any]]
_TYPES: dict[str, _Codec] = {
    **dict.fromkeys(("boolean", "bool"), (BOOLEAN_SCHEMA, bool)),
    "tinyint": (INT8_SCHEMA, int),
    **dict.fromkeys(("smallint", "int2", "year"), (INT16_SCHEMA, int)),
    **dict.fromkeys(("int", "integer", "int4", "mediumint"), (INT32_SCHEMA, int)),
    **dict.fromkeys(("bigint", "int8", "oid", "sqlite integer"), (INT64_SCHEMA, int)),
    **dict.fromkeys(("float4", "single"), (FLOAT32_SCHEMA, float)),
    **dict.fromkeys(
        ("real", "double", "double precision", "float8", "float"), (FLOAT64_SCHEMA, float)
    ),
    **dict.fromkeys(
        ("bytea", "blob", "tinyblob", "mediumblob", "longblob", "binary", "varbinary"),
        (BYTES_SCHEMA, bytes),
    ),
    "date": (DATE_SCHEMA, _date),
    **dict.fromkeys(("time", "time without time zone"), (TIME_SCHEMA, _time)),
    **dict.fromkeys(
        ("timestamp", "datetime", "timestamptz", "timestamp without time zone",
         "timestamp with time zone"),
        (TIMESTAMP_SCHEMA, _timestamp),
    ),
    "uuid": (STRING_SCHEMA, lambda value: str(UUID(str(value)))),
}  # fmt: skip


def inferred_column(name: str, values: list[Any]) -> TableColumn:
    """A column of a query whose type nobody tells, by the values that came first."""
    kinds = {type(value) for value in values if value is not None}
    word = next((word for kind, word in _PYTHON.items() if kinds and kinds <= {kind}), "text")
    if kinds == {int, float}:
        word = "double"
    return TableColumn(name=name, type=word, scale=None, precision=None, is_nullable=True)


_PYTHON: dict[type, str] = {
    bool: "boolean",
    int: "bigint",
    float: "double",
    Decimal: "numeric",
    bytes: "blob",
    datetime: "timestamp",
    date: "date",
    time: "time",
}
