"""HeaderFrom: fields are copied, or moved, to headers."""

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
from penstock.connect.plugins.validators import NonEmptyList, OneOfWords
from penstock.connect.records import ConnectRecord, Header
from penstock.connect.transforms.sides import (
    REPLACE_NULL,
    SidedTransform,
    filled,
    required_map,
    required_struct,
    with_fields,
)
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.schema import Schema
from penstock.connect.values.struct import StructValue
from penstock.errors import ConfigError


class _HeaderFrom(SidedTransform):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        if len(config["fields"]) != len(config["headers"]):
            raise ConfigError(
                "'fields' config must have the same number of elements as 'headers' config."
            )
        self._pairs = list(zip(config["fields"], config["headers"], strict=True))
        self._gone = set(config["fields"]) if config["operation"] == "move" else set()
        self._purpose = f"header {config['operation']}"
        self._schemas = SchemaCache(self._left_schema)

    @classmethod
    def config_def(cls) -> ConfigDef:
        high, required = Importance.HIGH, NO_DEFAULT
        names = "Fields whose values are to be copied or moved to headers."
        headers = "The headers, in the order of the fields."
        words = "move: the fields leave the key or value; copy: they stay."
        some = NonEmptyList()
        return ConfigDef(
            ConfigEntry("fields", ConfigType.LIST, required, high, names, validator=some),
            ConfigEntry("headers", ConfigType.LIST, required, high, headers, validator=some),
            ConfigEntry(
                "operation",
                ConfigType.STRING,
                required,
                high,
                words,
                validator=OneOfWords(("move", "copy")),
            ),
            REPLACE_NULL,
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        value, schema = self.value_of(record), self.schema_of(record)
        if schema is None:
            given = required_map(value, self._purpose)
            added = [Header(name, None, given.get(field)) for field, name in self._pairs]
            left: Any = {name: one for name, one in given.items() if name not in self._gone}
            return replace(self.changed(record, None, left), headers=(*record.headers, *added))
        struct = required_struct(value, self._purpose)
        added = [self._header(struct, field, name) for field, name in self._pairs]
        updated = self._schemas.get(schema) if self._gone else schema
        if self._gone:
            struct = filled(updated, [self.read(struct, one.name) for one in updated.fields])
        return replace(self.changed(record, updated, struct), headers=(*record.headers, *added))

    def _header(self, struct: StructValue, field: str, name: str) -> Header:
        found = struct.schema.field(field)
        if found is None:
            raise DataError(f"Field does not exist: {field}")
        return Header(name, found.schema, self.read(struct, field))

    def _left_schema(self, schema: Schema) -> Schema:
        return with_fields(schema, [one for one in schema.fields if one.name not in self._gone])


class HeaderFromKey(_HeaderFrom):
    """Headers of the key's fields."""

    IS_KEY = True


class HeaderFromValue(_HeaderFrom):
    """Headers of the value's fields."""
