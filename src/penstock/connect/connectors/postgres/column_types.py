"""PostgreSQL's types: the schema of a column, and its values read from their text.

The table of types is Debezium's. A type that it does not know travels as its text.
"""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from penstock.connect.connectors.changes.decimals import DecimalMode, Reader, decimal_codec
from penstock.connect.connectors.changes.fitting import reader_for
from penstock.connect.connectors.changes.settings import BinaryMode, TimeMode
from penstock.connect.connectors.changes.temporal import (
    connect_date,
    connect_time,
    connect_timestamp,
    days_of_date,
    micros_of_interval,
    micros_of_time,
    micros_of_timestamp,
    zoned_time,
    zoned_timestamp,
)
from penstock.connect.errors.kinds import DataError
from penstock.connect.values.logical import DATE_SCHEMA, TIME_SCHEMA, TIMESTAMP_SCHEMA
from penstock.connect.values.schema import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaType,
    array_schema,
    struct_schema,
)
from penstock.connect.values.struct import StructValue


class IntervalMode(StrEnum):
    """`interval.handling.mode`."""

    NUMERIC = "numeric"
    STRING = "string"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueModes:
    """How values travel, where Debezium gives a choice."""

    decimals: DecimalMode = DecimalMode.PRECISE
    times: TimeMode = TimeMode.ADAPTIVE
    binary: BinaryMode = BinaryMode.BYTES
    intervals: IntervalMode = IntervalMode.NUMERIC


@dataclass(frozen=True, slots=True, kw_only=True)
class PgType:
    """A type of the catalog."""

    oid: int
    name: str
    element: "PgType | None" = None  # Of an array.
    origin: "PgType | None" = None  # What a domain is made of, with its modifier.
    modifier: int = -1
    labels: tuple[str, ...] = ()  # Of an enumeration.


@dataclass(frozen=True, slots=True)
class ColumnCodec:
    """The schema of a column that is never null, and what reads a text of it."""

    schema: Schema
    read: Reader


def codec_of(kind: PgType, modifier: int, modes: ValueModes) -> ColumnCodec:
    """How a column of a type travels."""
    if kind.origin is not None:
        return codec_of(kind.origin, kind.modifier if modifier < 0 else modifier, modes)
    if kind.element is not None:
        return _array_codec(codec_of(kind.element, modifier, modes))
    if kind.labels:
        return ColumnCodec(_named(SchemaType.STRING, "Enum", allowed=",".join(kind.labels)), str)
    if kind.name in _PLAIN:
        return _PLAIN[kind.name]
    if kind.name in _CHOSEN:
        return _CHOSEN[kind.name](modifier, modes)
    return ColumnCodec(STRING_SCHEMA, str)


def array_items(text: str) -> list[str | None]:
    """The items of `{a,"b c",NULL}`; only arrays of one dimension have a schema."""
    body = text.partition("=")[2] if text.startswith("[") else text
    if body == "{}":
        return []
    if body.startswith("{{"):
        raise DataError("an array of several dimensions has no schema")
    items, at, end = [], 1, len(body) - 1
    while (found := _ITEM.match(body, at, end)) is not None:
        items.append(_item(found))
        at = found.end()
        if found[3] != ",":
            break
    if at != end or not body.endswith("}"):
        raise DataError(f"{text!r:.100} is no array")
    return items


_ITEM = re.compile(r'(?:"((?:[^"\\]|\\.)*)"|([^,"{}]*))(,|$)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def _item(found: re.Match[str]) -> str | None:
    quoted, bare, _ = found.groups()
    if quoted is not None:
        return _ESCAPED.sub(r"\1", quoted)
    return None if bare.upper() == "NULL" else bare


def _array_codec(items: ColumnCodec) -> ColumnCodec:
    schema = items.schema.as_optional()
    read = reader_for(schema, items.read)

    def read_all(text: str) -> list[Any]:
        return [None if one is None else read(one) for one in array_items(text)]

    return ColumnCodec(array_schema(schema), read_all)


def _named(kind: SchemaType, name: str, **parameters: str) -> Schema:
    return Schema(type=kind, name=f"io.debezium.data.{name}", version=1, parameters=parameters)


def _time_named(kind: SchemaType, name: str) -> Schema:
    return Schema(type=kind, name=f"io.debezium.time.{name}", version=1)


def _boolean(text: str) -> bool:
    return text in ("t", "true", "1")


def _numeric(modifier: int, modes: ValueModes) -> ColumnCodec:
    if modifier < 4:
        return ColumnCodec(*decimal_codec(modes.decimals, None, None))
    packed = modifier - 4
    scale = ((packed & 0x7FF) ^ 1024) - 1024
    return ColumnCodec(*decimal_codec(modes.decimals, packed >> 16 & 0xFFFF, scale))


def _money(modifier: int, modes: ValueModes) -> ColumnCodec:
    schema, read = decimal_codec(modes.decimals, 19, 2)
    return ColumnCodec(schema, lambda text: read(_amount(text)))


def _amount(text: str) -> str:
    digits = re.sub(r"[^0-9.]", "", text)
    return f"-{digits}" if "-" in text or text.startswith("(") else digits


def _date(modifier: int, modes: ValueModes) -> ColumnCodec:
    if modes.times is TimeMode.CONNECT:
        return ColumnCodec(DATE_SCHEMA, connect_date)
    return ColumnCodec(_time_named(SchemaType.INT32, "Date"), days_of_date)


def _time(modifier: int, modes: ValueModes) -> ColumnCodec:
    if modes.times is TimeMode.CONNECT:
        return ColumnCodec(TIME_SCHEMA, connect_time)
    if modes.times is TimeMode.ADAPTIVE and 0 <= modifier <= 3:
        schema = _time_named(SchemaType.INT32, "Time")
        return ColumnCodec(schema, lambda text: micros_of_time(text) // 1000)
    return ColumnCodec(_time_named(SchemaType.INT64, "MicroTime"), micros_of_time)


def _timestamp(modifier: int, modes: ValueModes) -> ColumnCodec:
    if modes.times is TimeMode.CONNECT:
        return ColumnCodec(TIMESTAMP_SCHEMA, connect_timestamp)
    if 0 <= modifier <= 3:
        schema = _time_named(SchemaType.INT64, "Timestamp")
        return ColumnCodec(schema, lambda text: micros_of_timestamp(text) // 1000)
    return ColumnCodec(_time_named(SchemaType.INT64, "MicroTimestamp"), micros_of_timestamp)


def _interval(modifier: int, modes: ValueModes) -> ColumnCodec:
    if modes.intervals is IntervalMode.STRING:
        return ColumnCodec(_time_named(SchemaType.STRING, "Interval"), str)
    return ColumnCodec(_time_named(SchemaType.INT64, "MicroDuration"), micros_of_interval)


def _bytea(modifier: int, modes: ValueModes) -> ColumnCodec:
    if modes.binary is BinaryMode.HEX:
        return ColumnCodec(STRING_SCHEMA, lambda text: _binary(text).hex())
    if modes.binary is BinaryMode.BASE64:
        return ColumnCodec(STRING_SCHEMA, _base64)
    return ColumnCodec(BYTES_SCHEMA, _binary)


def _binary(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise DataError("bytea_output must be hex")
    return bytes.fromhex(text[2:])


def _base64(text: str) -> str:
    return base64.b64encode(_binary(text)).decode()


def _bits(modifier: int, modes: ValueModes) -> ColumnCodec:
    if modifier == 1:
        return ColumnCodec(BOOLEAN_SCHEMA, _boolean)
    length = str(modifier if modifier > 0 else 2**31 - 1)
    return ColumnCodec(_named(SchemaType.BYTES, "Bits", length=length), _bit_bytes)


def _bit_bytes(text: str) -> bytes:
    """Lowest byte first."""
    return int(text or "0", 2).to_bytes((len(text) + 7) // 8, "little")


_POINT_SCHEMA = struct_schema(
    {"x": FLOAT64_SCHEMA, "y": FLOAT64_SCHEMA}, name="io.debezium.data.geometry.Point", version=1
)


def _point(text: str) -> StructValue:
    x, y = text.strip("()").split(",")
    return StructValue(_POINT_SCHEMA, (float(x), float(y)))


_PLAIN: dict[str, ColumnCodec] = {
    "bool": ColumnCodec(BOOLEAN_SCHEMA, _boolean),
    "int2": ColumnCodec(INT16_SCHEMA, int),
    "int4": ColumnCodec(INT32_SCHEMA, int),
    "int8": ColumnCodec(INT64_SCHEMA, int),
    "oid": ColumnCodec(INT64_SCHEMA, int),
    "float4": ColumnCodec(FLOAT32_SCHEMA, float),
    "float8": ColumnCodec(FLOAT64_SCHEMA, float),
    "json": ColumnCodec(_named(SchemaType.STRING, "Json"), str),
    "jsonb": ColumnCodec(_named(SchemaType.STRING, "Json"), str),
    "xml": ColumnCodec(_named(SchemaType.STRING, "Xml"), str),
    "uuid": ColumnCodec(_named(SchemaType.STRING, "Uuid"), str),
    "ltree": ColumnCodec(_named(SchemaType.STRING, "Ltree"), str),
    "timetz": ColumnCodec(_time_named(SchemaType.STRING, "ZonedTime"), zoned_time),
    "timestamptz": ColumnCodec(_time_named(SchemaType.STRING, "ZonedTimestamp"), zoned_timestamp),
    "point": ColumnCodec(_POINT_SCHEMA, _point),
}
_CHOSEN: dict[str, Callable[[int, ValueModes], ColumnCodec]] = {
    "numeric": _numeric,
    "money": _money,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "interval": _interval,
    "bytea": _bytea,
    "bit": _bits,
    "varbit": _bits,
}
