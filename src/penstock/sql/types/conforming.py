"""Values from outside made to fit a type: a user's function may return what it likes."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final

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
    WHOLE,
    ArrayOf,
    DataType,
    DecimalOf,
    MapOf,
    StructOf,
)
from penstock.sql.types.numbers import exact_of, fitted, is_within

_CLASSES: Final[dict[DataType, tuple[type, ...]]] = {
    BOOLEAN: (bool,),
    INTEGER: (int,),
    BIGINT: (int,),
    DOUBLE: (float, int),
    STRING: (str,),
    BYTES: (bytes, bytearray, memoryview),
    DATE: (date,),
    TIME: (time,),
    TIMESTAMP: (datetime,),
}


def conformed(value: Any, kind: DataType | None) -> Any:
    """The value as one of the type; raises ValueError if it is none."""
    if value is None or kind is None:
        return value
    match kind:
        case ArrayOf():
            return [conformed(one, kind.item) for one in _checked(value, kind, list, tuple)]
        case MapOf():
            found = _checked(value, kind, Mapping)
            return {conformed(k, kind.key): conformed(v, kind.value) for k, v in found.items()}
        case StructOf():
            return _struct(value, kind)
        case DecimalOf():
            return fitted(exact_of(_checked(value, kind, Decimal, int, float)), kind)
    return _primitive(value, kind)


def _struct(value: Any, kind: StructOf) -> dict[str, Any]:
    """A mapping, or any object with such attributes."""
    if isinstance(value, Mapping):
        return {name: conformed(value.get(name), one) for name, one in kind.fields}
    if not all(hasattr(value, name) for name, _ in kind.fields):
        raise ValueError(f"{_shown(value)} is not {kind}")
    return {name: conformed(getattr(value, name), one) for name, one in kind.fields}


def _primitive(value: Any, kind: DataType) -> Any:
    found = _checked(value, kind, *_CLASSES[kind])
    if isinstance(found, bool) != (kind == BOOLEAN):
        raise ValueError(f"{_shown(value)} is not {kind}")
    if kind in WHOLE and not is_within(found, kind):
        raise ValueError(f"{_shown(value)} does not fit in {kind}")
    if kind == TIMESTAMP:
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    if kind == DATE and isinstance(found, datetime):
        return found.date()
    if kind == BYTES:
        return bytes(found)
    return float(found) if kind == DOUBLE else found


def _checked(value: Any, kind: DataType, *classes: type) -> Any:
    if not isinstance(value, classes):
        raise ValueError(f"{_shown(value)} is not {kind}")
    return value


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.80}"
