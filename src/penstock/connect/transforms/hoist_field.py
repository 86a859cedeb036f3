"""HoistField: the key or value becomes the one field of a struct or map."""

from collections.abc import Mapping
from typing import Any

from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.records import ConnectRecord
from penstock.connect.transforms.sides import SidedTransform, filled
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.schema import struct_schema


class _HoistField(SidedTransform):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._field = config["field"]
        self._schemas = SchemaCache(lambda schema: struct_schema({self._field: schema}))

    @classmethod
    def config_def(cls) -> ConfigDef:
        words = "The name of the one field of the struct or map that is made."
        return ConfigDef(
            ConfigEntry("field", ConfigType.STRING, NO_DEFAULT, Importance.MEDIUM, words)
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None:
            return self.changed(record, None, {self._field: value})
        updated = self._schemas.get(schema)
        return self.changed(record, updated, filled(updated, [value]))


class HoistFieldKey(_HoistField):
    """Wraps the key."""

    IS_KEY = True


class HoistFieldValue(_HoistField):
    """Wraps the value."""
