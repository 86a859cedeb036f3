"""SetSchemaMetadata: another name or version for a schema."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import ConfigDef, ConfigEntry, ConfigType, Importance
from penstock.connect.records import ConnectRecord
from penstock.connect.transforms.sides import REPLACE_NULL, SidedTransform, filled
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.schema import Schema, SchemaType
from penstock.connect.values.struct import StructValue
from penstock.errors import ConfigError


class _SetSchemaMetadata(SidedTransform):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._name, self._version = config["schema.name"], config["schema.version"]
        if self._name is None and self._version is None:
            raise ConfigError("Neither schema name nor version configured")
        self._schemas = SchemaCache(self._named_schema)

    @classmethod
    def config_def(cls) -> ConfigDef:
        high = Importance.HIGH
        return ConfigDef(
            ConfigEntry("schema.name", ConfigType.STRING, None, high, "The name to set."),
            ConfigEntry("schema.version", ConfigType.INT, None, high, "The version to set."),
            REPLACE_NULL,
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        value, schema = self.value_of(record), self.schema_of(record)
        if schema is None:
            if value is None:
                return record
            raise DataError("Schema required for [updating schema metadata]")
        if schema.type is not SchemaType.STRUCT:
            raise DataError("Cannot list fields on non-struct type")  # Java's transform fails so.
        updated = self._schemas.get(schema)
        if isinstance(value, StructValue):
            value = filled(updated, [self.read(value, one.name) for one in updated.fields])
        return self.changed(record, updated, value)

    def _named_schema(self, schema: Schema) -> Schema:
        name = schema.name if self._name is None else self._name
        version = schema.version if self._version is None else self._version
        return replace(schema, name=name, version=version)


class SetSchemaMetadataKey(_SetSchemaMetadata):
    """Of the key's schema."""

    IS_KEY = True


class SetSchemaMetadataValue(_SetSchemaMetadata):
    """Of the value's schema."""
