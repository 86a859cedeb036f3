"""What the transforms of one side share: key or value, with a schema or without."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import ConfigEntry, ConfigType, Importance
from penstock.connect.plugins.contract import Transform
from penstock.connect.records import ConnectRecord
from penstock.connect.values.schema import Schema, SchemaField, SchemaType
from penstock.connect.values.struct import StructValue

REPLACE_NULL = ConfigEntry(
    "replace.null.with.default",
    ConfigType.BOOLEAN,
    True,
    Importance.MEDIUM,
    "Whether a field that is null is taken as its default, where it has one.",
)


class SidedTransform(Transform):
    """A transform of the key or of the value."""

    IS_KEY: ClassVar[bool] = False

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._replaces_null = config.get(REPLACE_NULL.name, True)

    def schema_of(self, record: ConnectRecord) -> Schema | None:
        """The schema of its side."""
        return record.key_schema if self.IS_KEY else record.value_schema

    def value_of(self, record: ConnectRecord) -> Any:
        """The value of its side."""
        return record.key if self.IS_KEY else record.value

    def changed(self, record: ConnectRecord, schema: Schema | None, value: Any) -> ConnectRecord:
        """The record with another schema and value on its side."""
        if self.IS_KEY:
            return replace(record, key_schema=schema, key=value)
        return replace(record, value_schema=schema, value=value)

    def read(self, struct: StructValue, name: str) -> Any:
        """A field, or its default where it is null and defaults are wanted."""
        return struct[name] if self._replaces_null else struct.get_without_default(name)


def required_map(value: Any, purpose: str) -> dict[str, Any]:
    """A value without a schema that has fields."""
    if not isinstance(value, dict):
        raise DataError(
            f"Only Map objects supported in absence of schema for [{purpose}], "
            f"found: {_class_of(value)}"
        )
    return value


def required_struct(value: Any, purpose: str) -> StructValue:
    """A value with a schema that has fields."""
    if not isinstance(value, StructValue):
        raise DataError(f"Only Struct objects supported for [{purpose}], found: {_class_of(value)}")
    return value


def _class_of(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def with_fields(schema: Schema, fields: list[SchemaField]) -> Schema:
    """A struct's schema of the same name, version, doc and parameters with other fields.

    It is neither optional nor has a default, as in Java.
    """
    if schema.type is not SchemaType.STRUCT:
        raise DataError("Cannot list fields on non-struct type")
    names = [one.name for one in fields]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"Cannot create field because of field name duplication {name}")
    return Schema(
        type=SchemaType.STRUCT,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=tuple(fields),
    )


def filled(schema: Schema, values: list[Any]) -> StructValue:
    """A struct of these values; DataError for a null in a field that requires a value."""
    for one, value in zip(schema.fields, values, strict=True):
        if value is None and not one.schema.optional:
            raise DataError(
                f'Invalid value: null used for required field: "{one.name}", '
                f"schema type: {one.schema.type}"
            )
    return StructValue(schema, tuple(values))
