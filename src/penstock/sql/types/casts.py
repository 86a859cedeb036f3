"""CAST: which types become which, and the function that does it for a value.

A cast that ksqlDB does not have is refused when the statement is read (CastRefused). A value that
cannot be cast is a RowFailure.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final, TypeAlias

from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayOf,
    DataType,
    DecimalOf,
    MapOf,
    StructOf,
    is_number,
)
from penstock.sql.types.moments import parse_date, parse_moment, parse_time
from penstock.sql.types.numbers import exact_of, fitted, is_within, truncated, wrapped
from penstock.sql.types.text import text_of

CastFunction: TypeAlias = Callable[[Any], Any]
_NUMBER_CHARACTERS_MAX: Final = 400


class CastRefused(ValueError):
    """There is no such cast."""


def cast_to(source: DataType | None, target: DataType) -> CastFunction:
    """The function that casts values, NULL to NULL; raises CastRefused."""
    if source is None or source == target:
        return _as_it_is
    return partial(_unless_null, _cast_of(source, target))


def _as_it_is(value: Any) -> Any:
    return value


def _unless_null(cast: CastFunction, value: Any) -> Any:
    return None if value is None else cast(value)


def _cast_of(source: DataType, target: DataType) -> CastFunction:
    if target == STRING and source != BYTES:
        return partial(text_of, kind=source)
    if is_number(source) and is_number(target):
        return _to_number(target)
    if source == STRING and (cast := _from_string(target)) is not None:
        return cast
    if (moved := _MOMENTS.get((source, target))) is not None:
        return moved
    return _cast_of_parts(source, target)


def _cast_of_parts(source: DataType, target: DataType) -> CastFunction:
    match source, target:
        case ArrayOf(), ArrayOf():
            return partial(_array, _inner(source.item, target.item))
        case MapOf(), MapOf():
            key, value = _inner(source.key, target.key), _inner(source.value, target.value)
            return partial(_map, key, value)
        case StructOf(), StructOf():
            known = dict(source.fields)
            casts = {n: _inner(known[n], k) if n in known else _nothing for n, k in target.fields}
            return partial(_struct, casts)
    raise CastRefused(f"Cast of {source} to {target} is not supported")


def _inner(source: DataType | None, target: DataType | None) -> CastFunction:
    return _as_it_is if target is None else cast_to(source, target)


def _nothing(_value: Any) -> None:
    return None


def _array(cast: CastFunction, value: list[Any]) -> list[Any]:
    return [cast(one) for one in value]


def _map(key: CastFunction, cast: CastFunction, value: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key(k): cast(v) for k, v in value.items()}


def _struct(casts: Mapping[str, CastFunction], value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: cast(value.get(name)) for name, cast in casts.items()}


# Numbers


def _to_number(target: DataType) -> CastFunction:
    if isinstance(target, DecimalOf):
        return lambda value: fitted(_finite(value), target)
    return _double if target == DOUBLE else partial(_whole, target)


def _finite(value: Any) -> Decimal:
    if value in (float("inf"), float("-inf")) or value != value:
        raise RowFailure(f"{value} is not a number that a DECIMAL holds")
    return exact_of(value)


def _double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _whole(kind: DataType, value: Any) -> int:
    return truncated(value, kind) if isinstance(value, float) else wrapped(int(value), kind)


# Strings


def _from_string(target: DataType) -> CastFunction | None:
    if isinstance(target, DecimalOf):
        return lambda text: fitted(decimal_from(text), target)
    return _STRINGS.get(target)


def decimal_from(text: str) -> Decimal:
    """The number a string is; raises RowFailure."""
    try:
        if len(text) <= _NUMBER_CHARACTERS_MAX and "_" not in text:
            return Decimal(text.strip())
    except InvalidOperation:
        pass
    raise RowFailure(f"Cannot cast {text[:80]!r} to DECIMAL")


def _whole_from(kind: DataType, text: str) -> int:
    stripped = text.strip()
    if len(stripped) <= _NUMBER_CHARACTERS_MAX and stripped.lstrip("+-").isdecimal():
        try:
            if is_within(value := int(stripped), kind):
                return value
        except ValueError:
            pass
    raise RowFailure(f'For input string: "{text[:80]}"')


def double_from(text: str) -> float:
    """The double a string is, with Java's words for what is no number; raises RowFailure."""
    stripped = text.strip()
    if stripped in _NOT_FINITE:
        return _NOT_FINITE[stripped]
    try:
        if stripped[:1] in set("+-.0123456789") and "_" not in stripped and "n" not in stripped:
            return float(stripped.rstrip("dDfF"))
    except ValueError:
        pass
    raise RowFailure(f'For input string: "{text[:80]}"')


_NOT_FINITE: Final = {
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "+Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_STRINGS: Final[dict[DataType, CastFunction]] = {
    BOOLEAN: lambda text: text.strip().lower() == "true",
    INTEGER: partial(_whole_from, INTEGER),
    BIGINT: partial(_whole_from, BIGINT),
    DOUBLE: double_from,
    DATE: parse_date,
    TIME: parse_time,
    TIMESTAMP: parse_moment,
}


# Dates and times


def _midnight(value: date) -> datetime:
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


def _time_of(value: datetime) -> time:
    return value.timetz().replace(tzinfo=None)


_MOMENTS: Final[dict[tuple[DataType, DataType], CastFunction]] = {
    (TIMESTAMP, DATE): lambda value: value.date(),
    (TIMESTAMP, TIME): _time_of,
    (DATE, TIMESTAMP): _midnight,
}
