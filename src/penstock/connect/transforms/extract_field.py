"""ExtractField: one field becomes the whole key or value."""

from collections.abc import Mapping
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.records import ConnectRecord
from penstock.connect.transforms.field_path import SYNTAX_VERSION, FieldPath
from penstock.connect.transforms.sides import (
    REPLACE_NULL,
    SidedTransform,
    required_map,
    required_struct,
)

_PURPOSE = "field extraction"


class _ExtractField(SidedTransform):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._path = FieldPath(config["field"], config[SYNTAX_VERSION.name])

    @classmethod
    def config_def(cls) -> ConfigDef:
        words = "The field that becomes the key or value."
        field = ConfigEntry("field", ConfigType.STRING, NO_DEFAULT, Importance.MEDIUM, words)
        return ConfigDef(field, REPLACE_NULL, SYNTAX_VERSION)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self.schema_of(record), self.value_of(record)
        if schema is None:
            found = None if value is None else self._path.in_map(required_map(value, _PURPOSE))
            return self.changed(record, None, found)
        struct = None if value is None else required_struct(value, _PURPOSE)
        field = self._path.field_of(schema)
        if field is None:
            raise DataError(f"Unknown field: {self._path.text}")
        inner = None
        if struct is not None:
            inner = self._path.in_struct(struct, with_default=self._replaces_null)
        return self.changed(record, field.schema, inner)


class ExtractFieldKey(_ExtractField):
    """Takes a field out of the key."""

    IS_KEY = True


class ExtractFieldValue(_ExtractField):
    """Takes a field out of the value."""
