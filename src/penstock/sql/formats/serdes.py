"""The serdes of a stream's or table's topic: keys are tuples, values are dicts of columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import StoredSchema
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import DataFormat, KeyWindow, Relation, RelationColumn, Role
from penstock.sql.formats.avro_format import avro_codec, avro_columns, avro_schema
from penstock.sql.formats.codec import FormatCodec, FormatMisfit, SchemaPort
from penstock.sql.formats.delimited_format import delimited_codec
from penstock.sql.formats.json_format import json_codec
from penstock.sql.formats.json_schema_format import (
    json_schema,
    json_schema_codec,
    json_schema_columns,
)
from penstock.sql.formats.kafka_format import kafka_codec
from penstock.sql.formats.protobuf_format import protobuf_codec, protobuf_columns, protobuf_schema
from penstock.sql.types.kinds import DataType
from penstock.streams import Serde, session_windowed, time_windowed

_REGISTERED = ("AVRO", "PROTOBUF", "JSON_SR")


@dataclass(frozen=True, slots=True)
class TopicSerdes:
    """How the keys and values of a topic are written."""

    key: Serde[Any]
    value: Serde[Any]


def topic_serdes(relation: Relation, schemas: SchemaPort | None) -> TopicSerdes:
    """The serdes of a relation's topic; schemas of its formats are registered."""
    key = key_serde(relation.columns.keys, relation.key_format, relation.topic, schemas)
    columns = relation.columns.values
    value = codec_of(relation.value_format, columns, f"{relation.topic}-value", schemas)
    return TopicSerdes(windowed(key, relation.key_window), _value_serde(value, columns))


def key_serde(
    columns: Sequence[RelationColumn], chosen: DataFormat, topic: str, schemas: SchemaPort | None
) -> Serde[Any]:
    """Keys as tuples of their columns' values."""
    codec = codec_of(chosen, columns, f"{topic}-key", schemas)
    return Serde(f"SQL key ({chosen})", codec.write, _guarded(codec, tuple))  # type: ignore[arg-type]


def windowed(key: Serde[Any], window: KeyWindow | None) -> Serde[Any]:
    """The same keys with the windows they carry."""
    if window is None:
        return key
    if window.kind == "SESSION":
        return session_windowed(key)
    assert window.size_ms is not None
    return time_windowed(key, size_ms=window.size_ms)


def _value_serde(codec: FormatCodec, columns: Sequence[RelationColumn]) -> Serde[Any]:
    names = [column.name for column in columns]

    def write(row: dict[str, Any]) -> bytes | None:
        return codec.write([row.get(name) for name in names])

    def made(values: list[Any]) -> dict[str, Any]:
        return dict(zip(names, values, strict=True))

    return Serde("SQL row", write, _guarded(codec, made))  # type: ignore[arg-type]


def _guarded(codec: FormatCodec, made: Any) -> Any:
    def read(data: bytes) -> Any:
        return made(codec.read(data))

    return read


def codec_of(
    chosen: DataFormat, columns: Sequence[RelationColumn], subject: str, schemas: SchemaPort | None
) -> FormatCodec:
    """The codec of a format; StatementRefused where it needs a registry and there is none."""
    match chosen.name:
        case "KAFKA" | "NONE":
            return kafka_codec(columns)
        case "JSON":
            return json_codec(columns, is_wrapped=chosen.is_wrapped)
        case "DELIMITED":
            return delimited_codec(columns, delimiter=chosen.delimiter)
    if chosen.name not in _REGISTERED:
        raise StatementRefused(f"The format {chosen.name} is not supported yet.")
    return _registered(chosen, columns, subject, _port(chosen, schemas))


def asks_registry(chosen: DataFormat) -> bool:
    """Whether records of a format may have to wait for a schema registry."""
    return chosen.name in _REGISTERED


def _port(chosen: DataFormat, schemas: SchemaPort | None) -> SchemaPort:
    if schemas is None:
        raise StatementRefused(
            f"The format {chosen.name} needs a schema registry: set 'ksql.schema.registry.url'."
        )
    return schemas


def _registered(
    chosen: DataFormat, columns: Sequence[RelationColumn], subject: str, schemas: SchemaPort
) -> FormatCodec:
    wraps = chosen.is_wrapped or len(columns) != 1
    try:
        schema_id = chosen.schema_id
        if schema_id is None:
            schema_id = schemas.register(subject, _schema(chosen, columns, wraps))
        match chosen.name:
            case "AVRO":
                return avro_codec(columns, schemas, schema_id, is_wrapped=wraps)
            case "JSON_SR":
                return json_schema_codec(columns, schemas, schema_id, is_wrapped=wraps)
        return protobuf_codec(columns, schemas, schema_id, chosen.schema_name)
    except (SchemaError, FormatMisfit) as error:
        raise StatementRefused(f"{chosen.name} cannot be used for {subject}: {error}") from None


def _schema(chosen: DataFormat, columns: Sequence[RelationColumn], wraps: bool) -> StoredSchema:
    match chosen.name:
        case "AVRO":
            return avro_schema(columns, is_wrapped=wraps, name=chosen.schema_name)
        case "JSON_SR":
            return json_schema(columns, is_wrapped=wraps)
    return protobuf_schema(columns, name=chosen.schema_name)


def inferred_columns(
    chosen: DataFormat, subject: str, role: Role, schemas: SchemaPort | None
) -> list[RelationColumn]:
    """The columns that the registry's schema of a subject says."""
    port = _port(chosen, schemas)
    try:
        stored = port.latest(subject) if chosen.schema_id is None else port.by_id(chosen.schema_id)
        found = _columns(chosen, stored)
    except SchemaError as error:
        raise StatementRefused(f"Schema for the subject {subject} does not exist in the Schema "
                               f"Registry, or cannot be used: {error}") from None  # fmt: skip
    bare = "ROWKEY" if role == "KEY" else "ROWVAL"
    return [RelationColumn(name or bare, kind, role) for name, kind in found]


def _columns(chosen: DataFormat, stored: StoredSchema) -> list[tuple[str, DataType]]:
    match chosen.name:
        case "AVRO":
            return avro_columns(stored)
        case "JSON_SR":
            return json_schema_columns(stored)
    return protobuf_columns(stored, chosen.schema_name)
