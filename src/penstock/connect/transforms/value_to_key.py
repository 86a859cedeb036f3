"""ValueToKey: a new key of some fields of the value."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import DistinctItems
from penstock.connect.records import ConnectRecord
from penstock.connect.transforms.sides import (
    REPLACE_NULL,
    SidedTransform,
    filled,
    required_map,
    required_struct,
)
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.schema import Schema, struct_schema

_PURPOSE = "copying fields from value to key"


class ValueToKey(SidedTransform):
    """Makes a key."""

    IS_KEY = True

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._fields = config["fields"]
        self._schemas = SchemaCache(self._key_schema)

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The fields."""
        words = "Fields of the value that make the key."
        return ConfigDef(
            ConfigEntry(
                "fields",
                ConfigType.LIST,
                NO_DEFAULT,
                Importance.HIGH,
                words,
                validator=DistinctItems(),
            ),
            REPLACE_NULL,
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with its new key."""
        if record.value_schema is None:
            given = required_map(record.value, _PURPOSE)
            key = {name: given.get(name) for name in self._fields}
            return replace(record, key_schema=None, key=key)
        struct = required_struct(record.value, _PURPOSE)
        schema = self._schemas.get(struct.schema)
        values = [self.read(struct, one.name) for one in schema.fields]
        return self.changed(record, schema, filled(schema, values))

    def _key_schema(self, schema: Schema) -> Schema:
        fields: dict[str, Schema] = {}
        for name in self._fields:
            found = schema.field(name)
            if found is None:
                raise DataError(f"Field does not exist: {name}")
            if name in fields:
                raise DataError(f"Cannot create field because of field name duplication {name}")
            fields[name] = found.schema
        return struct_schema(fields)
