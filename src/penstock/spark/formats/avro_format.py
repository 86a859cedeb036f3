"""Avro values, bare or behind the header that names the schema they were written with.

The columns follow one schema, the reader's. Values of other schemas, found by the id in their
header, are resolved to it by Avro's rules: added fields get their defaults, numbers widen, names
follow aliases. What cannot be resolved is a record that cannot be decoded.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import types as t

from penstock.schemas import avro
from penstock.schemas.errors import EncodeError, SchemaError
from penstock.schemas.lookup import SchemaLookup
from penstock.schemas.registry_client import RegistryClient
from penstock.schemas.serializers.avro import new_avro
from penstock.schemas.wire_header import HEADER_BYTES, read_header, write_header
from penstock.spark.formats.avro_types import Mapped, avro_schema, mapped, target_of
from penstock.spark.formats.format import (
    DecodedValues,
    Format,
    ValueDecoder,
    ValueEncoder,
    decode_each,
    encode_each,
    rows_of,
)
from penstock.spark.formats.registering import registered_id, subject_of


@dataclass(frozen=True)
class Avro(Format):
    """Avro by a schema in JSON, or by the ids in the values.

    `Avro(schema)` is bare Avro. With `lookup` (a `SchemaDirectory`, a `RegistryClient`) values
    have the five-byte header, and `schema` or the schema of `schema_id` tells the columns;
    `schema_id` is also what is written. `writer_schema` is for bare values that another schema
    wrote than the one wanted.

    Written with a `RegistryClient` and no `schema_id`, the schema, or that of the column where none
    is given, is registered first, under `subject` or the topic's own; with `register=False` it
    must be there.
    """

    schema: Any = None
    lookup: SchemaLookup | None = None
    schema_id: int | None = None
    writer_schema: Any = None
    subject: str | None = None
    register: bool = True
    name = "Avro"

    def __post_init__(self) -> None:
        if self.lookup is not None and self.writer_schema is not None:
            raise SchemaError("with lookup, the header names the writer's schema; drop one of them")
        if self.lookup is None and self.schema_id is not None:
            raise SchemaError("schema_id means nothing without lookup: bare values have no header")

    @cached_property
    def reader(self) -> avro.Schema:
        """The schema that the columns follow."""
        if self.schema is not None:
            return avro.parse(self.schema)
        if self.lookup is not None and self.schema_id is not None:
            return avro.parse_stored(self.lookup.by_id(self.schema_id))
        raise SchemaError("Avro needs schema=..., or lookup=... and schema_id=... to find it")

    @property
    def has_schema(self) -> bool:
        """Whether it is known what to write by, other than by the column itself."""
        return self.schema is not None or self.schema_id is not None

    def spark_type(self) -> t.DataType:
        return mapped(self.reader).spark

    def decoder(self) -> ValueDecoder:
        return AvroDecoder(self)

    def for_writing(self, spark_type: t.DataType, topic: str | None, *, is_key: bool) -> "Avro":
        if not isinstance(self.lookup, RegistryClient) or self.schema_id is not None:
            return self
        schema = self.schema if self.schema is not None else avro_schema(spark_type)
        schema_id = registered_id(
            self.lookup,
            new_avro(schema, ()),
            subject_of(self.subject, topic, is_key=is_key),
            register=self.register,
        )
        return replace(self, schema=schema, schema_id=schema_id)

    def encoder(self, spark_type: t.DataType) -> ValueEncoder:
        if self.lookup is not None and self.schema_id is None:
            raise SchemaError("to write Avro with a header, give the id of its schema: schema_id=")
        schema = self.reader if self.has_schema else avro.parse(avro_schema(spark_type))
        header = b"" if self.schema_id is None else write_header(self.schema_id)
        return AvroEncoder(schema, header)

    def __getstate__(self) -> dict[str, Any]:
        names = ("schema", "lookup", "schema_id", "writer_schema", "subject", "register")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class AvroDecoder:
    """Decodes batches of Avro values."""

    def __init__(self, described: Avro) -> None:
        self._reader = described.reader
        self._lookup = described.lookup
        self._mapped: Mapped = mapped(self._reader)
        self._target = target_of(self._mapped)
        written = avro.parse(described.writer_schema) if described.writer_schema else self._reader
        self._bare = self._resolved(written)
        self._by_id: dict[int, avro.AvroReader | SchemaError] = {}

    def decode(self, values: pa.Array) -> DecodedValues:
        """All values of a batch."""
        one = self._bare_value if self._lookup is None else self._framed_value
        return decode_each(values, one, self._mapped.stored, self._target)

    def _bare_value(self, data: bytes) -> object:
        return self._loaded(self._bare.decode(data))

    def _framed_value(self, data: bytes) -> object:
        schema_id = read_header(data)
        reader = self._by_id.get(schema_id)
        if reader is None:
            reader = self._by_id[schema_id] = self._find(schema_id)
        if isinstance(reader, SchemaError):
            raise reader
        return self._loaded(reader.decode(data, HEADER_BYTES))

    def _find(self, schema_id: int) -> avro.AvroReader | SchemaError:
        """A schema that is not there is not asked for again by every record that names it."""
        assert self._lookup is not None
        try:
            return self._resolved(avro.parse_stored(self._lookup.by_id(schema_id)))
        except SchemaError as error:
            return error

    def _resolved(self, writer: avro.Schema) -> avro.AvroReader:
        recursive = avro.recursive_name(writer)
        if recursive is not None:
            # The library follows such values without a limit of depth.
            raise SchemaError(
                f"the Avro type {recursive} contains itself; such values are not read"
            )
        tagged = avro.has_choice(self._reader)
        return avro.AvroReader.of(writer, self._reader, plain=True, names_types=tagged)

    def _loaded(self, value: Any) -> Any:
        return value if self._mapped.load is None else self._mapped.load(value)


class AvroEncoder:
    """Encodes batches of Avro values."""

    def __init__(self, schema: avro.Schema, header: bytes) -> None:
        self._mapped = mapped(schema)
        self._writer = avro.AvroWriter.of(schema, plain=True)
        self._header = header

    def encode(self, values: pa.Array) -> pa.Array:
        """All values of a batch."""
        try:
            stored = values.cast(self._mapped.stored, safe=False)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise EncodeError(
                f"a column of type {values.type} does not fit the Avro schema: {error}"
            ) from error
        return encode_each(rows_of(stored.cast(self._mapped.plain)), self._one)

    def _one(self, value: Any) -> bytes:
        dumped = value if self._mapped.dump is None else self._mapped.dump(value)
        return self._writer.encode(dumped, self._header)
