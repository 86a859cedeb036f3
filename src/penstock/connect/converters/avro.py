"""AvroConverter: values as Avro under the header of a schema registry, as Confluent's does it.

The bytes are those of `schemas/serializers/avro.py`; here Connect's values become what Avro takes
and back. A value without a schema cannot be written, and unions other than of one type and null
cannot be read.
"""

from collections.abc import Mapping
from typing import Any

from penstock.connect.converters.avro_schemas import avro_of, connect_of
from penstock.connect.converters.registry_settings import let_through, registry_settings
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import ConfigDef
from penstock.connect.plugins.contract import Converter, SchemaAndValue
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.schema import Schema, SchemaType
from penstock.connect.values.struct import StructValue, check_value
from penstock.schemas.avro import parse_compact, self_contained
from penstock.schemas.bounded_cache import BoundedCache
from penstock.schemas.errors import FormatError
from penstock.schemas.registry_client import RegistryClient, RegistryRefused
from penstock.schemas.serializers.avro import AvroDeserializer, AvroSerializer
from penstock.schemas.wire_header import read_header

_ENTRIES_MAX = 1_000


class AvroConverter(Converter):
    """Confluent's AvroConverter."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        is_key: bool,
        registry: RegistryClient | None = None,
    ) -> None:
        super().__init__(config, is_key=is_key)
        self._reader = AvroDeserializer(registry=registry, settings=config, is_key=is_key)
        self._registry = self._reader.settings.registry  # One client, so one cache, for all.
        self._writers = SchemaCache(self._writer)
        self._schemas: BoundedCache[int, Schema] = BoundedCache(_ENTRIES_MAX)

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Where the registry is, and what is done about schemas."""
        return registry_settings()

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Avro of a value; null stays null."""
        if value is None:
            return None
        if schema is None:
            raise DataError("AvroConverter cannot write a value that has no schema")
        check_value(schema, value)
        try:
            return self._writers.get(schema).serialize(topic, avro_value(schema, value))
        except (FormatError, RegistryRefused) as error:
            let_through(error)
            raise DataError(
                f"Failed to serialize Avro data from topic {topic} : {error}"
            ) from error

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The value of some Avro."""
        if data is None:
            return None, None
        try:
            schema_id = read_header(data)
            schema = self._schemas.get_or_make(schema_id, lambda: self._schema(schema_id))
            return schema, connect_value(schema, self._reader.deserialize(topic, data))
        except (FormatError, RegistryRefused) as error:
            let_through(error)
            raise DataError(
                f"Failed to deserialize data for topic {topic} to Avro: {error}"
            ) from error

    def _writer(self, schema: Schema) -> AvroSerializer:
        made = avro_of(schema)
        return AvroSerializer(
            {"type": made} if isinstance(made, str) else made,
            registry=self._registry,
            settings=self.config,
            is_key=self.is_key,
        )

    def _schema(self, schema_id: int) -> Schema:
        root, named = parse_compact(self._registry.by_id(schema_id))
        return connect_of(self_contained(root, named))


def avro_value(schema: Schema, value: Any) -> Any:
    """A value as Avro's writer takes it."""
    if value is None:
        return schema.default
    if schema.type is SchemaType.STRUCT:
        pairs = zip(schema.fields, value.values, strict=True)
        return {one.name: avro_value(one.schema, part) for one, part in pairs}
    parts, keys = schema.value_schema, schema.key_schema
    if schema.type is SchemaType.ARRAY and parts is not None:
        return [avro_value(parts, one) for one in value]
    if schema.type is SchemaType.MAP and parts is not None and keys is not None:
        if keys.type is SchemaType.STRING and not keys.optional:
            return {key: avro_value(parts, one) for key, one in value.items()}
        return [
            {"key": avro_value(keys, key), "value": avro_value(parts, one)}
            for key, one in value.items()
        ]
    return value


def connect_value(schema: Schema, value: Any) -> Any:
    """A value as Avro's reader gives it."""
    if value is None:
        return None
    if schema.type is SchemaType.STRUCT:
        found = tuple(connect_value(one.schema, value.get(one.name)) for one in schema.fields)
        return StructValue(schema, found)
    parts, keys = schema.value_schema, schema.key_schema
    if schema.type is SchemaType.ARRAY and parts is not None:
        return [connect_value(parts, one) for one in value]
    if schema.type is SchemaType.MAP and parts is not None and keys is not None:
        if isinstance(value, dict):
            return {key: connect_value(parts, one) for key, one in value.items()}
        return {
            connect_value(keys, one["key"]): connect_value(parts, one["value"]) for one in value
        }
    return value
