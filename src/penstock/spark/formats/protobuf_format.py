"""Protobuf values, bare or behind the header that names the schema they were written with.

The columns follow one message type, the reader's; Protobuf itself copes with values of an older or
newer version of it, by field numbers. The header is checked all the same: a value of another
message would be read as nonsense without an error.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import types as t

from penstock.schemas.errors import DecodeError, EncodeError, SchemaError
from penstock.schemas.lookup import SchemaKind, SchemaLookup
from penstock.schemas.protobuf import Message, ProtobufSchema
from penstock.schemas.registry_client import RegistryClient
from penstock.schemas.serializers.protobuf import ProtobufFiles
from penstock.schemas.wire_header import (
    read_header,
    read_message_indexes,
    write_header,
    write_message_indexes,
)
from penstock.spark.formats.format import (
    DecodedValues,
    Format,
    ValueDecoder,
    ValueEncoder,
    arrow_type,
    decode_each,
    encode_each,
    rows_of,
)
from penstock.spark.formats.protobuf_types import filler, loader, spark_type
from penstock.spark.formats.registering import registered_id, subject_of


@dataclass(frozen=True)
class Protobuf(Format):
    """Protobuf by a compiled descriptor set (bytes or the path of a file) or a generated class.

    `message` is the full name of the message; without it, the first of the last file. With
    `framed` values have the five-byte header and the message indexes. With `lookup` the header's
    schema is looked up, which also finds messages that moved inside their file; `schema_id` is what
    to write, and stands for the descriptor set where none is given.

    Written with a `RegistryClient` and no `schema_id`, the message's file is registered first,
    after those that it imports, under `subject` or the topic's own; with `register=False` it must
    be there.
    """

    descriptor_set: bytes | str | Path | type[Message] | None = None
    message: str | None = None
    framed: bool = False
    lookup: SchemaLookup | None = None
    schema_id: int | None = None
    subject: str | None = None
    register: bool = True
    name = "Protobuf"

    def __post_init__(self) -> None:
        if isinstance(self.descriptor_set, type):
            schema = ProtobufSchema.of_class(self.descriptor_set)
            # A generated class may not exist on the workers; its description can travel.
            object.__setattr__(self, "descriptor_set", schema.descriptor_set)
            object.__setattr__(self, "message", self.message or schema.message)
        elif isinstance(self.descriptor_set, (str, Path)):
            object.__setattr__(self, "descriptor_set", _read(Path(self.descriptor_set)))
        if self.lookup is not None:
            object.__setattr__(self, "framed", True)
        elif self.schema_id is not None and not self.framed:
            raise SchemaError("schema_id means nothing without framed=True: there is no header")

    @cached_property
    def schema(self) -> ProtobufSchema:
        """The message that the columns follow."""
        if self.descriptor_set is not None:
            assert isinstance(self.descriptor_set, bytes)
            return ProtobufSchema.of(self.descriptor_set, self.message)
        if self.lookup is None or self.schema_id is None:
            raise SchemaError(
                "Protobuf needs a descriptor set, or lookup=... and schema_id=... to find one"
            )
        stored = self.lookup.by_id(self.schema_id).expect(SchemaKind.PROTOBUF)
        return ProtobufSchema.of(stored.descriptor_set, self.message)

    def spark_type(self) -> t.DataType:
        return spark_type(self.schema.descriptor)

    def decoder(self) -> ValueDecoder:
        return ProtobufDecoder(self)

    def for_writing(self, spark_type: t.DataType, topic: str | None, *, is_key: bool) -> "Protobuf":
        if not isinstance(self.lookup, RegistryClient) or self.schema_id is not None:
            return self
        subject = subject_of(self.subject, topic, is_key=is_key)
        files = ProtobufFiles(registry=self.lookup, auto_register=self.register)
        new = files.new(self.schema.descriptor.file)
        schema_id = registered_id(self.lookup, new, subject, register=self.register)
        return replace(self, schema_id=schema_id)

    def encoder(self, spark_type: t.DataType) -> ValueEncoder:
        if self.framed and self.schema_id is None:
            raise SchemaError("to write framed Protobuf, give the id of its schema: schema_id=...")
        header = b""
        if self.schema_id is not None:
            header = write_header(self.schema_id) + write_message_indexes(self.schema.index_path)
        return ProtobufEncoder(self.schema, header, self.spark_type())

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class ProtobufDecoder:
    """Decodes batches of Protobuf messages."""

    def __init__(self, described: Protobuf) -> None:
        self._schema = described.schema
        self._framed = described.framed
        self._lookup = described.lookup
        self._load = loader(self._schema.descriptor)
        self._target = arrow_type(described.spark_type())
        self._checked: dict[tuple[int, tuple[int, ...]], SchemaError | None] = {}

    def decode(self, values: pa.Array) -> DecodedValues:
        """All values of a batch."""
        one = self._framed_value if self._framed else self._bare_value
        return decode_each(values, one, self._target, self._target)

    def _bare_value(self, data: bytes) -> object:
        return self._load(self._schema.decode(data))

    def _framed_value(self, data: bytes) -> object:
        schema_id = read_header(data)
        path, at = read_message_indexes(data)
        if self._lookup is None:
            if path != self._schema.index_path:
                raise DecodeError(
                    f"the value is message {list(path)} of schema {schema_id}; "
                    f"{self._schema.message} is {list(self._schema.index_path)} of its own"
                )
        else:
            self._check(schema_id, path)
        return self._load(self._schema.decode(data[at:]))

    def _check(self, schema_id: int, path: tuple[int, ...]) -> None:
        """A schema is looked up once, whether it is there or not."""
        if (schema_id, path) not in self._checked:
            self._checked[schema_id, path] = self._mismatch(schema_id, path)
        wrong = self._checked[schema_id, path]
        if wrong is not None:
            raise wrong

    def _mismatch(self, schema_id: int, path: tuple[int, ...]) -> SchemaError | None:
        assert self._lookup is not None
        try:
            stored = self._lookup.by_id(schema_id).expect(SchemaKind.PROTOBUF)
            written = ProtobufSchema.at(stored.descriptor_set, path).message
        except SchemaError as error:
            return error
        if written == self._schema.message:
            return None
        return SchemaError(
            f"the value is a {written} (message {list(path)} of schema {schema_id}), "
            f"not a {self._schema.message}"
        )


class ProtobufEncoder:
    """Encodes batches of Protobuf messages."""

    def __init__(self, schema: ProtobufSchema, header: bytes, wanted: t.DataType) -> None:
        self._message_class = schema.message_class
        self._fill = filler(schema.descriptor)
        self._header = header
        self._stored = arrow_type(wanted)

    def encode(self, values: pa.Array) -> pa.Array:
        """All values of a batch."""
        try:
            stored = values.cast(self._stored)
            plain = stored.cast(_plain(self._stored))
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise EncodeError(
                f"a column of type {values.type} does not fit the message: {error}"
            ) from error
        return encode_each(rows_of(plain), self._one)

    def _one(self, value: Any) -> bytes:
        message = self._message_class()
        self._fill(message, value)
        return self._header + bytes(message.SerializeToString())


def _plain(kind: pa.DataType) -> pa.DataType:
    """Times as numbers, everything else as it is."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct(
            [(kind.field(n).name, _plain(kind.field(n).type)) for n in range(len(kind))]
        )
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _plain(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SchemaError(f"the descriptor set {path} cannot be read: {error.strerror}") from error
