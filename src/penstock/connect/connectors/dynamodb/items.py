"""Items of DynamoDB as values of Connect: schemas are derived from what items hold.

DynamoDB knows the types of a table's key alone, and every item brings its own attributes. So the
schema of a record is that of its images: a field for each attribute, optional because the next item
may not have it. Where one attribute holds values of several types, as the elements of a list may,
no schema of Connect fits all of them, and each is told as JSON.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from penstock.connect.connectors.changes.decimals import DecimalMode, decimal_codec
from penstock.connect.errors.kinds import DataError
from penstock.connect.values.schema import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaType,
    array_schema,
    struct_schema,
)
from penstock.connect.values.struct import StructValue

Attribute = Mapping[str, Any]  # One type with its value: {"N": "1.5"}.
Item = Mapping[str, Attribute]
# The types of a value, so that equal ones share a schema: a type alone, a list with the shape of
# its elements, or a map with those of its entries.
Shape = tuple[Any, ...]

_JSON = "JSON"
_SETS = {"SS": "S", "NS": "N", "BS": "B"}
_TYPES = frozenset({"S", "N", "B", "BOOL", "NULL", "L", "M", *_SETS})
_JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_NO_NAME = re.compile(r"[^A-Za-z0-9_]")
OPTIONAL_JSON = Schema(
    type=SchemaType.STRING, name="io.debezium.data.Json", version=1, optional=True
)


def shape_of(values: Iterable[Attribute]) -> Shape:
    """The shape that all of the values have; nulls fit every one."""
    parts: dict[str, list[Any]] = {}
    for one in values:
        kind, value = _typed(one)
        parts.setdefault(kind, []).append(value)
    parts.pop("NULL", None)
    if len(parts) != 1:
        return (_JSON,) if parts else ("NULL",)
    ((kind, held),) = parts.items()
    if kind == "L":
        return "L", shape_of(one for each in held for one in each)
    return ("M", _entries(held)) if kind == "M" else (kind,)


def item_shape(items: Sequence[Item]) -> Shape:
    """The shape of a record's images together."""
    return "M", _entries(items)


def _entries(maps: Sequence[Mapping[str, Attribute]]) -> tuple[tuple[str, Shape], ...]:
    names = sorted({name for each in maps for name in each})
    return tuple((name, shape_of(each[name] for each in maps if name in each)) for name in names)


@lru_cache(maxsize=4096)
def schema_of_shape(shape: Shape, name: str, decimals: DecimalMode) -> Schema:
    """The schema of a shape; `name` is for structs, which registries want named."""
    kind = shape[0]
    if kind == "M":
        fields = {
            one: schema_of_shape(part, f"{name}.{_NO_NAME.sub('_', one)}", decimals)
            for one, part in shape[1]
        }
        return struct_schema(fields, name=name, optional=True)
    if kind == "L":
        return array_schema(schema_of_shape(shape[1], name, decimals), optional=True)
    if kind in _SETS:
        return array_schema(scalar_schema(_SETS[kind], decimals), optional=True)
    if kind == _JSON:
        return OPTIONAL_JSON
    return OPTIONAL_STRING_SCHEMA if kind == "NULL" else scalar_schema(kind, decimals).as_optional()


def scalar_schema(kind: str, decimals: DecimalMode) -> Schema:
    """The schema of a type that keys and sets can have, or of BOOL."""
    if kind == "N":
        return decimal_codec(decimals, None, None)[0]
    return {"S": STRING_SCHEMA, "B": BYTES_SCHEMA, "BOOL": BOOLEAN_SCHEMA}[kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReader:
    """Makes values of attributes, with numbers as the settings want them."""

    decimals: DecimalMode

    def struct(self, schema: Schema, item: Item) -> StructValue:
        """An item by a schema that was made for it."""
        values = [
            None if one.name not in item else self.value(one.schema, item[one.name])
            for one in schema.fields
        ]
        return StructValue(schema, tuple(values))

    def value(self, schema: Schema, attribute: Attribute) -> Any:
        """The value of an attribute by a schema that was made for it."""
        kind, value = _typed(attribute)
        if kind == "NULL":
            return None
        if schema.name == OPTIONAL_JSON.name:
            return json_text(attribute)
        if kind == "M":
            return self.struct(schema, value)
        if kind == "L":
            assert schema.value_schema is not None
            return [self.value(schema.value_schema, one) for one in value]
        if kind in _SETS:
            assert schema.value_schema is not None
            inner = schema.value_schema
            return [self._scalar(inner, _SETS[kind], one) for one in sorted(value)]
        return self._scalar(schema, kind, value)

    def _scalar(self, schema: Schema, kind: str, value: Any) -> Any:
        if kind != "N":
            return value
        try:
            number = decimal_codec(self.decimals, None, None)[1](value)
        except (ArithmeticError, ValueError) as error:
            raise DataError(f"{value!r:.100} is no number: {error}") from error
        is_struct = isinstance(number, StructValue)  # Whose schema says whether it is optional.
        return StructValue(schema, number.values) if is_struct else number


def json_text(attribute: Attribute) -> str:
    """An attribute as JSON: numbers keep all their digits, bytes are Base64, sets are lists."""
    kind, value = _typed(attribute)
    if kind == "M":
        return item_json(value)
    if kind == "L":
        return f"[{','.join(json_text(one) for one in value)}]"
    if kind in _SETS:
        return f"[{','.join(json_text({_SETS[kind]: one}) for one in sorted(value))}]"
    if kind == "N" and _JSON_NUMBER.fullmatch(value):
        return str(value)
    if kind == "B":
        return json.dumps(base64.b64encode(value).decode())
    return json.dumps(None if kind == "NULL" else value, ensure_ascii=False)


def item_json(item: Item) -> str:
    """A whole item as JSON, its attributes in the order of their names."""
    parts = (
        f"{json.dumps(name, ensure_ascii=False)}:{json_text(item[name])}" for name in sorted(item)
    )
    return f"{{{','.join(parts)}}}"


def _typed(attribute: Attribute) -> tuple[str, Any]:
    if len(attribute) == 1:
        ((kind, value),) = attribute.items()
        if kind in _TYPES:
            return kind, value
    raise DataError(f"{dict(attribute)!r:.200} is no attribute of a type that is known here")
