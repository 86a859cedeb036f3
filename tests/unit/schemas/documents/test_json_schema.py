"""JSON is checked by its schema before it is written, and by nothing from the network."""

import json
from typing import Any

import pytest

from penstock.schemas.documents.json_schema import JsonDocuments, read_json
from penstock.schemas.errors import DecodeError, EncodeError, SchemaError
from penstock.schemas.lookup import SchemaKind, StoredSchema


def stored(schema: Any, **references: Any) -> StoredSchema:
    parts = tuple(
        StoredSchema(schema_id=n, kind=SchemaKind.JSON, text=json.dumps(one), name=name)
        for n, (name, one) in enumerate(references.items())
    )
    return StoredSchema(
        schema_id=3, kind=SchemaKind.JSON, text=json.dumps(schema), references=parts
    )


def documents(schema: Any, **references: Any) -> JsonDocuments:
    return JsonDocuments.of(stored(schema, **references))


def test_a_document_is_written_without_spaces() -> None:
    codec = documents({"type": "object"})
    data = codec.encode({"a": [1, "ü"], "b": None})
    assert data == b'\x00\x00\x00\x00\x03{"a":[1,"\xc3\xbc"],"b":null}'
    assert codec.decode(data) == {"a": [1, "ü"], "b": None}


def test_what_the_schema_does_not_allow_is_refused_with_its_place() -> None:
    codec = documents({"properties": {"lines": {"items": {"type": "integer"}}}})
    with pytest.raises(EncodeError, match='lines/1: "x" is not of type "integer"'):
        codec.encode({"lines": [1, "x"]})


@pytest.mark.parametrize(
    "draft",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2020-12/schema",
    ],
)
def test_every_draft_is_understood(draft: str) -> None:
    codec = documents({"$schema": draft, "type": "object", "required": ["id"]})
    assert codec.decode(codec.encode({"id": 1})) == {"id": 1}
    with pytest.raises(EncodeError, match="required"):
        codec.encode({})


@pytest.mark.parametrize("own", [{}, {"$id": "http://shop/order.json"}])
def test_a_reference_is_found_by_its_name(own: dict[str, str]) -> None:
    schema = {**own, "properties": {"line": {"$ref": "line.json"}}}
    codec = documents(schema, **{"line.json": {"type": "string"}})
    codec.encode({"line": "a"})
    with pytest.raises(EncodeError, match="line: 1 is not"):
        codec.encode({"line": 1})


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/a.json", "file:///etc/hosts", "b.json"])
def test_a_reference_that_was_not_given_is_not_fetched(address: str) -> None:
    with pytest.raises(SchemaError, match="not among the references"):
        documents({"$ref": address})


@pytest.mark.parametrize("text", ["{", '{"type": 7}', "7", '{"pattern": "("}', "[" * 100_000])
def test_a_text_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        JsonDocuments.of(StoredSchema(schema_id=1, kind=SchemaKind.JSON, text=text))


@pytest.mark.parametrize("document", [float("nan"), {1, 2}, object()])
def test_what_json_cannot_hold_is_refused(document: Any) -> None:
    with pytest.raises(EncodeError):
        documents({}).encode(document)


def test_deep_and_endless_documents_are_refused() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(EncodeError):
        documents({}).encode(deep)
    while deep != 1:
        deep = deep[0]
    with pytest.raises(DecodeError, match="too deeply"):
        read_json(b"[" * 1_000_000)


@pytest.mark.parametrize("data", [b"", b"{", b"NaN", b"\xff", b"1 2"])
def test_bad_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        documents({}).decode(b"\x00\x00\x00\x00\x03" + data)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(?!b)(a+)+$", r"^((a|aa)+)\1c$"])
def test_a_pattern_cannot_take_for_ever(pattern: str) -> None:
    codec = documents({"pattern": pattern})
    with pytest.raises(EncodeError):
        codec.encode("a" * 20_000 + "b")


def test_a_pattern_may_look_ahead() -> None:
    codec = documents({"pattern": "^(?!tmp)"})
    codec.encode("orders")
    with pytest.raises(EncodeError, match="does not match"):
        codec.encode("tmp-orders")
