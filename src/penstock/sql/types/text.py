"""Values as text, in the way Java and so ksqlDB writes them."""

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from penstock.sql.types.kinds import ArrayOf, DataType, MapOf, StructOf


def double_text(value: float) -> str:
    """A double as Java's Double.toString writes it: 1.0, 1.0E10, NaN, Infinity."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = f"{Decimal(repr(value)):f}"
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    written = "".join(str(digit) for digit in digits)
    power = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{written[0]}.{written[1:] or '0'}E{power}"


def time_text(value: time) -> str:
    """Hours and minutes; seconds and milliseconds where there are any."""
    if value.microsecond:
        return value.strftime("%H:%M:%S") + f".{value.microsecond // 1000:03d}"
    return value.strftime("%H:%M:%S" if value.second else "%H:%M")


def timestamp_text(value: datetime) -> str:
    """ISO-8601 with milliseconds and without a zone: it is UTC."""
    return f"{date_text(value)}T{value:%H:%M:%S}.{value.microsecond // 1000:03d}"


def date_text(value: date) -> str:
    return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"


def text_of(value: Any, kind: DataType | None) -> str:
    """Any value as text; what lies in an array, map or struct is written by its own type."""
    if value is None:
        return "null"
    match kind:
        case ArrayOf():
            return f"[{', '.join(text_of(one, kind.item) for one in value)}]"
        case MapOf():
            return f"{{{', '.join(_entry(k, v, kind) for k, v in value.items())}}}"
        case StructOf():
            inner = (f"{n}={text_of(value.get(n), k)}" for n, k in kind.fields)
            return f"Struct{{{','.join(inner)}}}"
    return plain_text(value)


def _entry(key: Any, value: Any, kind: MapOf) -> str:
    return f"{text_of(key, kind.key)}={text_of(value, kind.value)}"


def plain_text(value: Any) -> str:
    """A value without parts as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    writer = _WRITERS.get(type(value))
    return writer(value) if writer else str(value)


_WRITERS: dict[type, Callable[[Any], str]] = {
    float: double_text,
    Decimal: lambda value: f"{value:f}",
    datetime: timestamp_text,
    date: date_text,
    time: time_text,
}
