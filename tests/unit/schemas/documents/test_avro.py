"""Avro's JSON encoding: fastavro writes the same bytes and the same documents."""

import io
import json
import math
from typing import Any

import fastavro
import pytest

from penstock.schemas.documents.avro import AvroDocuments
from penstock.schemas.errors import DecodeError, EncodeError, SchemaError
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.wire_header import HEADER_BYTES

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "paid", "type": "boolean"},
        {"name": "ratio", "type": "double"},
        {"name": "small", "type": "float"},
        {"name": "mark", "type": "bytes"},
        {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 2}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "note", "type": ["null", "string", "State", "Order"]},
        {"name": "width", "type": ["int", "long"]},
    ],
}
DOCUMENT: dict[str, Any] = {
    "id": -(2**63),
    "paid": True,
    "ratio": 0.1,
    "small": 1.5,
    "mark": "\x00\xffa",
    "code": "\x80\x01",
    "state": "PAID",
    "day": 19_000,
    "tags": ["a", "ü€"],
    "counts": {"x": 1, "y": -2},
    "note": {"string": "late"},
    "width": {"long": 3},
}


def stored(schema: Any, *references: Any) -> StoredSchema:
    parts = tuple(
        StoredSchema(schema_id=n, kind=SchemaKind.AVRO, text=json.dumps(one))
        for n, one in enumerate(references)
    )
    return StoredSchema(
        schema_id=7, kind=SchemaKind.AVRO, text=json.dumps(schema), references=parts
    )


def documents(schema: Any, *references: Any) -> AvroDocuments:
    return AvroDocuments.of(stored(schema, *references))


def by_fastavro(schema: Any, document: Any) -> bytes:
    """The bytes that fastavro makes of what it reads from the JSON."""
    [value] = fastavro.json_reader(io.StringIO(json.dumps(document)), schema)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def test_a_document_becomes_the_bytes_that_fastavro_writes_and_comes_back() -> None:
    codec = documents(ORDER)
    data = codec.encode(DOCUMENT)
    assert data[:HEADER_BYTES] == b"\x00\x00\x00\x00\x07"
    plain = {**DOCUMENT, "width": {"int": 3}}  # fastavro takes the first type that fits.
    assert codec.encode(plain)[HEADER_BYTES:] == by_fastavro(ORDER, plain)
    assert codec.decode(data) == DOCUMENT


@pytest.mark.parametrize(
    "note",
    [None, {"string": ""}, {"shop.State": "NEW"}, {"shop.Order": {**DOCUMENT, "note": None}}],
)
def test_a_union_names_its_type(note: Any) -> None:
    codec = documents(ORDER)
    document = {**DOCUMENT, "note": note}
    assert codec.decode(codec.encode(document)) == document


def test_numbers_that_are_none_are_words() -> None:
    codec = documents("double")
    for word, number in (("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf)):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, {"type": "double"}, number)
        assert codec.encode(word)[HEADER_BYTES:] == out.getvalue()
        assert codec.decode(codec.encode(word)) == word


def test_types_of_references_are_known() -> None:
    color = {"type": "enum", "name": "c.Color", "symbols": ["RED"]}
    codec = documents({"type": "array", "items": "c.Color"}, color, color)
    assert codec.decode(codec.encode(["RED"])) == ["RED"]


@pytest.mark.parametrize(
    ("schema", "document", "reason"),
    [
        ("int", 2**31, "too large for int"),
        ("int", True, "whole number"),
        ("int", 1.0, "whole number"),
        ("long", 2**63, "too large for long"),
        ("long", "1", "whole number"),
        ("float", 1e300, "too large"),
        ("float", 10**400, "too large"),
        ("double", "many", "a number"),
        ("null", 0, "null"),
        ("boolean", 1, "true or false"),
        ("string", 1, "a text"),
        ("string", "\ud800", "surrogate"),
        ("bytes", "€", "u00ff"),
        ({"type": "array", "items": "int"}, {"a": 1}, "an array"),
        ({"type": "array", "items": "int"}, [1, "b"], "1: expected a whole number"),
        ({"type": "map", "values": "int"}, {"a": {}}, "a: expected a whole number"),
        (["null", "string"], "bare", "one name"),
        (["null", "string"], {"int": 1}, "none of the union's types null, string"),
        (["null", "string"], {"null": None}, "none of the union's types"),
        (ORDER, {**DOCUMENT, "code": "a"}, "code: expected 2 bytes, got 1"),
        (ORDER, {**DOCUMENT, "state": "GONE"}, "state: expected a symbol of shop.State"),
        (ORDER, {**DOCUMENT, "extra": 1}, "no field extra"),
        (ORDER, {"id": 1}, "lacks the field code"),
        (ORDER, {**DOCUMENT, "note": {"shop.Order": {**DOCUMENT, "id": "x"}}}, "note.id: expected"),
    ],
)
def test_a_document_that_does_not_fit_is_refused_with_its_place(
    schema: Any, document: Any, reason: str
) -> None:
    with pytest.raises(EncodeError, match="not of the Avro schema") as caught:
        documents(schema).encode(document)
    assert reason in str(caught.value)


def test_a_document_nested_without_end_is_refused() -> None:
    chain = {"type": "record", "name": "C", "fields": [{"name": "c", "type": ["null", "C"]}]}
    deep: Any = None
    for _ in range(100_000):
        deep = {"C": {"c": deep}}
    with pytest.raises(EncodeError, match="too deeply"):
        documents(chain).encode({"c": deep})
    while deep:  # Collected a level at a time.
        deep = deep["C"]["c"]
    with pytest.raises(DecodeError, match="too deeply"):
        documents(chain).decode(b"\x00\x00\x00\x00\x07" + b"\x02" * 100_000 + b"\x00")


def test_bytes_cut_anywhere_are_refused() -> None:
    codec = documents(ORDER)
    data = codec.encode(DOCUMENT)
    for end in range(len(data)):
        with pytest.raises(DecodeError):
            codec.decode(data[:end])
    with pytest.raises(DecodeError, match="left over"):
        codec.decode(data + b"\x00")


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00"),
        ({"type": "array", "items": "string"}, b"\xfe\xff\xff\xff\x7f\x00"),
        ("string", b"\xfe\xff\xff\xff\x7f"),
        ("string", b"\x01"),
        ("string", b"\x02\xff"),
        ("long", b"\xff" * 11),
        ("int", b"\xfe\xff\xff\xff\xff\x01"),
        ("boolean", b"\x02"),
        (["null"], b"\x02"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x01"),
    ],
)
def test_bad_bytes_are_refused_before_anything_is_allocated(schema: Any, payload: bytes) -> None:
    with pytest.raises(DecodeError):
        documents(schema).decode(b"\x00\x00\x00\x00\x07" + payload)


def test_a_block_may_say_its_size() -> None:
    codec = documents({"type": "array", "items": "long"})
    assert codec.decode(b"\x00\x00\x00\x00\x07" + b"\x03\x04\x02\x04\x00") == [1, 2]


@pytest.mark.parametrize("text", ["{", '{"type": "record"}', '"nothing"'])
def test_a_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        AvroDocuments.of(StoredSchema(schema_id=1, kind=SchemaKind.AVRO, text=text))
