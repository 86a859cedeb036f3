"""JsonSchemaConverter: JSON with its JSON Schema in the registry, as Confluent's does it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from penstock.connect.converters.json import JsonReader, JsonWriter
from penstock.connect.converters.registry_settings import let_through, registry_settings
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import ConfigDef, ConfigEntry, ConfigType, Importance
from penstock.connect.plugins.contract import Converter, SchemaAndValue
from penstock.connect.plugins.validators import OneOfWords
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.logical import DECIMAL
from penstock.connect.values.schema import Schema, SchemaField, SchemaType
from penstock.schemas.bounded_cache import BoundedCache
from penstock.schemas.errors import FormatError
from penstock.schemas.lookup import SchemaKind
from penstock.schemas.registry_client import RegistryClient, RegistryRefused
from penstock.schemas.serializers.json_schema import JsonSchemaDeserializer, JsonSchemaSerializer
from penstock.schemas.wire_header import HEADER_BYTES, read_header

_ENTRIES_MAX = 1_000
_DEPTH_MAX = 100
_FORMAT = ConfigEntry(
    "decimal.format",
    ConfigType.STRING,
    "BASE64",
    Importance.LOW,
    "How decimals are written: BASE64 or NUMERIC. Both are read.",
    validator=OneOfWords(("BASE64", "NUMERIC"), any_case=True),
)
_WORDS = {
    SchemaType.INT8: "integer",
    SchemaType.INT16: "integer",
    SchemaType.INT32: "integer",
    SchemaType.INT64: "integer",
    SchemaType.FLOAT32: "number",
    SchemaType.FLOAT64: "number",
    SchemaType.BOOLEAN: "boolean",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "string",
}
_DEFAULT_TYPES = {
    "integer": SchemaType.INT64,
    "number": SchemaType.FLOAT64,
    "boolean": SchemaType.BOOLEAN,
    "string": SchemaType.STRING,
    "array": SchemaType.ARRAY,
    "object": SchemaType.STRUCT,
}


class JsonSchemaConverter(Converter):
    """Confluent's JsonSchemaConverter."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        is_key: bool,
        registry: RegistryClient | None = None,
    ) -> None:
        super().__init__(config, is_key=is_key)
        told = ConfigDef(_FORMAT).parse(config)
        self._numeric = told[_FORMAT.name].upper() == "NUMERIC"
        self._nodes = JsonWriter(numeric=self._numeric, replaces_null=True)
        self._values = JsonReader(replaces_null=True)
        self._reader = JsonSchemaDeserializer(registry=registry, settings=config, is_key=is_key)
        self._registry = self._reader.settings.registry
        self._writers = SchemaCache(self._writer)
        self._schemas: BoundedCache[int, Schema] = BoundedCache(_ENTRIES_MAX)

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Where the registry is, and what is done about schemas."""
        return registry_settings() + ConfigDef(_FORMAT)

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """JSON of a value; null stays null."""
        if value is None:
            return None
        if schema is None:
            raise DataError("JsonSchemaConverter cannot write a value that has no schema")
        node = json.loads(self._nodes.text(self._nodes.node(schema, value)))
        try:
            return self._writers.get(schema).serialize(topic, node)
        except (FormatError, RegistryRefused) as error:
            let_through(error)
            raise DataError(
                f"Converting Kafka Connect data to byte[] failed due to serialization error of "
                f"topic {topic}: {error}"
            ) from error

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The value of some JSON, by the schema that its header names."""
        if data is None:
            return None, None
        try:
            schema_id = read_header(data)
            schema = self._schemas.get_or_make(schema_id, lambda: self._schema(schema_id))
            node = self._reader.deserialize(topic, data)
        except (FormatError, RegistryRefused) as error:
            let_through(error)
            raise DataError(
                f"Converting byte[] to Kafka Connect data failed due to serialization error of "
                f"topic {topic}: {error}"
            ) from error
        return schema, self._values.value(schema, _exact(node, data))

    def _writer(self, schema: Schema) -> JsonSchemaSerializer:
        return JsonSchemaSerializer(
            json_schema_of(schema, self._nodes, numeric=self._numeric),
            registry=self._registry,
            settings=self.config,
            is_key=self.is_key,
        )

    def _schema(self, schema_id: int) -> Schema:
        stored = self._registry.by_id(schema_id)
        if stored.kind is not SchemaKind.JSON:
            raise DataError(f"schema {schema_id} is no JSON Schema")
        return connect_schema_of(json.loads(stored.text), self._values)


def _exact(node: Any, data: bytes) -> Any:
    """The node with its decimals as they are written, which a float would round."""
    if not isinstance(node, float | dict | list):
        return node
    return json.loads(data[HEADER_BYTES:], parse_float=Decimal)


def json_schema_of(schema: Schema, nodes: JsonWriter, *, numeric: bool) -> dict[str, Any]:
    """The JSON Schema of a Connect schema; what JSON lacks stands in `connect.` properties."""
    made = _shape(schema, nodes, numeric)
    if schema.name is not None:
        made["title"] = schema.name
    if schema.version is not None:
        made["connect.version"] = schema.version
    if schema.doc is not None:
        made["description"] = schema.doc
    if schema.parameters:
        made["connect.parameters"] = dict(schema.parameters)
    if schema.default is not None:
        made["default"] = json.loads(nodes.text(nodes.node(schema, schema.default)))
    return {"oneOf": [{"type": "null"}, made]} if schema.optional else made


def _shape(schema: Schema, nodes: JsonWriter, numeric: bool) -> dict[str, Any]:
    def inner(part: Schema | None) -> dict[str, Any]:
        if part is None:
            raise DataError("a list or a map without a schema for its parts has no JSON Schema")
        return json_schema_of(part, nodes, numeric=numeric)

    if schema.type is SchemaType.STRUCT:
        listed = {
            one.name: {**inner(one.schema), "connect.index": at}
            for at, one in enumerate(schema.fields)
        }
        return {"type": "object", "properties": listed}
    if schema.type is SchemaType.ARRAY:
        return {"type": "array", "items": inner(schema.value_schema)}
    if schema.type is SchemaType.MAP:
        if schema.key_schema is not None and schema.key_schema.type is SchemaType.STRING:
            values = inner(schema.value_schema)
            return {"type": "object", "connect.type": "map", "additionalProperties": values}
        raise DataError("a map whose keys are no texts has no JSON Schema here")
    word = "number" if schema.name == DECIMAL and numeric else _WORDS[schema.type]
    made: dict[str, Any] = {"type": word}
    if schema.type not in (SchemaType.BOOLEAN, SchemaType.STRING):
        made["connect.type"] = schema.type.value.lower()
    return made


def connect_schema_of(document: Any, values: JsonReader, depth: int = 0) -> Schema:
    """The Connect schema of a JSON Schema; DataError for one that Connect has no words for."""
    if depth > _DEPTH_MAX or not isinstance(document, dict):
        raise DataError("the JSON Schema is no object, or has too many others inside")
    either = document.get("oneOf") or document.get("anyOf")
    if either is not None:
        return _optional_of(either, values, depth)
    made = _read_shape(document, values, depth)
    made = replace(
        made,
        name=document.get("title"),
        version=document.get("connect.version"),
        doc=document.get("description"),
        parameters=document.get("connect.parameters") or {},
    )
    if document.get("default") is None:
        return made
    return replace(made, default=values.value(made, document["default"]))


def _optional_of(either: list[Any], values: JsonReader, depth: int) -> Schema:
    filled = [one for one in either if one != {"type": "null"}]
    if len(filled) != 1 or len(filled) == len(either):
        raise DataError("a JSON Schema of several types has no Connect schema here")
    return connect_schema_of(filled[0], values, depth + 1).as_optional()


def _read_shape(document: dict[str, Any], values: JsonReader, depth: int) -> Schema:
    word = document.get("type")
    told = document.get("connect.type")
    if told == "map":
        parts = connect_schema_of(document.get("additionalProperties"), values, depth + 1)
        keys = Schema(type=SchemaType.STRING)
        return Schema(type=SchemaType.MAP, key_schema=keys, value_schema=parts)
    if word not in _DEFAULT_TYPES:
        raise DataError(f"a JSON Schema of type {word} has no Connect schema here")
    kind = _DEFAULT_TYPES[word] if told is None else SchemaType(str(told).upper())
    if kind is SchemaType.ARRAY:
        items = connect_schema_of(document.get("items"), values, depth + 1)
        return Schema(type=kind, value_schema=items)
    if kind is SchemaType.STRUCT:
        return Schema(type=kind, fields=tuple(_read_fields(document, values, depth)))
    return Schema(type=kind)


def _read_fields(document: dict[str, Any], values: JsonReader, depth: int) -> list[SchemaField]:
    """Fields by their index; where a program wrote the schema, what is not required is optional."""
    listed = document.get("properties") or {}
    required = document.get("required")
    fields = []
    for name, one in sorted(listed.items(), key=lambda pair: pair[1].get("connect.index", 0)):
        found = connect_schema_of(one, values, depth + 1)
        lacks = "connect.index" not in one and name not in (required or ())
        fields.append(SchemaField(name, found.as_optional() if lacks else found))
    return fields
