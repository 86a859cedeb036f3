"""Flatten: fields of fields become fields, under their names joined with a delimiter."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import ConfigDef, ConfigEntry, ConfigType, Importance
from penstock.connect.records import ConnectRecord
from penstock.connect.transforms.sides import (
    SidedTransform,
    required_map,
    required_struct,
    with_fields,
)
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.schema import Schema, SchemaField, SchemaType
from penstock.connect.values.struct import StructValue

_PURPOSE = "flattening"
_DEPTH_MAX = 100


class _Flatten(SidedTransform):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._delimiter = config["delimiter"]
        self._schemas = SchemaCache(self._flat_schema)

    @classmethod
    def config_def(cls) -> ConfigDef:
        words = "What stands between the names of a field and of those around it."
        return ConfigDef(ConfigEntry("delimiter", ConfigType.STRING, ".", Importance.MEDIUM, words))

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        value, schema = self.value_of(record), self.schema_of(record)
        if value is None:
            return record
        if schema is None:
            flat = dict(self._flat_items(required_map(value, _PURPOSE), "", 0))
            return self.changed(record, None, flat)
        struct = required_struct(value, _PURPOSE)
        updated = self._schemas.get(struct.schema)
        values = tuple(self._flat_values(struct.schema, struct))
        return self.changed(record, updated, StructValue(updated, values))

    def _name(self, prefix: str, name: str) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else name

    def _flat_items(
        self, given: Mapping[str, Any], prefix: str, depth: int
    ) -> Iterator[tuple[str, Any]]:
        if depth > _DEPTH_MAX:
            raise DataError("Flatten transformation does not support maps nested so deeply")
        for key, value in given.items():
            name = self._name(prefix, key)
            if isinstance(value, dict):
                yield from self._flat_items(value, name, depth + 1)
            elif value is None or isinstance(value, bool | int | float | str | bytes | list):
                yield name, value
            else:
                raise DataError(
                    f"Flatten transformation does not support {type(value).__name__} "
                    f"for record without schemas (for field {name})."
                )

    def _flat_schema(self, schema: Schema) -> Schema:
        default = schema.default if isinstance(schema.default, StructValue) else None
        return with_fields(schema, list(self._flat_fields(schema, "", schema.optional, default)))

    def _flat_fields(
        self, schema: Schema, prefix: str, optional: bool, default: StructValue | None
    ) -> Iterator[SchemaField]:
        """A field is optional where one around it is, and may have the default of that one."""
        for field in schema.fields:
            name = self._name(prefix, field.name)
            inner = field.schema
            may_lack = optional or inner.optional
            own: Any = inner.default
            if own is None and default is not None:
                own = default[field.name]
            if inner.type is SchemaType.STRUCT:
                yield from self._flat_fields(inner, name, may_lack, own)
            elif inner.type is SchemaType.MAP:
                raise DataError(
                    f"Flatten transformation does not support {inner.type} "
                    f"for record with schemas (for field {name})."
                )
            else:
                yield SchemaField(name, replace(inner, optional=may_lack, default=own))

    def _flat_values(self, schema: Schema, struct: StructValue | None) -> Iterator[Any]:
        for field in schema.fields:
            value = None if struct is None else struct[field.name]
            if field.schema.type is SchemaType.STRUCT:
                yield from self._flat_values(field.schema, value)
            else:
                yield value


class FlattenKey(_Flatten):
    """Flattens the key."""

    IS_KEY = True


class FlattenValue(_Flatten):
    """Flattens the value."""
