"""Avro's JSON encoding: a value of a union names its type, bytes are a character each.

The specification's own form, so documents are read as Java's `JsonDecoder` reads them: every field
of a record is there and no other, `{"string": "a"}` for a union, `"\\u00ff"` for bytes, numbers for
dates. fastavro cannot tell which branch of `["int", "long"]` it read, so the bytes are walked here.
A schema becomes functions once; reading and writing then only call them.
"""

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from penstock.schemas.avro import NAMED, Schema, is_bytes, parse_compact
from penstock.schemas.errors import DecodeError, EncodeError, SchemaError
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.wire_header import HEADER_BYTES, read_header, write_header

Write: TypeAlias = Callable[[Any, bytearray], None]
Read: TypeAlias = Callable[["_Input"], Any]

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
_EMPTY_ITEMS_MAX = 100_000  # Items without a byte of their own, such as nulls, in one value.
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_VARINT_BYTES_MAX = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroDocuments:
    """Documents of one Avro schema."""

    schema_id: int
    header: bytes
    write: Write
    read: Read

    @classmethod
    def of(cls, stored: StoredSchema) -> "AvroDocuments":
        """From a schema that a lookup found."""
        root, named = parse_compact(stored.expect(SchemaKind.AVRO))
        alone = is_bytes(root)
        return cls(
            schema_id=stored.schema_id,
            header=write_header(stored.schema_id),
            write=_write_rest if alone else _Writers(named).of(root),
            read=_read_rest if alone else _Readers(named).of(root),
        )

    def encode(self, document: Any) -> bytes:
        """The bytes of a document with their header."""
        out = bytearray(self.header)
        try:
            self.write(document, out)
        except _Misfit as error:
            raise EncodeError(f"the document is not of the Avro schema: {error}") from None
        except RecursionError:
            raise EncodeError("the document is nested too deeply") from None
        return bytes(out)

    def decode(self, data: bytes) -> Any:
        """The document in bytes with a header."""
        read_header(data)
        return _read_whole(self.read, data)


def avro_check(root: Schema, named: Mapping[str, Schema]) -> Callable[[bytes], None]:
    """Refuses values, with their header, that are deeper or longer than is good for a decoder."""
    read = _Readers(named).of(root)

    def check(data: bytes) -> None:
        _read_whole(read, data)

    return check


def _read_whole(read: Read, data: bytes) -> Any:
    source = _Input(data=data, at=HEADER_BYTES, items_left=len(data) + _EMPTY_ITEMS_MAX)
    try:
        document = read(source)
    except RecursionError:
        raise DecodeError("the value is nested too deeply") from None
    left = len(data) - source.at
    if left:
        raise DecodeError(f"{left} bytes are left over behind the Avro value")
    return document


class _Misfit(Exception):
    """A part of a document that its type does not allow, and where it is."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: list[str] = []

    def inside(self, name: str) -> "_Misfit":
        """The same, seen from one level further out."""
        self.path.insert(0, name)
        return self

    def __str__(self) -> str:
        reason = super().__str__()
        return f"{'.'.join(self.path)}: {reason}" if self.path else reason


def _refuse(what: str, document: Any) -> NoReturn:
    raise _Misfit(f"expected {what}, got {_told(document)}")


def _told(document: Any) -> str:
    if document is None:
        return "null"
    if isinstance(document, dict | list):
        return "an object" if isinstance(document, dict) else "an array"
    text = repr(document)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _branch_name(schema: Schema) -> str:
    """What a union calls one of its types."""
    if isinstance(schema, str):
        return schema
    return str(schema["name"] if schema["type"] in NAMED else schema["type"])


class _Writers:
    """Makes the function that writes a type; one that contains itself finds itself by name."""

    def __init__(self, named: Mapping[str, Schema]) -> None:
        self._named = named
        self._made: dict[str, Write] = {}

    def of(self, schema: Schema) -> Write:
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return _PLAIN_WRITERS[schema] if schema in _PLAIN_WRITERS else self._by_name(schema)
        kind = schema["type"]
        if kind in NAMED:
            return self._by_name(schema["name"])
        if kind == "array":
            return _array_writer(self.of(schema["items"]))
        if kind == "map":
            return _map_writer(self.of(schema["values"]))
        return self.of(kind)

    def _by_name(self, name: str) -> Write:
        if name not in self._made:
            made: list[Write] = []
            self._made[name] = lambda document, out: made[0](document, out)
            made.append(self._declared(_found(self._named, name)))
            self._made[name] = made[0]
        return self._made[name]

    def _declared(self, schema: Schema) -> Write:
        match schema["type"]:
            case "enum":
                return _enum_writer(schema["name"], schema["symbols"])
            case "fixed":
                return _fixed_writer(schema["size"])
            case _:
                fields = [(str(one["name"]), self.of(one["type"])) for one in schema["fields"]]
                return _record_writer(schema["name"], fields)

    def _union(self, branches: list[Schema]) -> Write:
        by_name = {
            _branch_name(branch): (place, self.of(branch)) for place, branch in enumerate(branches)
        }
        names = ", ".join(by_name)

        def write(document: Any, out: bytearray) -> None:
            if document is None and "null" in by_name:
                _write_long(by_name["null"][0], out)
                return
            if not isinstance(document, dict) or len(document) != 1:
                _refuse(f"an object with one name, which is one of {names}", document)
            [(name, inner)] = document.items()
            if name not in by_name or name == "null":
                raise _Misfit(f"{name} is none of the union's types {names}")
            place, writer = by_name[name]
            _write_long(place, out)
            writer(inner, out)

        return write


def _found(named: Mapping[str, Schema], name: str) -> Schema:
    if name not in named:
        raise SchemaError(f"the Avro schema uses {name}, which it does not declare")
    return named[name]


def _write_long(number: int, out: bytearray) -> None:
    number = (number << 1) ^ (number >> 63)
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _whole_writer(kind: str, bits: int) -> Write:
    low, high = -(1 << bits), (1 << bits) - 1

    def write(document: Any, out: bytearray) -> None:
        if type(document) is not int:
            _refuse(f"a whole number ({kind})", document)
        if not low <= document <= high:
            raise _Misfit(f"{document} is too large for {kind}")
        _write_long(document, out)

    return write


def _float_writer(form: struct.Struct) -> Write:
    def write(document: Any, out: bytearray) -> None:
        number = _WORDS.get(document, document) if isinstance(document, str) else document
        if isinstance(number, bool) or not isinstance(number, int | float):
            _refuse("a number", document)
        try:
            out += form.pack(number)
        except (OverflowError, struct.error):
            raise _Misfit(f"{_told(document)} is too large") from None

    return write


def _write_null(document: Any, out: bytearray) -> None:
    if document is not None:
        _refuse("null", document)


def _write_boolean(document: Any, out: bytearray) -> None:
    if not isinstance(document, bool):
        _refuse("true or false", document)
    out.append(document)


def _write_string(document: Any, out: bytearray) -> None:
    if not isinstance(document, str):
        _refuse("a text", document)
    try:
        data = document.encode()
    except UnicodeEncodeError:
        raise _Misfit("the text has half of a surrogate pair") from None
    _write_long(len(data), out)
    out += data


def _write_bytes(document: Any, out: bytearray) -> None:
    data = _as_bytes(document)
    _write_long(len(data), out)
    out += data


def _write_rest(document: Any, out: bytearray) -> None:
    """Bytes that are the whole value have no length in front, as serializers write them."""
    out += _as_bytes(document)


def _read_rest(source: "_Input") -> str:
    return source.take(len(source.data) - source.at).decode("latin-1")


def _as_bytes(document: Any) -> bytes:
    if not isinstance(document, str):
        _refuse("bytes as a text of characters up to \\u00ff", document)
    try:
        return document.encode("latin-1")
    except UnicodeEncodeError:
        raise _Misfit("bytes are a text of characters up to \\u00ff") from None


def _fixed_writer(size: int) -> Write:
    def write(document: Any, out: bytearray) -> None:
        data = _as_bytes(document)
        if len(data) != size:
            raise _Misfit(f"expected {size} bytes, got {len(data)}")
        out += data

    return write


def _enum_writer(name: str, symbols: list[str]) -> Write:
    places = {symbol: place for place, symbol in enumerate(symbols)}

    def write(document: Any, out: bytearray) -> None:
        if not isinstance(document, str) or document not in places:
            _refuse(f"a symbol of {name}", document)
        _write_long(places[document], out)

    return write


def _array_writer(item: Write) -> Write:
    def write(document: Any, out: bytearray) -> None:
        if not isinstance(document, list):
            _refuse("an array", document)
        if document:
            _write_long(len(document), out)
        for place, one in enumerate(document):
            try:
                item(one, out)
            except _Misfit as error:
                raise error.inside(str(place)) from None
        out.append(0)

    return write


def _map_writer(value: Write) -> Write:
    def write(document: Any, out: bytearray) -> None:
        if not isinstance(document, dict):
            _refuse("an object", document)
        if document:
            _write_long(len(document), out)
        for key, one in document.items():
            _write_string(key, out)
            try:
                value(one, out)
            except _Misfit as error:
                raise error.inside(key) from None
        out.append(0)

    return write


def _record_writer(record: str, fields: list[tuple[str, Write]]) -> Write:
    names = {name for name, _ in fields}

    def write(document: Any, out: bytearray) -> None:
        if not isinstance(document, dict):
            _refuse(f"an object ({record})", document)
        if document.keys() != names:
            _refuse_fields(record, names, document)
        for name, one in fields:
            try:
                one(document[name], out)
            except _Misfit as error:
                raise error.inside(name) from None

    return write


def _refuse_fields(record: str, names: set[str], document: dict[str, Any]) -> NoReturn:
    missing = sorted(names - document.keys())
    if missing:
        raise _Misfit(f"{record} lacks the field {missing[0]}")
    raise _Misfit(f"{record} has no field {min(document.keys() - names)}")


_PLAIN_WRITERS: Mapping[str, Write] = {
    "null": _write_null,
    "boolean": _write_boolean,
    "int": _whole_writer("int", 31),
    "long": _whole_writer("long", 63),
    "float": _float_writer(_FLOAT),
    "double": _float_writer(_DOUBLE),
    "bytes": _write_bytes,
    "string": _write_string,
}


@dataclass(slots=True, kw_only=True)
class _Input:
    """Bytes, and how far they are read."""

    data: bytes
    at: int
    items_left: int  # A block says how many items follow, and an item may take no byte at all.

    def take(self, count: int) -> bytes:
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise DecodeError("the bytes are not of the Avro schema: they end too early")
        self.at, start = end, self.at
        return self.data[start:end]

    def long(self) -> int:
        number = 0
        for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
        raise DecodeError("the bytes are not of the Avro schema: a number has more than ten bytes")

    def block(self) -> int:
        """How many items of an array or a map come next; none at its end."""
        count = self.long()
        if count < 0:
            count = -count
            self.long()  # The size in bytes, for those who skip it.
        if count > self.items_left:
            raise DecodeError(f"an array or a map cannot have {count} more items here")
        self.items_left -= count
        return count


class _Readers:
    """Makes the function that reads a type."""

    def __init__(self, named: Mapping[str, Schema]) -> None:
        self._named = named
        self._made: dict[str, Read] = {}

    def of(self, schema: Schema) -> Read:
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return _PLAIN_READERS[schema] if schema in _PLAIN_READERS else self._by_name(schema)
        kind = schema["type"]
        if kind in NAMED:
            return self._by_name(schema["name"])
        if kind == "array":
            return _array_reader(self.of(schema["items"]))
        if kind == "map":
            return _map_reader(self.of(schema["values"]))
        return self.of(kind)

    def _by_name(self, name: str) -> Read:
        if name not in self._made:
            made: list[Read] = []
            self._made[name] = lambda source: made[0](source)
            made.append(self._declared(_found(self._named, name)))
            self._made[name] = made[0]
        return self._made[name]

    def _declared(self, schema: Schema) -> Read:
        match schema["type"]:
            case "enum":
                return _enum_reader(schema["symbols"])
            case "fixed":
                size = int(schema["size"])
                return lambda source: source.take(size).decode("latin-1")
            case _:
                fields = [(str(one["name"]), self.of(one["type"])) for one in schema["fields"]]
                return lambda source: {name: read(source) for name, read in fields}

    def _union(self, branches: list[Schema]) -> Read:
        readers = [(_branch_name(branch), self.of(branch)) for branch in branches]

        def read(source: _Input) -> Any:
            place = source.long()
            if not 0 <= place < len(readers):
                raise DecodeError(f"a union has {len(readers)} types, the bytes name type {place}")
            name, reader = readers[place]
            return None if name == "null" else {name: reader(source)}

        return read


def _read_boolean(source: _Input) -> bool:
    byte = source.take(1)[0]
    if byte > 1:
        raise DecodeError(f"the bytes are not of the Avro schema: {byte} is no boolean")
    return byte == 1


def _read_string(source: _Input) -> str:
    try:
        return source.take(source.long()).decode()
    except UnicodeDecodeError:
        raise DecodeError("the bytes are not of the Avro schema: a text is not UTF-8") from None


def _whole_reader(kind: str, bits: int) -> Read:
    low, high = -(1 << bits), (1 << bits) - 1

    def read(source: _Input) -> int:
        number = source.long()
        if not low <= number <= high:
            raise DecodeError(f"the bytes are not of the Avro schema: {number} is no {kind}")
        return number

    return read


def _float_reader(form: struct.Struct) -> Read:
    def read(source: _Input) -> float | str:
        number = form.unpack(source.take(form.size))[0]
        if math.isfinite(number):
            return float(number)
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"

    return read


def _enum_reader(symbols: list[str]) -> Read:
    def read(source: _Input) -> str:
        place = source.long()
        if not 0 <= place < len(symbols):
            raise DecodeError(f"an enum has {len(symbols)} symbols, the bytes name symbol {place}")
        return symbols[place]

    return read


def _array_reader(item: Read) -> Read:
    def read(source: _Input) -> list[Any]:
        found: list[Any] = []
        while count := source.block():
            found += [item(source) for _ in range(count)]
        return found

    return read


def _map_reader(value: Read) -> Read:
    def read(source: _Input) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while count := source.block():
            for _ in range(count):
                key = _read_string(source)
                found[key] = value(source)
        return found

    return read


_PLAIN_READERS: Mapping[str, Read] = {
    "null": lambda source: None,
    "boolean": _read_boolean,
    "int": _whole_reader("int", 31),
    "long": _whole_reader("long", 63),
    "float": _float_reader(_FLOAT),
    "double": _float_reader(_DOUBLE),
    "bytes": lambda source: source.take(source.long()).decode("latin-1"),
    "string": _read_string,
}
