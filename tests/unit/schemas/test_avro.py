"""Avro values by fastavro: round trips, resolution, and bytes that are no Avro."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.schemas.avro import AvroReader, AvroWriter, has_choice, parse, recursive_name
from penstock.schemas.errors import DecodeError, EncodeError, SchemaError

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "lines", "type": {"type": "array", "items": {
            "type": "record", "name": "Line", "fields": [
                {"name": "sku", "type": "string"}, {"name": "count", "type": "int"}]}}},
        {"name": "best", "type": ["null", "Line"], "default": None},
    ],
}  # fmt: skip
LINES = st.fixed_dictionaries({"sku": st.text(), "count": st.integers(-(2**31), 2**31 - 1)})
ORDERS = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "note": st.none() | st.text(),
        "lines": st.lists(LINES, max_size=3),
        "best": st.none() | LINES,
    }
)


def read(writer: Any, data: bytes, reader: Any = None) -> Any:
    parsed = None if reader is None else parse(reader)
    return AvroReader.of(parse(writer), parsed).decode(data)


def written(schema: Any, value: Any) -> bytes:
    return AvroWriter.of(parse(schema)).encode(value)


@given(ORDERS)
def test_a_record_comes_back(order: dict[str, Any]) -> None:
    assert read(ORDER, written(ORDER, order)) == order


@given(ORDERS, st.data())
def test_a_value_cut_short_or_too_long_is_refused(order: dict[str, Any], data: Any) -> None:
    whole = written(ORDER, order)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(DecodeError):
        read(ORDER, whole[:cut])
    with pytest.raises(DecodeError, match="1 bytes are left over"):
        read(ORDER, whole + b"\x00")


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_decode_error(data: bytes) -> None:
    try:
        value = read(ORDER, data)
    except DecodeError:
        return
    assert set(value) == {"id", "note", "lines", "best"}


def test_the_header_stands_in_front_and_is_passed_over() -> None:
    schema = parse('"string"')
    data = AvroWriter.of(schema).encode("x", b"HEAD")
    assert data == b"HEAD\x02x"
    assert AvroReader.of(schema).decode(data, 4) == "x"


def test_logical_types_are_python_values_or_plain_numbers() -> None:
    schema = {
        "type": "record", "name": "T", "fields": [
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "sum", "type": {
                "type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        ],
    }  # fmt: skip
    value = {
        "day": date(2026, 1, 2),
        "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "sum": Decimal("-12.50"),
    }
    data = written(schema, value)
    assert read(schema, data) == value
    plain = AvroReader.of(parse(schema), plain=True).decode(data)
    assert plain == {"day": 20455, "at": 1767323045000, "sum": Decimal("-12.50")}


def test_a_newer_reader_gets_defaults_and_wider_numbers_and_follows_aliases() -> None:
    old = {"type": "record", "name": "P", "fields": [
        {"name": "id", "type": "int"}, {"name": "nick", "type": "string"}]}  # fmt: skip
    new = {"type": "record", "name": "P", "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string", "aliases": ["nick"]},
        {"name": "age", "type": "int", "default": 18}]}  # fmt: skip
    data = written(old, {"id": 5, "nick": "ann"})
    assert read(old, data, new) == {"id": 5, "name": "ann", "age": 18}


def test_what_cannot_be_resolved_is_refused() -> None:
    with pytest.raises(DecodeError, match="not of the Avro schema"):
        read('"string"', written('"string"', "x"), '"int"')


def test_named_types_are_written_out_wherever_they_are_used() -> None:
    fields = {field["name"]: field["type"] for field in parse(ORDER)["fields"]}
    assert fields["best"][1]["name"] == "shop.Line"
    assert fields["best"][1]["fields"] == fields["lines"]["items"]["fields"]


def test_types_may_be_declared_in_other_schemas() -> None:
    line = json.dumps({**ORDER["fields"][2]["type"]["items"], "namespace": "shop"})  # type: ignore[index]
    schema = {"type": "array", "items": "shop.Line"}
    parsed = parse(json.dumps(schema), [line])
    value = [{"sku": "a", "count": 1}, {"sku": "b", "count": 2}]
    assert AvroReader.of(parsed).decode(AvroWriter.of(parsed).encode(value)) == value


def test_a_type_that_contains_itself_is_recognised() -> None:
    tree = {"type": "record", "name": "Tree", "fields": [
        {"name": "left", "type": ["null", "Tree"]}]}  # fmt: skip
    assert recursive_name(parse(tree)) == "Tree"
    assert recursive_name(parse(ORDER)) is None


def test_only_unions_with_a_choice_count_as_one() -> None:
    assert not has_choice(parse(ORDER))
    assert has_choice(parse({"type": "array", "items": ["null", "int", "string"]}))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not an Avro schema"),
        ('{"type": "record", "fields": []}', "not an Avro schema"),
        ('{"type": "array", "items": "Nowhere"}', "uses Nowhere"),
        ("[1]", "not an Avro schema"),
        ("17", "not an Avro schema"),
    ],
)
def test_a_broken_schema_says_so(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        parse(text)


@pytest.mark.parametrize("value", [{"id": "x"}, {}, None, {"id": 2**70}])
def test_a_value_that_is_not_of_the_schema_is_refused(value: Any) -> None:
    with pytest.raises(EncodeError, match="not of the Avro schema"):
        written({"type": "record", "name": "A", "fields": [{"name": "id", "type": "long"}]}, value)
