"""The bytes between Python and the JVM: one call brings all records of a poll.

A value is a letter and what follows it, numbers in network order:

| letter | value |
| --- | --- |
| 0, T, F | null, true, false |
| i, d | a whole number of 8 bytes, a double |
| s, b | the length in 4 bytes, then UTF-8 or bytes |
| n | a decimal: its scale in 4 bytes, then its unscaled number as bytes |
| t | a date, as milliseconds since the epoch |
| l, m | the count in 4 bytes, then elements, or keys and values in turn |
| x | a struct: its schema, then a value for each field |

A schema is -1 for none, the number of one that came before, or -2 and what it is; it then has the
next number. Both sides forget all of them when the first byte of an answer says so.
"""

import decimal
import struct
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.records import Header, SourceRecord
from penstock.connect.values.logical import WIDE, logical_of
from penstock.connect.values.schema import Schema, SchemaField, SchemaType
from penstock.connect.values.struct import StructValue

_INT, _LONG, _DOUBLE = struct.Struct(">i"), struct.Struct(">q"), struct.Struct(">d")
_NO_SCHEMA, _NEW_SCHEMA = -1, -2
_DAY_MS = 86_400_000


def encode(value: Any) -> bytes:
    """Texts, numbers, booleans, lists and dicts of them."""
    out = bytearray()
    _write(out, value)
    return bytes(out)


def _write(out: bytearray, value: Any) -> None:
    match value:
        case None:
            out += b"0"
        case bool():
            out += b"T" if value else b"F"
        case int():
            out += b"i" + _LONG.pack(value)
        case float():
            out += b"d" + _DOUBLE.pack(value)
        case str():
            data = value.encode(errors="surrogatepass")
            out += b"s" + _INT.pack(len(data)) + data
        case Mapping():
            out += b"m" + _INT.pack(len(value))
            for key, one in value.items():
                _write(out, key)
                _write(out, one)
        case Iterable():
            items = list(value)
            out += b"l" + _INT.pack(len(items))
            for one in items:
                _write(out, one)
        case _:
            raise DataError(f"{value!r:.100} cannot be sent to Java")


def decode(data: bytes) -> Any:
    """A value without structs."""
    return _Reading(data, []).value()


class JavaRecordReader:
    """Reads answers of one JVM, whose schemas it remembers."""

    def __init__(self) -> None:
        self._schemas: list[Schema] = []

    def records(self, data: bytes) -> list[SourceRecord]:
        """The records of an answer."""
        reading = _Reading(data, self._schemas)
        if reading.flag():
            self._schemas.clear()
        found = []
        while reading.flag():
            found.append(reading.record())
        return found


class _Reading:
    """One answer, from its first byte to its last."""

    def __init__(self, data: bytes, schemas: list[Schema]) -> None:
        self._data = data
        self._at = 0
        self._schemas = schemas

    def flag(self) -> bool:
        """A byte that is 0 or 1."""
        self._at += 1
        return self._data[self._at - 1] != 0

    def record(self) -> SourceRecord:
        """One record, in the order of its parts."""
        partition, offset = self.value(), self.value()
        topic, kafka_partition, timestamp = self.value(), self.value(), self.value()
        key_schema, key = self._typed()
        value_schema, value = self._typed()
        headers = tuple(self._header() for _ in range(self._int()))
        return SourceRecord(
            topic=topic,
            partition=kafka_partition,
            key_schema=key_schema,
            key=key,
            value_schema=value_schema,
            value=value,
            timestamp=timestamp,
            headers=headers,
            source_partition=partition,
            source_offset=offset,
        )

    def _header(self) -> Header:
        name = self.value()
        schema, value = self._typed()
        return Header(name, schema, value)

    def _typed(self) -> tuple[Schema | None, Any]:
        schema = self._schema()
        return schema, self.value(schema)

    def value(self, schema: Schema | None = None) -> Any:
        """The value that is next; the schema tells dates from times."""
        letter = self._data[self._at : self._at + 1]
        self._at += 1
        match letter:
            case b"0":
                return None
            case b"T" | b"F":
                return letter == b"T"
            case b"i":
                return self._long()
            case b"d":
                self._at += 8
                return _DOUBLE.unpack_from(self._data, self._at - 8)[0]
            case b"s":
                return self._bytes().decode(errors="replace")
            case b"b":
                return self._bytes()
            case b"n":
                scale = self._int()
                unscaled = int.from_bytes(self._bytes(), "big", signed=True)
                return decimal.Decimal(unscaled).scaleb(-scale, WIDE)
            case b"t":
                return _date(schema, self._long())
            case b"l":
                inner = None if schema is None else schema.value_schema
                return [self.value(inner) for _ in range(self._int())]
            case b"m":
                return self._map(schema)
            case b"x":
                return self._struct()
        raise DataError(f"the JVM sent {letter!r} where a value begins")

    def _map(self, schema: Schema | None) -> dict[Any, Any]:
        keys = None if schema is None else schema.key_schema
        values = None if schema is None else schema.value_schema
        return {self.value(keys): self.value(values) for _ in range(self._int())}

    def _struct(self) -> StructValue:
        schema = self._schema()
        if schema is None:
            raise DataError("the JVM sent a struct without its schema")
        return StructValue(schema, tuple([self.value(one.schema) for one in schema.fields]))

    def _schema(self) -> Schema | None:
        number = self._int()
        if number == _NO_SCHEMA:
            return None
        if number != _NEW_SCHEMA:
            return self._schemas[number]
        made = self._new_schema()
        self._schemas.append(made)
        return made

    def _new_schema(self) -> Schema:
        kind, optional = SchemaType(self.value()), self.flag()
        name, version, doc, parameters = (self.value() for _ in range(4))
        fields: tuple[SchemaField, ...] = ()
        key_schema = value_schema = None
        if kind is SchemaType.STRUCT:
            fields = tuple(self._field() for _ in range(self._int()))
        if kind is SchemaType.MAP:
            key_schema = self._schema()
        if kind in (SchemaType.MAP, SchemaType.ARRAY):
            value_schema = self._schema()
        made = Schema(
            type=kind,
            optional=optional,
            name=name,
            version=version,
            doc=doc,
            parameters=parameters or {},
            fields=fields,
            key_schema=key_schema,
            value_schema=value_schema,
        )
        return replace(made, default=self.value(made))

    def _field(self) -> SchemaField:
        name, schema = self.value(), self._schema()
        if schema is None:
            raise DataError(f"the JVM sent the field {name!r:.100} without a schema")
        return SchemaField(name, schema)

    def _int(self) -> int:
        self._at += 4
        found: int = _INT.unpack_from(self._data, self._at - 4)[0]
        return found

    def _long(self) -> int:
        self._at += 8
        found: int = _LONG.unpack_from(self._data, self._at - 8)[0]
        return found

    def _bytes(self) -> bytes:
        count = self._int()
        self._at += count
        return self._data[self._at - count : self._at]


def _date(schema: Schema | None, ms: int) -> Any:
    """A java.util.Date is a date, a time or a timestamp, as the schema says."""
    if schema is None:
        return ms
    return logical_of(
        schema,
        ms // _DAY_MS
        if schema.type is SchemaType.INT32 and str(schema.name).endswith(".Date")
        else ms,
    )
