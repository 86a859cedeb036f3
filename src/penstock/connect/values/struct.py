"""Values of struct schemas, and the check of a value against its schema."""

import decimal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.logical import DATE, DECIMAL, TIME, TIMESTAMP
from penstock.connect.values.schema import Schema, SchemaField, SchemaType


@dataclass(frozen=True, slots=True)
class StructValue:
    """A schema with a value for each of its fields, in their order.

    `of` checks the values; the constructor takes them as they are, for whoever has just read them
    by this very schema.
    """

    schema: Schema
    values: tuple[Any, ...]

    @classmethod
    def of(cls, schema: Schema, given: Mapping[str, Any]) -> "StructValue":
        """Values by the names of their fields; one that is left out is null."""
        unknown = [name for name in given if schema.place(name) is None]
        if unknown:
            raise DataError(f"{unknown[0]} is not a valid field name")
        made = cls(schema, tuple(given.get(one.name) for one in schema.fields))
        check_value(schema, made)
        return made

    def __getitem__(self, name: str) -> Any:
        """The value of a field, or its default where it is null."""
        at = self._place(name)
        value = self.values[at]
        return self.schema.fields[at].schema.default if value is None else value

    def get_without_default(self, name: str) -> Any:
        """The value of a field as it is."""
        return self.values[self._place(name)]

    def items(self) -> Iterator[tuple[SchemaField, Any]]:
        """Fields with their values, or defaults where those are null."""
        for one, value in zip(self.schema.fields, self.values, strict=True):
            yield one, one.schema.default if value is None else value

    def _place(self, name: str) -> int:
        at = self.schema.place(name)
        if at is None:
            raise DataError(f"{name} is not a valid field name")
        return at


_BOUNDS = {
    SchemaType.INT8: 1 << 7,
    SchemaType.INT16: 1 << 15,
    SchemaType.INT32: 1 << 31,
    SchemaType.INT64: 1 << 63,
}
_CLASSES: dict[SchemaType, tuple[type, ...]] = {
    SchemaType.FLOAT32: (float,),
    SchemaType.FLOAT64: (float,),
    SchemaType.BOOLEAN: (bool,),
    SchemaType.STRING: (str,),
    SchemaType.BYTES: (bytes, bytearray, memoryview),
    SchemaType.ARRAY: (list, tuple),
    SchemaType.MAP: (dict,),
    SchemaType.STRUCT: (StructValue,),
}
_LOGICAL: dict[str, tuple[type, ...]] = {
    DATE: (date,),
    TIME: (time,),
    TIMESTAMP: (datetime,),
    DECIMAL: (decimal.Decimal,),
}


def check_value(schema: Schema, value: Any, name: str | None = None) -> None:
    """Raise DataError unless the value, with all that is in it, is one of the schema."""
    if value is None:
        _check_null(schema, name)
        return
    if not _is_of(schema, value):
        raise DataError(
            f"Invalid value of class {type(value).__name__} for schema"
            f"{f' {schema.name!r}' if schema.name else ''} with type {schema.type}"
            f"{f' for field: {name!r}' if name else ''}"
        )
    if not schema.type.is_primitive:
        _check_parts(schema, value, name)


def _check_null(schema: Schema, name: str | None) -> None:
    if not schema.optional and schema.default is None:
        where = f"required field: {name!r}" if name else "required value"
        raise DataError(f"Invalid value: null used for {where}, schema type: {schema.type}")


def _is_of(schema: Schema, value: Any) -> bool:
    logical = _LOGICAL.get(schema.name or "")
    if logical is not None:
        return isinstance(value, logical) and not (
            schema.name == DATE and isinstance(value, datetime)
        )
    bound = _BOUNDS.get(schema.type)
    if bound is None:
        return isinstance(value, _CLASSES[schema.type])
    return isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound


def _check_parts(schema: Schema, value: Any, name: str | None) -> None:
    if schema.type is SchemaType.STRUCT:
        if value.schema is not schema and value.schema != schema:
            raise DataError(
                f"Struct schemas do not match{f' for field: {name!r}' if name else ''}."
            )
        for one, part in zip(value.schema.fields, value.values, strict=True):
            check_value(one.schema, part, one.name)
        return
    if schema.type is SchemaType.MAP and schema.key_schema is not None:
        for key in value:
            check_value(schema.key_schema, key, name)
    if schema.value_schema is not None:
        for part in value.values() if schema.type is SchemaType.MAP else value:
            check_value(schema.value_schema, part, name)
