"""A stored schema finds the codec of its language."""

import pytest
from tests.unit.schemas.protos import shop_set

from penstock.schemas.documents.codec import document_codec
from penstock.schemas.lookup import SchemaKind, StoredSchema


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        (StoredSchema(schema_id=4, kind=SchemaKind.AVRO, text='"string"'), "a"),
        (StoredSchema(schema_id=4, kind=SchemaKind.JSON, text='{"type": "string"}'), "a"),
        (
            StoredSchema(schema_id=4, kind=SchemaKind.PROTOBUF, descriptor_set=shop_set()),
            {"orderId": "1"},
        ),
    ],
)
def test_each_language_has_its_codec(schema: StoredSchema, document: object) -> None:
    codec = document_codec(schema)
    assert codec.schema_id == 4
    data = codec.encode(document)
    assert data[:5] == b"\x00\x00\x00\x00\x04"
    assert codec.decode(data) == document


def test_a_protobuf_message_can_be_chosen() -> None:
    stored = StoredSchema(schema_id=4, kind=SchemaKind.PROTOBUF, descriptor_set=shop_set())
    data = document_codec(stored, message="shop.Order.Line").encode({"sku": "x"})
    assert data == b"\x00\x00\x00\x00\x04\x04\x02\x00\x0a\x01x"
