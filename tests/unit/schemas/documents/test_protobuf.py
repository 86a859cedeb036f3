"""Protobuf's JSON mapping, under the header that names schema and message."""

from typing import Any

import pytest
from tests.unit.schemas.protos import shop_set

from penstock.schemas.documents.protobuf import ProtobufDocuments
from penstock.schemas.errors import DecodeError, EncodeError, SchemaError
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.protobuf import ProtobufSchema

STORED = StoredSchema(schema_id=9, kind=SchemaKind.PROTOBUF, descriptor_set=shop_set())
ORDER = {
    "id": "12",
    "units": 3,
    "mark": "AP8=",
    "state": "PAID",
    "orderedAt": "2026-01-02T03:04:05Z",
    "lines": [{"sku": "a", "count": 2}],
    "counts": {"x": 1},
    "extra": {"free": [1.0, None]},
    "note": "",
}


def test_a_document_is_written_as_the_first_message() -> None:
    codec = ProtobufDocuments.of(STORED)
    data = codec.encode({"orderId": "5"})
    assert data == b"\x00\x00\x00\x00\x09\x00" + b"\x08\x05"
    assert codec.decode(data) == {"orderId": "5"}


def test_a_document_is_written_as_the_message_asked_for() -> None:
    codec = ProtobufDocuments.of(STORED, "shop.Order")
    data = codec.encode(ORDER)
    assert data[:7] == b"\x00\x00\x00\x00\x09\x02\x02"
    message: Any = ProtobufSchema.of(shop_set(), "shop.Order").decode(data[7:])
    assert (message.id, message.mark, message.state) == (12, b"\x00\xff", 1)
    decoded = codec.decode(data)
    assert {name: decoded[name] for name in ORDER} == ORDER
    assert decoded["paid"] is False  # What has no presence is always told.


def test_bytes_say_which_message_they_are() -> None:
    data = ProtobufDocuments.of(STORED, "shop.Order.Line").encode({"sku": "a"})
    assert data[5:8] == b"\x04\x02\x00"
    assert ProtobufDocuments.of(STORED).decode(data) == {"sku": "a", "count": 0}


@pytest.mark.parametrize(
    "document",
    [[], "a", None, {"nothing": 1}, {"id": "x"}, {"id": 2**64}, {"state": "GONE"}, {"mark": 7}],
)
def test_a_document_that_does_not_fit_is_refused(document: Any) -> None:
    with pytest.raises(EncodeError):
        ProtobufDocuments.of(STORED, "shop.Order").encode(document)


def test_a_document_nested_without_end_is_refused() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(EncodeError):
        ProtobufDocuments.of(STORED, "shop.Order").encode({"extra": {"a": deep}})
    while deep != 1:
        deep = deep[0]


@pytest.mark.parametrize(
    "data", [b"", b"\x00\x00\x00\x00\x09", b"\x00\x00\x00\x00\x09\x00\xff", b"\x01\x00\x00\x00\x09"]
)
def test_bad_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        ProtobufDocuments.of(STORED).decode(data)


def test_indexes_that_lead_nowhere_are_refused() -> None:
    with pytest.raises(SchemaError, match="no message at"):
        ProtobufDocuments.of(STORED).decode(b"\x00\x00\x00\x00\x09\x02\x0e")
    with pytest.raises(SchemaError, match="no message"):
        ProtobufDocuments.of(STORED, "shop.Nothing")
