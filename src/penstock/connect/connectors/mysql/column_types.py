"""Types of MariaDB and MySQL: the schema of a column, and its values as Connect has them.

Values come as PyMySQL or the binary log's reader give them, which differ for a few types; both are
read here. The table of types is Debezium's.
"""

import base64
import json
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from penstock.connect.connectors.changes.decimals import DecimalMode, decimal_codec
from penstock.connect.connectors.changes.settings import BinaryMode, TimeMode
from penstock.connect.connectors.mysql.settings import MyValueModes, UnsignedMode
from penstock.connect.errors.kinds import DataError
from penstock.connect.values.logical import (
    DATE_SCHEMA,
    DAY_MS,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    days_of,
)
from penstock.connect.values.schema import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaType,
    struct_schema,
)
from penstock.connect.values.struct import StructValue

_US = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1)
_LONG = 1 << 63
GEOMETRY = struct_schema(
    {"wkb": BYTES_SCHEMA, "srid": OPTIONAL_INT32_SCHEMA},
    name="io.debezium.data.geometry.Geometry",
    version=1,
    doc="Geometry",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """A column as the binary log or the catalog tells it."""

    name: str
    kind: str  # The type's word; all texts are `text`, and what is no text is `binary`.
    unsigned: bool = False
    precision: int = 0  # Of a decimal; the bits of BIT; the bytes of BINARY, which pads; else 0.
    scale: int = 0  # Of a decimal; digits of a second's fraction.
    labels: tuple[str, ...] = ()  # Of ENUM and SET.
    is_nullable: bool = True


@dataclass(frozen=True, slots=True)
class MyColumnCodec:
    """The schema of a column that is never null, and what reads a value of it."""

    schema: Schema
    read: Callable[[Any], Any]
    zero: Any = None  # What stands for a date of zeros where null is not allowed.


def codec_of(facts: ColumnFacts, modes: MyValueModes) -> MyColumnCodec:
    """How a column travels."""
    if facts.kind in _WHOLE:
        return MyColumnCodec(_WHOLE[facts.kind][facts.unsigned], int)
    return _CODECS[facts.kind](facts, modes)


_WHOLE = {
    "tinyint": (INT16_SCHEMA, INT16_SCHEMA),
    "smallint": (INT16_SCHEMA, INT32_SCHEMA),
    "mediumint": (INT32_SCHEMA, INT32_SCHEMA),
    "int": (INT32_SCHEMA, INT64_SCHEMA),
}


def _bigint(facts: ColumnFacts, modes: MyValueModes) -> MyColumnCodec:
    if not facts.unsigned:
        return MyColumnCodec(INT64_SCHEMA, int)
    if modes.unsigned is UnsignedMode.LONG:
        return MyColumnCodec(INT64_SCHEMA, lambda n: n - 2 * _LONG if n >= _LONG else n)
    schema, _ = decimal_codec(DecimalMode.PRECISE, 20, 0)
    return MyColumnCodec(schema, Decimal)


def _decimal(facts: ColumnFacts, modes: MyValueModes) -> MyColumnCodec:
    schema, read = decimal_codec(modes.decimals, facts.precision, facts.scale)
    return MyColumnCodec(schema, lambda value: read(format(value, "f")))


def _named(kind: SchemaType, name: str, **parameters: str) -> Schema:
    return Schema(type=kind, name=f"io.debezium.{name}", version=1, parameters=parameters)


def _date(facts: ColumnFacts, modes: MyValueModes) -> MyColumnCodec:
    if modes.times is TimeMode.CONNECT:
        return MyColumnCodec(DATE_SCHEMA, _unless_zero(lambda value: value), date(1970, 1, 1))
    return MyColumnCodec(_named(SchemaType.INT32, "time.Date"), _unless_zero(days_of), 0)


def _unless_zero(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A date that is none, such as `0000-00-00`, is a text to PyMySQL, and null in the log."""
    return lambda value: None if isinstance(value, str) else read(value)


def _datetime(facts: ColumnFacts, modes: MyValueModes) -> MyColumnCodec:
    if modes.times is TimeMode.CONNECT:
        read, zero = (lambda value: value.replace(tzinfo=UTC)), datetime(1970, 1, 1, tzinfo=UTC)
        return MyColumnCodec(TIMESTAMP_SCHEMA, _unless_zero(read), zero)
    if facts.scale <= 3:
        schema = _named(SchemaType.INT64, "time.Timestamp")
        return MyColumnCodec(schema, _unless_zero(lambda value: _micros(value) // 1000), 0)
    return MyColumnCodec(_named(SchemaType.INT64, "time.MicroTimestamp"), _unless_zero(_micros), 0)


def _micros(value: datetime) -> int:
    return (value - _EPOCH) // _US


def _timestamp(facts: ColumnFacts, modes: MyValueModes) -> MyColumnCodec:
    schema = _named(SchemaType.STRING, "time.ZonedTimestamp")
    return MyColumnCodec(schema, _unless_zero(_zoned), "1970-01-01T00:00:00Z")


def _zoned(value: datetime) -> str:
    text = value.isoformat()
    return f"{text.rstrip('0') if '.' in text else text}Z"


def _time(facts: ColumnFacts, modes: MyValueModes) -> MyColumnCodec:
    if modes.times is TimeMode.CONNECT:
        return MyColumnCodec(TIME_SCHEMA, _time_of_day)
    schema = _named(SchemaType.INT64, "time.MicroTime")
    return MyColumnCodec(schema, lambda value: value // _US)


def _time_of_day(value: timedelta) -> time:
    if not timedelta(0) <= value < timedelta(milliseconds=DAY_MS):
        raise DataError(f"{value} is no time of day; time.precision.mode can carry it as a number")
    return (_EPOCH + value).time()


def _set_text(labels: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if isinstance(value, str):
            return value
        return ",".join(label for label in labels if label in value)

    return read


def _enum(facts: ColumnFacts, modes: MyValueModes) -> MyColumnCodec:
    allowed = ",".join(facts.labels)
    return MyColumnCodec(_named(SchemaType.STRING, "data.Enum", allowed=allowed), str)


def _set(facts: ColumnFacts, modes: MyValueModes) -> MyColumnCodec:
    schema = _named(SchemaType.STRING, "data.EnumSet", allowed=",".join(facts.labels))
    return MyColumnCodec(schema, _set_text(facts.labels))


def _bit(facts: ColumnFacts, modes: MyValueModes) -> MyColumnCodec:
    if facts.precision == 1:
        return MyColumnCodec(BOOLEAN_SCHEMA, lambda value: bool(_bits(value)))
    length = (facts.precision + 7) // 8
    schema = _named(SchemaType.BYTES, "data.Bits", length=str(facts.precision))
    return MyColumnCodec(schema, lambda value: _bits(value).to_bytes(length, "little"))


def _bits(value: Any) -> int:
    return int(value, 2) if isinstance(value, str) else int.from_bytes(value, "big")


def _binary(facts: ColumnFacts, modes: MyValueModes) -> MyColumnCodec:
    def whole(value: Any) -> bytes:
        # The log leaves out the zeros at the end of BINARY.
        return bytes(value).ljust(facts.precision, b"\0")

    match modes.binary:
        case BinaryMode.BASE64:
            return MyColumnCodec(
                STRING_SCHEMA, lambda value: base64.b64encode(whole(value)).decode()
            )
        case BinaryMode.HEX:
            return MyColumnCodec(STRING_SCHEMA, lambda value: whole(value).hex())
    return MyColumnCodec(BYTES_SCHEMA, whole)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise DataError("its character set is not known here")
    return value


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(_plain_json(value), ensure_ascii=False)


def _plain_json(value: Any) -> Any:
    """What the binary log's reader gives has bytes for texts."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {_plain_json(key): _plain_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain_json(one) for one in value]
    return str(value) if isinstance(value, Decimal | date | timedelta) else value


def _geometry(value: Any) -> StructValue:
    data = bytes(value)
    return StructValue(GEOMETRY, (data[4:], int.from_bytes(data[:4], "little") or None))


def _uuid_text(value: Any) -> str:
    return value if isinstance(value, str) else str(uuid.UUID(bytes=value.ljust(16, b"\0")))


def _address_text(family: socket.AddressFamily, size: int) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if isinstance(value, str):
            return value
        return socket.inet_ntop(family, value.ljust(size, b"\0"))

    return read


def _fixed(schema: Schema, read: Callable[[Any], Any]) -> Callable[..., MyColumnCodec]:
    codec = MyColumnCodec(schema, read)
    return lambda facts, modes: codec


_CODECS: dict[str, Callable[[ColumnFacts, MyValueModes], MyColumnCodec]] = {
    "bigint": _bigint,
    "decimal": _decimal,
    "float": _fixed(FLOAT32_SCHEMA, float),
    "double": _fixed(FLOAT64_SCHEMA, float),
    "date": _date,
    "datetime": _datetime,
    "timestamp": _timestamp,
    "time": _time,
    "year": _fixed(_named(SchemaType.INT32, "time.Year"), int),
    "enum": _enum,
    "set": _set,
    "bit": _bit,
    "text": _fixed(STRING_SCHEMA, _text),
    "json": _fixed(_named(SchemaType.STRING, "data.Json"), _json_text),
    "binary": _binary,
    "geometry": _fixed(GEOMETRY, _geometry),
    "uuid": _fixed(STRING_SCHEMA, _uuid_text),
    "inet4": _fixed(STRING_SCHEMA, _address_text(socket.AF_INET, 4)),
    "inet6": _fixed(STRING_SCHEMA, _address_text(socket.AF_INET6, 16)),
}
