"""JSON with declared fields: values that expressions can look into.

A value is what was declared, neither more nor less: other fields are left out, a field that is
missing is None, and one of another type makes the record unreadable. So it means the same here and
in Spark, which reads such values without Python.
"""

import json
import math
from typing import Any

from penstock.streams.values.column_types import ColumnType, Declared, declared_type
from penstock.streams.values.serdes import Serde, SerdeError

JSON_FIELDS = "JSON with fields"
_LONG_MAX, _LONG_MIN = 2**63 - 1, -(2**63)


def json_of(**fields: Declared) -> Serde[Any]:
    """JSON objects of such fields: `json_of(name="string", cents="long", tags=["string"])`."""
    return json_serde(declared_type(fields))


def json_serde(kind: ColumnType) -> Serde[Any]:
    """JSON objects of a struct's fields."""
    return Serde(
        JSON_FIELDS,
        lambda value: json.dumps(
            written(value, kind), separators=(",", ":"), ensure_ascii=False
        ).encode(),
        lambda data: read(data, kind),
        kind,
    )


def json_serde_keeping(kind: ColumnType, extra: str) -> Serde[Any]:
    """The same, with one more field that is kept as it is."""

    def write(value: Any) -> bytes:
        row = written(value, kind)
        row |= {extra: value[extra]} if extra in value else {}
        return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()

    def parse(data: bytes) -> Any:
        kept = json.loads(data).get(extra)
        return read(data, kind) | ({} if kept is None else {extra: kept})

    return Serde(JSON_FIELDS, write, parse, kind)


def read(data: bytes, kind: ColumnType) -> Any:
    """The declared fields of a JSON text; SerdeError where it is not of the type."""
    value = json.loads(data.decode(), parse_constant=_refuse)
    if not isinstance(value, dict):
        raise SerdeError("the JSON is no object")
    return _fitted(value, kind)


def written(value: Any, kind: ColumnType) -> Any:
    """A value of the type as JSON has it; numbers that JSON has not become null."""
    if value is None:
        return None
    if kind.name == "struct":
        return {name: written(value.get(name), one) for name, one in kind.fields}
    if kind.element is not None:
        return [written(one, kind.element) for one in value]
    if kind.name == "double":
        return float(value) if math.isfinite(value) else None
    return value


def _fitted(value: Any, kind: ColumnType) -> Any:
    match kind.name, value:
        case _, None:
            return None
        case "struct", dict():
            return {name: _field(value, name, one) for name, one in kind.fields}
        case "list", list():
            assert kind.element is not None
            return [_fitted(one, kind.element) for one in value]
        case ("boolean", bool()) | ("string", str()):
            return value
        case "long", int() if not isinstance(value, bool) and _LONG_MIN <= value <= _LONG_MAX:
            return value
        case "double", int() | float() if not isinstance(value, bool):
            return float(value)
    raise SerdeError(f"{value!r} is no {kind}")


def _field(value: dict[str, Any], name: str, kind: ColumnType) -> Any:
    try:
        return _fitted(value.get(name), kind)
    except (SerdeError, OverflowError) as error:
        raise SerdeError(f"the field {name}: {error}") from None


def _refuse(constant: str) -> None:
    raise SerdeError(f"{constant} is not JSON")
