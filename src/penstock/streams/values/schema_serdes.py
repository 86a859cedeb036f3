"""Serdes for values whose schema a registry keeps: Avro, JSON Schema and Protobuf.

Such a value begins with five bytes that name its schema by id. A writer has one schema and its id;
a reader meets the ids of many writers, and a lookup finds their schemas. A lookup that has only
the writer's own schema will do where one program writes all there is.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from penstock.schemas import avro as avro_schemas
from penstock.schemas.errors import DecodeError, EncodeError, FormatError
from penstock.schemas.lookup import SchemaKind, SchemaLookup, StoredSchema
from penstock.schemas.protobuf import Message, ProtobufSchema
from penstock.schemas.wire_header import (
    HEADER_BYTES,
    read_header,
    read_message_indexes,
    write_header,
    write_message_indexes,
)
from penstock.streams.values.serdes import Serde, SerdeError

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _ById:
    """Something made of each schema once, for a schema never changes under its id."""

    lookup: SchemaLookup
    make: Callable[[StoredSchema], Any]
    made: dict[int, Any] = field(default_factory=dict)

    def of(self, data: bytes) -> Any:
        """What was made of the schema that the value's header names."""
        schema_id = read_header(data)
        if schema_id not in self.made:
            self.made[schema_id] = self.make(self.lookup.by_id(schema_id))
        return self.made[schema_id]


def avro(lookup: SchemaLookup, schema_id: int) -> Serde[Any]:
    """Avro values, written under a schema of the lookup and read as that schema wants them.

    A value that another schema wrote is resolved by Avro's rules: fields the reader does not know
    are left out, fields the writer did not have get their default.
    """
    schema = avro_schemas.parse_stored(lookup.by_id(schema_id))
    writer, header = avro_schemas.AvroWriter.of(schema), write_header(schema_id)

    def reader(stored: StoredSchema) -> avro_schemas.AvroReader:
        return avro_schemas.AvroReader.of(avro_schemas.parse_stored(stored), schema)

    readers = _ById(lookup, reader)
    return _serde(
        "Avro",
        lambda value: writer.encode(value, header),
        lambda data: readers.of(data).decode(data, HEADER_BYTES),
    )


def protobuf(lookup: SchemaLookup, schema_id: int, message: str | None = None) -> Serde[Message]:
    """Protobuf messages of a schema of the lookup: the named message, or the file's first.

    What is read is of the schema that wrote it, so a message has the fields its writer knew.
    """
    stored = lookup.by_id(schema_id).expect(SchemaKind.PROTOBUF)
    schema = ProtobufSchema.of(stored.descriptor_set, message)
    header = write_header(schema_id) + write_message_indexes(schema.index_path)
    files = _ById(lookup, lambda found: found.expect(SchemaKind.PROTOBUF).descriptor_set)
    schemas: dict[tuple[bytes, tuple[int, ...]], ProtobufSchema] = {
        (stored.descriptor_set, schema.index_path): schema
    }

    def write(value: Message) -> bytes:
        if value.DESCRIPTOR.full_name != schema.message:
            raise EncodeError(f"the message is a {value.DESCRIPTOR.full_name}")
        return header + bytes(value.SerializeToString(deterministic=True))

    def read(data: bytes) -> Message:
        descriptor_set, (path, payload_at) = files.of(data), read_message_indexes(data)
        if (descriptor_set, path) not in schemas:
            schemas[descriptor_set, path] = ProtobufSchema.at(descriptor_set, path)
        return schemas[descriptor_set, path].decode(data[payload_at:])

    return _serde("Protobuf", write, read)


def protobuf_message(lookup: SchemaLookup, schema_id: int, message: str | None = None) -> Any:
    """The class of a schema's message, to make values of without generated code."""
    stored = lookup.by_id(schema_id).expect(SchemaKind.PROTOBUF)
    return ProtobufSchema.of(stored.descriptor_set, message).message_class


def json_with_schema(lookup: SchemaLookup, schema_id: int) -> Serde[Any]:
    """JSON values behind the header of a JSON schema; they are not validated against it."""
    lookup.by_id(schema_id).expect(SchemaKind.JSON)
    header = write_header(schema_id)
    kinds = _ById(lookup, lambda found: found.expect(SchemaKind.JSON).kind)

    def write(value: Any) -> bytes:
        return header + json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    def read(data: bytes) -> Any:
        kinds.of(data)
        try:
            return json.loads(data[HEADER_BYTES:])
        except ValueError as error:
            raise DecodeError(f"the bytes behind the header are not JSON: {error}") from error

    return _serde("JSON Schema", write, read)


def _serde(
    name: str, to_bytes: Callable[[Any], bytes], from_bytes: Callable[[bytes], Any]
) -> Serde[Any]:
    """A serde whose misfits are SerdeErrors; a lookup out of reach is no misfit."""

    def within(action: Callable[[Any], R]) -> Callable[[Any], R]:
        def guarded(given: Any) -> R:
            try:
                return action(given)
            except FormatError as error:
                raise SerdeError(str(error)) from error

        return guarded

    return Serde(name, within(to_bytes), within(from_bytes))
