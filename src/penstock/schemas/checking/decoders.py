"""Whether keys and values really are what the schema that they name says.

A decoder is made once for each schema. Its time and memory are bounded by whoever calls it, which
is a process of its own (`worker`): a few bytes can say that they hold a billion nulls.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias

import jsonschema_rs

from penstock.schemas import avro
from penstock.schemas.errors import DecodeError, SchemaError
from penstock.schemas.lookup import SchemaKind, SchemaLookup, StoredSchema
from penstock.schemas.protobuf import ProtobufSchema
from penstock.schemas.wire_header import HEADER_BYTES, read_header, read_message_indexes

ValueDecoder: TypeAlias = Callable[[bytes], object]  # Raises DecodeError.
DECODERS_MAX: Final = 1_000
_MESSAGES_MAX: Final = 1_000
_DRAFT_7: Final = "http://json-schema.org/draft-07/schema#"  # As Confluent's, where none is named.


class SchemaDecoders:
    """Decodes what names a schema of the lookup."""

    def __init__(self, lookup: SchemaLookup) -> None:
        self._lookup = lookup
        self._made: dict[int, ValueDecoder] = {}

    def decode(self, data: bytes) -> None:
        """Raises FormatError if the data is not what it says; what the lookup raises passes."""
        schema_id = read_header(data)
        decoder = self._made.get(schema_id)
        if decoder is None:
            if len(self._made) >= DECODERS_MAX:
                self._made.clear()
            decoder = self._made[schema_id] = _decoder_or_refusal(self._lookup.by_id(schema_id))
        decoder(data)


def _decoder_or_refusal(stored: StoredSchema) -> ValueDecoder:
    """A schema that cannot be used is not tried again for each of its values."""
    try:
        return decoder_of(stored)
    except SchemaError as error:
        return partial(_refuse, str(error))


def _refuse(reason: str, _: bytes) -> NoReturn:
    raise SchemaError(reason)


def decoder_of(stored: StoredSchema) -> ValueDecoder:
    """What decodes values with their header; SchemaError for a schema that cannot be used."""
    if stored.kind is SchemaKind.AVRO:
        reader = avro.AvroReader.of(avro.parse_stored(stored), plain=True)
        return partial(reader.decode, at=HEADER_BYTES)
    if stored.kind is SchemaKind.JSON:
        return partial(_check_json, _json_validator(stored))
    return _ProtobufDecoder(stored).decode


class _ProtobufDecoder:
    """The messages of one file, by the indexes in front of the value."""

    def __init__(self, stored: StoredSchema) -> None:
        self._descriptor_set = stored.descriptor_set
        self._messages: dict[tuple[int, ...], ProtobufSchema] = {}

    def decode(self, data: bytes) -> object:
        path, at = read_message_indexes(data)
        message = self._messages.get(path)
        if message is None:
            if len(self._messages) >= _MESSAGES_MAX:
                self._messages.clear()
            message = self._messages[path] = ProtobufSchema.at(self._descriptor_set, path)
        return message.decode(data[at:])


def _check_json(validator: Any, data: bytes) -> None:
    try:
        value = json.loads(data[HEADER_BYTES:])
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the value is not JSON: {error}") from error
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        where = "/".join(map(str, error.instance_path))
        raise DecodeError(f"the value does not fit at /{where}: {error.message}") from None
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the value cannot be compared with its schema: {error}") from error


def _json_validator(stored: StoredSchema) -> Any:
    """Patterns are matched in linear time, and nothing is ever fetched from the network."""
    try:
        schema = json.loads(stored.text)
        if isinstance(schema, dict):
            schema = {"$schema": _DRAFT_7, **schema}
        named = {one.name: json.loads(one.text) for one in stored.references}
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=False,
            retriever=partial(_referred, named),
            pattern_options=jsonschema_rs.RegexOptions(),
        )
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"schema {stored.schema_id} cannot be used: {error}") from error


def _referred(named: Mapping[str, Any], uri: str) -> Any:
    """The schema that a reference means: by its name, or by the end of the address it became."""
    for name, document in named.items():
        if uri == name or uri.endswith(f"/{name}"):
            return document
    raise SchemaError(f"it refers to {uri}, which it was not registered with")
