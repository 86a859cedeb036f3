"""Schemas of Connect's values, as data.

    Schema(type=SchemaType.STRUCT, name="Price", fields=(SchemaField("cents", INT64_SCHEMA), ...))

What a value is in Python, by its schema:

| schema                          | value                                                   |
| ------------------------------- | ------------------------------------------------------- |
| INT8, INT16, INT32, INT64       | int                                                     |
| FLOAT32, FLOAT64, BOOLEAN       | float, float, bool                                      |
| STRING, BYTES                   | str, bytes                                              |
| ARRAY, MAP                      | list, dict                                              |
| STRUCT                          | `StructValue` (`values/struct.py`)                      |
| the logical types               | date, time, datetime in UTC, decimal (`values/logical.py`) |

Without a schema (None), a value is what JSON has: None, bool, int, float, str, bytes, list, dict.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class SchemaType(StrEnum):
    """The types of Connect, by the names Connect prints."""

    INT8 = "INT8"
    INT16 = "INT16"
    INT32 = "INT32"
    INT64 = "INT64"
    FLOAT32 = "FLOAT32"
    FLOAT64 = "FLOAT64"
    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    BYTES = "BYTES"
    ARRAY = "ARRAY"
    MAP = "MAP"
    STRUCT = "STRUCT"

    @property
    def is_primitive(self) -> bool:
        """Whether it has no parts."""
        return self not in (SchemaType.ARRAY, SchemaType.MAP, SchemaType.STRUCT)


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A field of a struct; its place is its index in `Schema.fields`."""

    name: str
    schema: "Schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The schema of a value. It never changes, so whoever derives something from it keeps that."""

    type: SchemaType
    optional: bool = False
    name: str | None = None  # None: not named.
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    default: object | None = field(default=None, hash=False)  # None: no default.
    fields: tuple[SchemaField, ...] = ()
    key_schema: "Schema | None" = None
    value_schema: "Schema | None" = None
    _places: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = {one.name: at for at, one in enumerate(self.fields)}
        object.__setattr__(self, "_places", places)

    def place(self, name: str) -> int | None:
        """Where a field is; None: there is none of this name."""
        return self._places.get(name)

    def field(self, name: str) -> SchemaField | None:
        """A field by its name; None: there is none."""
        at = self._places.get(name)
        return None if at is None else self.fields[at]

    def as_optional(self) -> "Schema":
        """The same schema, and null is allowed."""
        return self if self.optional else replace(self, optional=True)


INT8_SCHEMA = Schema(type=SchemaType.INT8)
INT16_SCHEMA = Schema(type=SchemaType.INT16)
INT32_SCHEMA = Schema(type=SchemaType.INT32)
INT64_SCHEMA = Schema(type=SchemaType.INT64)
FLOAT32_SCHEMA = Schema(type=SchemaType.FLOAT32)
FLOAT64_SCHEMA = Schema(type=SchemaType.FLOAT64)
BOOLEAN_SCHEMA = Schema(type=SchemaType.BOOLEAN)
STRING_SCHEMA = Schema(type=SchemaType.STRING)
BYTES_SCHEMA = Schema(type=SchemaType.BYTES)
OPTIONAL_INT8_SCHEMA = INT8_SCHEMA.as_optional()
OPTIONAL_INT16_SCHEMA = INT16_SCHEMA.as_optional()
OPTIONAL_INT32_SCHEMA = INT32_SCHEMA.as_optional()
OPTIONAL_INT64_SCHEMA = INT64_SCHEMA.as_optional()
OPTIONAL_FLOAT32_SCHEMA = FLOAT32_SCHEMA.as_optional()
OPTIONAL_FLOAT64_SCHEMA = FLOAT64_SCHEMA.as_optional()
OPTIONAL_BOOLEAN_SCHEMA = BOOLEAN_SCHEMA.as_optional()
OPTIONAL_STRING_SCHEMA = STRING_SCHEMA.as_optional()
OPTIONAL_BYTES_SCHEMA = BYTES_SCHEMA.as_optional()


def struct_schema(
    fields: Mapping[str, Schema],
    *,
    name: str | None = None,
    version: int | None = None,
    doc: str | None = None,
    optional: bool = False,
) -> Schema:
    """The schema of a struct with these fields, in their order."""
    listed = tuple(SchemaField(one, schema) for one, schema in fields.items())
    return Schema(
        type=SchemaType.STRUCT,
        name=name,
        version=version,
        doc=doc,
        optional=optional,
        fields=listed,
    )


def array_schema(items: Schema, *, optional: bool = False) -> Schema:
    """The schema of a list."""
    return Schema(type=SchemaType.ARRAY, value_schema=items, optional=optional)


def map_schema(keys: Schema, values: Schema, *, optional: bool = False) -> Schema:
    """The schema of a dict."""
    return Schema(type=SchemaType.MAP, key_schema=keys, value_schema=values, optional=optional)
