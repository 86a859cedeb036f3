"""InsertField: what is known of a record (topic, partition, offset, time), and a fixed value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import (
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
    InvalidValue,
)
from penstock.connect.records import ConnectRecord, SinkRecord
from penstock.connect.transforms.sides import (
    REPLACE_NULL,
    SidedTransform,
    filled,
    required_map,
    required_struct,
    with_fields,
)
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.logical import TIMESTAMP_SCHEMA, timestamp_of
from penstock.connect.values.schema import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaField,
)
from penstock.connect.values.struct import StructValue
from penstock.errors import ConfigError

_PURPOSE = "field insertion"
_KINDS = {
    "topic": ("Field for the topic.", STRING_SCHEMA),
    "partition": ("Field for the partition.", INT32_SCHEMA),
    "offset": ("Field for the offset; of a sink's records alone.", INT64_SCHEMA),
    "timestamp": ("Field for the record's timestamp.", TIMESTAMP_SCHEMA),
    "static": ("Field for a fixed value.", STRING_SCHEMA),
}
_SUFFIX = " With ! behind its name the field is required, with ? or nothing optional."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Insertion:
    kind: str
    field: SchemaField

    @classmethod
    def of(cls, kind: str, spec: str) -> "_Insertion":
        schema = _KINDS[kind][1]
        name = spec[:-1] if spec[-1:] in ("?", "!") else spec
        return cls(
            kind=kind,
            field=SchemaField(name, schema if spec.endswith("!") else schema.as_optional()),
        )


class _InsertField(SidedTransform):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        specs = {kind: config[f"{kind}.field"] for kind in _KINDS}
        self._inserted = [
            _Insertion.of(kind, spec) for kind, spec in specs.items() if spec is not None
        ]
        self._static = config["static.value"]
        if not self._inserted:
            raise ConfigError("No field insertion configured")
        if specs["static"] is not None and self._static is None:
            raise InvalidValue(
                "static.value", None, f"No value specified for static field: {specs['static']}"
            )
        self._schemas = SchemaCache(self._longer_schema)

    @classmethod
    def config_def(cls) -> ConfigDef:
        medium, text = Importance.MEDIUM, ConfigType.STRING
        fields = [
            ConfigEntry(f"{kind}.field", text, None, medium, words + _SUFFIX)
            for kind, (words, _) in _KINDS.items()
        ]
        value = ConfigEntry("static.value", text, None, medium, "The fixed value.")
        return ConfigDef(*fields, value, REPLACE_NULL)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        value, schema = self.value_of(record), self.schema_of(record)
        if value is None:
            return record
        if schema is None:
            found = {one.field.name: self._found(record, one.kind) for one in self._inserted}
            added = {name: one for name, one in found.items() if one is not None}
            return self.changed(record, None, {**required_map(value, _PURPOSE), **added})
        struct = required_struct(value, _PURPOSE)
        updated = self._schemas.get(schema)
        return self.changed(record, updated, self._longer(record, struct, updated))

    def _longer(self, record: ConnectRecord, struct: StructValue, updated: Schema) -> StructValue:
        own = [self.read(struct, one.name) for one in struct.schema.fields]
        filled(struct.schema, own)  # A null where a value is required is refused, as it is read.
        added = [self._found(record, one.kind) for one in self._inserted]
        stamped = [
            timestamp_of(found) if one.kind == "timestamp" and found is not None else found
            for one, found in zip(self._inserted, added, strict=True)
        ]
        return StructValue(updated, (*own, *stamped))

    def _found(self, record: ConnectRecord, kind: str) -> Any:
        if kind == "offset":
            if not isinstance(record, SinkRecord):
                raise DataError(f"Only SinkRecord is supported for [{_PURPOSE}]")
            return record.offset
        if kind == "static":
            return self._static
        return getattr(record, kind)

    def _longer_schema(self, schema: Schema) -> Schema:
        return with_fields(schema, [*schema.fields, *(one.field for one in self._inserted)])


class InsertFieldKey(_InsertField):
    """Inserts into the key."""

    IS_KEY = True


class InsertFieldValue(_InsertField):
    """Inserts into the value."""
