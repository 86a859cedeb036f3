"""JSON: an object with a field for each column, or one bare value.

Fields are found by their names, then without regard to case. Numbers may come as strings; anything
can be read as a string. What does not fit its column's type makes the record unreadable.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from penstock.sql.catalog.relations import RelationColumn
from penstock.sql.formats import moments
from penstock.sql.formats.codec import FormatCodec, FormatMisfit, Values
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import ArrayOf, DataType, DecimalOf, MapOf, StructOf
from penstock.sql.types.numbers import fitted
from penstock.sql.types.text import double_text

_LIMITS = {"INTEGER": 1 << 31, "BIGINT": 1 << 63}


def json_codec(columns: Sequence[RelationColumn], *, is_wrapped: bool = True) -> FormatCodec:
    """The codec of the columns; a bare value has one column."""
    names = [column.name for column in columns]
    kinds = [column.type for column in columns]
    if not is_wrapped and len(columns) == 1:
        return FormatCodec(
            _write_bare, lambda data: [json_value(_loaded(data), kinds[0], names[0])]
        )

    def write(values: Values) -> bytes:
        return json_text(dict(zip(names, values, strict=True))).encode()

    def read(data: bytes) -> list[Any]:
        return fields_of(_loaded(data), names, kinds)

    return FormatCodec(write, read)


def _write_bare(values: Values) -> bytes | None:
    return None if values[0] is None else json_text(values[0]).encode()


def _loaded(data: bytes) -> Any:
    try:
        return json.loads(data, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise FormatMisfit(f"the bytes are not JSON: {error}") from None


def fields_of(found: Any, names: Sequence[str], kinds: Sequence[DataType | None]) -> list[Any]:
    """The values of an object's fields; those that are missing are NULL."""
    if not isinstance(found, dict):
        raise FormatMisfit(f"an object is expected, not {json_text(found)[:80]}")
    if not all(name in found for name in names):
        lower = {key.lower(): value for key, value in reversed(list(found.items()))}
        found = {name: found.get(name, lower.get(name.lower())) for name in names}
    return [json_value(found[name], kind, name) for name, kind in zip(names, kinds, strict=True)]


def json_value(found: Any, kind: DataType | None, where: str) -> Any:
    """A value of JSON in the type of its column."""
    if found is None:
        return None
    match kind:
        case ArrayOf():
            if isinstance(found, list):
                return [json_value(one, kind.item, where) for one in found]
        case MapOf():
            if isinstance(found, dict):
                return {
                    json_value(key, kind.key, where): json_value(value, kind.value, where)
                    for key, value in found.items()
                }
        case StructOf():
            names = [name for name, _ in kind.fields]
            values = fields_of(found, names, [one for _, one in kind.fields])
            return dict(zip(names, values, strict=True))
        case DecimalOf():
            return _decimal(found, kind, where)
        case _:
            return _primitive(found, str(kind), where)
    raise _misfit(found, kind, where)


def _primitive(found: Any, name: str, where: str) -> Any:
    read = _READERS[name]
    try:
        return read(found)
    except (ValueError, TypeError, ArithmeticError, binascii.Error):
        raise _misfit(found, name, where) from None


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
        if isinstance(found, bool) or not isinstance(found, int | Decimal | str):
            raise TypeError
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
            return f"{value:f}"
        case dict():
            return "{" + ",".join(f"{_key(k)}:{json_text(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(json_text(one) for one in value) + "]"
    return json.dumps(_plain(value), ensure_ascii=False)


def _key(key: Any) -> str:
    return json.dumps(key if isinstance(key, str) else json_text(key), ensure_ascii=False)


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
