"""JSON: an object with a field for each column, or one bare value.

Fields are found by their names, then without regard to case. Numbers may come as strings; anything
can be read as a string. What does not fit its column's type makes the record unreadable.
"""

import base64
import binascii
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring
from typing import Any

from penstock.sql.catalog.relations import RelationColumn
from penstock.sql.formats import moments
from penstock.sql.formats.codec import FormatCodec, FormatMisfit, Values
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import ArrayOf, DataType, DecimalOf, MapOf, StructOf
from penstock.sql.types.numbers import fitted
from penstock.sql.types.text import double_text

Reader = Callable[[Any], Any]
FieldsReader = Callable[[Any], list[Any]]
_LIMITS = {"INTEGER": 1 << 31, "BIGINT": 1 << 63}
_DECODER = json.JSONDecoder(parse_float=Decimal)  # One for all: making one takes as long as a row.
_WHOLE_DIGITS_MAX = 20
_DIGITS_MAX = 10_000  # Of an exact number; one with more is written with its exponent.
_PLAIN = 0x80  # Bytes from here on may be a mark of another encoding.
_SPELLINGS_MAX = 64  # Of objects with other fields each time no more are remembered.


def json_codec(columns: Sequence[RelationColumn], *, is_wrapped: bool = True) -> FormatCodec:
    """The codec of the columns; a bare value has one column."""
    names = [column.name for column in columns]
    kinds = [column.type for column in columns]
    if not is_wrapped and len(columns) == 1:
        read_bare = _reader(kinds[0], names[0])
        return FormatCodec(_write_bare, lambda data: [read_bare(_loaded(data))])
    read_fields = _fields_reader(names, kinds)
    fronts = [f"{',' if at else '{'}{_key(name)}:" for at, name in enumerate(names)]

    def write(values: Values) -> bytes:
        cells = map(json_text, values)
        return ("".join(map(operator.add, fronts, cells)) + "}").encode() if fronts else b"{}"

    return FormatCodec(write, lambda data: read_fields(_loaded(data)))


def _write_bare(values: Values) -> bytes | None:
    return None if values[0] is None else json_text(values[0]).encode()


def _loaded(data: bytes) -> Any:
    try:
        if len(data) > 1 and data[1] and 0 < data[0] < _PLAIN:
            return _DECODER.decode(data.decode("utf-8", "surrogatepass"))
        return json.loads(data, parse_float=Decimal)  # Perhaps of another encoding.
    except InvalidOperation:
        return _loaded_with_far_numbers(data)
    except (ValueError, RecursionError) as error:
        raise FormatMisfit(f"the bytes are not JSON: {error}") from None


def _loaded_with_far_numbers(data: bytes) -> Any:
    """The same where an exponent is more than decimals have."""
    try:
        return json.loads(data, parse_float=_near_number)
    except (ValueError, RecursionError) as error:
        raise FormatMisfit(f"the bytes are not JSON: {error}") from None


def _near_number(text: str) -> Decimal:
    """A number that is too small is 0; ValueError for one that is too large."""
    try:
        return Decimal(text)
    except InvalidOperation:
        found = float(text)
    if found:
        raise ValueError(f"the number {text[:80]} is too large")
    return Decimal(found)


def _fields_reader(names: Sequence[str], kinds: Sequence[DataType | None]) -> FieldsReader:
    """What makes the values of an object's fields; those that are missing are NULL."""
    readers = [_reader(kind, name) for name, kind in zip(names, kinds, strict=True)]
    spellings: dict[tuple[str, ...], list[Any]] = {}  # The fields to take, by those there are.

    def read(found: Any) -> list[Any]:
        if not isinstance(found, dict):
            raise FormatMisfit(f"an object is expected, not {json_text(found)[:80]}")
        fields = tuple(found)
        spelt = spellings.get(fields)
        if spelt is None:
            spelt = fields_spelt(names, fields)
            if len(spellings) < _SPELLINGS_MAX:
                spellings[fields] = spelt
        get = found.get
        return [
            None if (value := get(field)) is None else reader(value)
            for reader, field in zip(readers, spelt, strict=True)
        ]

    return read


def fields_spelt(names: Sequence[str], fields: tuple[str, ...]) -> list[Any]:
    """The field of each name: spelt like it, or else the first in other cases; None: there is none.

    No field is None, so nothing is found under it.
    """
    lower = {field.lower(): field for field in reversed(fields)}
    return [name if name in fields else lower.get(name.lower()) for name in names]


def json_value(found: Any, kind: DataType | None, where: str) -> Any:
    """A value of JSON in the type of its column."""
    return None if found is None else _reader(kind, where)(found)


def _reader(kind: DataType | None, where: str) -> Reader:
    """What makes a value of a type out of one of JSON, null too."""
    match kind:
        case ArrayOf():
            return _array_reader(kind, where)
        case MapOf():
            return _map_reader(kind, where)
        case StructOf():
            names = [name for name, _ in kind.fields]
            read_fields = _fields_reader(names, [one for _, one in kind.fields])
            return _unless_null(lambda found: dict(zip(names, read_fields(found), strict=True)))
        case DecimalOf():
            return _unless_null(lambda found: _decimal(found, kind, where))
    return _primitive_reader(str(kind), where)


def _unless_null(read: Reader) -> Reader:
    return lambda found: None if found is None else read(found)


def _array_reader(kind: ArrayOf, where: str) -> Reader:
    item = _reader(kind.item, where)

    def read(found: Any) -> Any:
        if not isinstance(found, list):
            raise _misfit(found, kind, where)
        return list(map(item, found))

    return _unless_null(read)


def _map_reader(kind: MapOf, where: str) -> Reader:
    read_key, read_value = _reader(kind.key, where), _reader(kind.value, where)

    def read(found: Any) -> Any:
        if not isinstance(found, dict):
            raise _misfit(found, kind, where)
        return {read_key(key): read_value(value) for key, value in found.items()}

    return _unless_null(read)


def _primitive_reader(name: str, where: str) -> Reader:
    convert = _READERS[name]

    def read(found: Any) -> Any:
        if found is None:
            return None
        try:
            return convert(found)
        except (ValueError, TypeError, ArithmeticError, binascii.Error):
            raise _misfit(found, name, where) from None

    return read


def _decimal(found: Any, kind: DecimalOf, where: str) -> Decimal:
    if isinstance(found, bool) or not isinstance(found, int | Decimal | str):
        raise _misfit(found, kind, where)
    try:
        return fitted(Decimal(found), kind)
    except (InvalidOperation, RowFailure):
        raise _misfit(found, kind, where) from None


def _misfit(found: Any, kind: object, where: str) -> FormatMisfit:
    return FormatMisfit(f"{json_text(found)[:80]} is not a {kind}, which {where} is")


def _whole(name: str) -> Callable[[Any], int]:
    limit = _LIMITS[name]

    def read(found: Any) -> int:
        if type(found) is int and -limit <= found < limit:
            return found
        if isinstance(found, bool) or not isinstance(found, int | Decimal | str):
            raise TypeError
        if isinstance(found, Decimal) and found.adjusted() > _WHOLE_DIGITS_MAX:
            raise ValueError  # All its digits may be more than memory holds.
        value = int(found)
        if not -limit <= value < limit:
            raise ValueError
        return value

    return read


def _double(found: Any) -> float:
    if isinstance(found, bool) or not isinstance(found, int | Decimal | str):
        raise TypeError
    return float(found)


def _text(found: Any) -> str:
    return found if isinstance(found, str) else json_text(found)


def _only(kind: type) -> Callable[[Any], Any]:
    def read(found: Any) -> Any:
        if type(found) is not kind:
            raise TypeError
        return found

    return read


def _of_number(make: Callable[[int], Any]) -> Callable[[Any], Any]:
    return lambda found: make(_only(int)(found))


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "BOOLEAN": _only(bool),
    "INTEGER": _whole("INTEGER"),
    "BIGINT": _whole("BIGINT"),
    "DOUBLE": _double,
    "STRING": _text,
    "BYTES": lambda found: base64.b64decode(_only(str)(found), validate=True),
    "TIMESTAMP": _of_number(moments.timestamp_of),
    "DATE": _of_number(moments.date_of),
    "TIME": _of_number(moments.time_of),
}


def json_text(value: Any) -> str:
    """Any value of SQL as JSON: exact numbers stay exact."""
    if type(value) is str:
        return encode_basestring(value)
    if type(value) is int:
        return int.__repr__(value)
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value) if value == value and abs(value) != float("inf") else (
                f'"{double_text(value)}"'
            )  # fmt: skip
        case Decimal():
            return f"{value:f}" if abs(value.adjusted()) < _DIGITS_MAX else str(value)
        case dict():
            return "{" + ",".join(f"{_key(k)}:{json_text(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(json_text(one) for one in value) + "]"
    return json.dumps(_plain(value), ensure_ascii=False)


def _key(key: Any) -> str:
    return encode_basestring(key if isinstance(key, str) else json_text(key))


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return moments.timestamp_ms(value)
        case date():
            return moments.date_days(value)
        case time():
            return moments.time_ms(value)
    return value
