"""Values decode by the schema that they name, or say why not; nothing they hold runs away."""

import io

import fastavro
import pytest
from tests.unit.schemas.checking.samples import (
    AVRO,
    JSON,
    ORDER,
    PROTOBUF,
    REFERRING,
    STORED,
    MemoryRegistry,
    framed,
)

from penstock.schemas.checking.decoders import SchemaDecoders, decoder_of
from penstock.schemas.errors import DecodeError, FormatError, SchemaError, UnknownSchema
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.protobuf import ProtobufSchema


@pytest.fixture
def decoders() -> SchemaDecoders:
    return SchemaDecoders(MemoryRegistry())


def avro_order() -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, ORDER, {"id": 7, "gaps": [None, None]})
    return stream.getvalue()


def refund() -> bytes:
    schema = ProtobufSchema.at(STORED[PROTOBUF].descriptor_set, (0,))
    return bytes(schema.message_class(order_id=7).SerializeToString())


@pytest.mark.parametrize(
    ("schema_id", "data"),
    [
        (AVRO, avro_order()),
        (JSON, b'{"age": 3}'),
        (REFERRING, b'{"age": 3}'),
        (PROTOBUF, b"\0" + refund()),
        (PROTOBUF, b"\x02\x02"),  # The second message, which is empty.
    ],
)
def test_what_fits_passes(decoders: SchemaDecoders, schema_id: int, data: bytes) -> None:
    decoders.decode(framed(schema_id, data))
    decoders.decode(framed(schema_id, data))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (framed(AVRO, avro_order()[:-1]), "end too early"),
        (framed(AVRO, avro_order() + b"!"), "1 bytes are left over"),
        (framed(JSON, b'{"age": "x"}'), "does not fit at /age"),
        (framed(JSON, b"{"), "not JSON"),
        (framed(JSON, b"[" * 200_000), "not JSON"),
        (framed(JSON, b"\xff\xfe"), "not JSON"),
        (framed(REFERRING, b'{"age": "x"}'), "does not fit at /age"),
        (framed(PROTOBUF, b"\0\xff"), "not a Protobuf message shop.Refund"),
        (framed(PROTOBUF, b""), "ends inside its list"),
        (b"plain", "no header"),
        (b"", "too few"),
    ],
)
def test_what_does_not_fit_is_told(decoders: SchemaDecoders, data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decoders.decode(data)


def test_a_message_that_the_file_does_not_have_is_told(decoders: SchemaDecoders) -> None:
    with pytest.raises(FormatError, match="declares no message"):
        decoders.decode(framed(PROTOBUF, b"\x02\x64"))


def test_an_unknown_schema_is_told(decoders: SchemaDecoders) -> None:
    with pytest.raises(UnknownSchema):
        decoders.decode(framed(99, b""))


def test_a_pattern_takes_no_more_than_linear_time(decoders: SchemaDecoders) -> None:
    name = b"a" * 100_000 + b"!"
    with pytest.raises(DecodeError, match="does not fit at /name"):
        decoders.decode(framed(JSON, b'{"age": 1, "name": "%s"}' % name))


@pytest.mark.parametrize("text", ["{", '{"type": 7}', '{"$ref": "http://127.0.0.1:1/x.json"}'])
def test_a_json_schema_that_cannot_be_used_is_told_and_fetches_nothing(text: str) -> None:
    stored = StoredSchema(schema_id=5, kind=SchemaKind.JSON, text=text)
    with pytest.raises(SchemaError, match="schema 5 cannot be used"):
        decoder_of(stored)
