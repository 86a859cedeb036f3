"""ReplaceField: fields left out, or renamed."""

from collections.abc import Mapping
from typing import Any

from penstock.connect.plugins.config_def import (
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
    InvalidValue,
)
from penstock.connect.plugins.validators import DistinctItems
from penstock.connect.records import ConnectRecord
from penstock.connect.transforms.sides import (
    REPLACE_NULL,
    SidedTransform,
    filled,
    required_map,
    required_struct,
    with_fields,
)
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.schema import Schema, SchemaField

_PURPOSE = "field replacement"


class _RenamesCheck:
    def ensure_valid(self, name: str, value: Any) -> None:
        parse_renames(value)

    def __str__(self) -> str:
        return "list of colon-delimited pairs, e.g. foo:bar,abc:xyz"


def parse_renames(pairs: list[str]) -> dict[str, str]:
    """New names by old ones."""
    renames: dict[str, str] = {}
    for one in pairs or ():
        parts = one.rstrip(":").split(":")  # Java's split drops what is empty at the end.
        if len(parts) != 2:
            raise InvalidValue("renames", pairs, f"Invalid rename mapping: {one}")
        renames[parts[0]] = parts[1]
    return renames


class _ReplaceField(SidedTransform):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._exclude = frozenset(config["exclude"])
        self._include = frozenset(config["include"])
        self._renames = parse_renames(config["renames"])
        self._old_names = {new: old for old, new in self._renames.items()}
        self._schemas = SchemaCache(self._replaced_schema)

    @classmethod
    def config_def(cls) -> ConfigDef:
        kind, medium = ConfigType.LIST, Importance.MEDIUM
        once = DistinctItems(may_be_empty=True)
        return ConfigDef(
            ConfigEntry("exclude", kind, [], medium, "Fields to leave out.", validator=once),
            ConfigEntry("include", kind, [], medium, "The only fields to keep.", validator=once),
            ConfigEntry(
                "renames", kind, [], medium, "New names: old:new,...", validator=_RenamesCheck()
            ),
            REPLACE_NULL,
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        value, schema = self.value_of(record), self.schema_of(record)
        if value is None:
            return record
        if schema is None:
            given = required_map(value, _PURPOSE)
            kept = {self._new(name): one for name, one in given.items() if self._keeps(name)}
            return self.changed(record, None, kept)
        struct = required_struct(value, _PURPOSE)
        updated = self._schemas.get(struct.schema)
        old = (self._old_names.get(one.name, one.name) for one in updated.fields)
        values = [self.read(struct, name) for name in old]
        return self.changed(record, updated, filled(updated, values))

    def _keeps(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def _new(self, name: str) -> str:
        return self._renames.get(name, name)

    def _replaced_schema(self, schema: Schema) -> Schema:
        kept = (one for one in schema.fields if self._keeps(one.name))
        return with_fields(schema, [SchemaField(self._new(one.name), one.schema) for one in kept])


class ReplaceFieldKey(_ReplaceField):
    """Of the key."""

    IS_KEY = True


class ReplaceFieldValue(_ReplaceField):
    """Of the value."""
