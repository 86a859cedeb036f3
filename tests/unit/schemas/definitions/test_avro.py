"""Avro schemas as a registry keeps them: printed like Apache Avro, checked strictly, bounded."""

import json
from typing import Any

import pytest

from penstock.schemas.definitions.avro import AvroDefinition
from penstock.schemas.definitions.definition import DEPTH_MAX, TEXT_CHARS_MAX, NamedText
from penstock.schemas.errors import SchemaError


def printed(schema: Any) -> str:
    return AvroDefinition.parse(json.dumps(schema)).canonical()


def test_a_primitive_is_printed_as_its_name() -> None:
    assert printed({"type": "string"}) == '"string"'
    assert AvroDefinition.parse("string").canonical() == '"string"'
    assert printed({"type": "long", "logicalType": "date"}) == (
        '{"type":"long","logicalType":"date"}'
    )


def test_attributes_have_apaches_order_and_namespaces_are_said_once() -> None:
    schema = {
        "doc": "d",
        "fields": [
            {"order": "descending", "default": 1, "type": "int", "doc": "x", "name": "a", "p": 1},
            {"type": ["null", "shop.Order"], "name": "b", "aliases": ["bb"]},
            {"name": "c", "type": {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}},
            {"name": "f", "type": {"size": 2, "name": "other.F", "type": "fixed"}},
            {"name": "m", "type": {"values": "E", "type": "map"}},
        ],
        "aliases": ["Old"],
        "name": "shop.Order",
        "type": "record",
        "extra": [1],
    }
    assert printed(schema) == (
        '{"type":"record","name":"Order","namespace":"shop","doc":"d","fields":['
        '{"name":"a","type":"int","doc":"x","default":1,"order":"descending","p":1},'
        '{"name":"b","type":["null","Order"],"aliases":["bb"]},'
        '{"name":"c","type":{"type":"enum","name":"E","symbols":["A"],"default":"A"}},'
        '{"name":"f","type":{"type":"fixed","name":"F","namespace":"other","size":2}},'
        '{"name":"m","type":{"type":"map","values":"E"}}],"extra":[1],"aliases":["Old"]}'
    )
    assert AvroDefinition.parse(printed(schema)).canonical() == printed(schema)


def test_a_reference_is_printed_as_its_name() -> None:
    part = NamedText(name="shop.Part", text='{"type":"fixed","name":"shop.Part","size":1}')
    whole = '{"type":"record","name":"W","fields":[{"name":"p","type":"shop.Part"}]}'
    assert AvroDefinition.parse(whole, [part]).canonical() == whole
    with pytest.raises(SchemaError, match=r'Undefined name: "shop\.Part"'):
        AvroDefinition.parse(whole)


@pytest.mark.parametrize(
    "bad",
    [
        3,
        {},
        "nothing",
        {"type": "nothing"},
        ["int", "int"],
        ["int", ["string"]],
        {"type": "array"},
        {"type": "map"},
        {"type": "enum", "name": "E"},
        {"type": "enum", "name": "E", "symbols": ["A", "A"]},
        {"type": "enum", "name": "E", "symbols": ["1"]},
        {"type": "enum", "name": "E", "symbols": ["A"], "default": "B"},
        {"type": "enum", "name": "E", "symbols": "A"},
        {"type": "fixed", "name": "F", "size": -1},
        {"type": "fixed", "name": "F", "size": True},
        {"type": "record", "name": "R"},
        {"type": "record", "name": "R", "fields": {}},
        {"type": "record", "name": "R", "fields": ["a"]},
        {"type": "record", "name": "1", "fields": []},
        {"type": "record", "fields": []},
        {"type": "record", "name": "int", "fields": []},
        {"type": "record", "name": "R", "fields": [{"name": "a"}]},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": "x"}]},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}] * 2},
        {"type": "record", "name": "R", "aliases": 3, "fields": []},
    ],
)
def test_what_the_specification_forbids_is_refused(bad: Any) -> None:
    with pytest.raises(SchemaError):
        printed(bad)


def test_the_same_name_twice_is_refused() -> None:
    twice = {"type": "fixed", "name": "F", "size": 1}
    with pytest.raises(SchemaError, match="Can't redefine: F"):
        printed({"type": "array", "items": [twice, {"type": "array", "items": twice}]})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "[" * 10_000,
        '{"type":"array","items":' * 10_000,
        '{"type":"array","items":' * (DEPTH_MAX + 1) + '"int"' + "}" * (DEPTH_MAX + 1),
        '"' + "x" * TEXT_CHARS_MAX + '"',
        json.dumps({"type": "enum", "name": "E", "symbols": [f"S{n}" for n in range(50_001)]}),
        json.dumps([{"type": "fixed", "name": f"F{n}", "size": 1} for n in range(15_000)] * 2),
    ],
)
def test_endless_and_huge_schemas_are_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        AvroDefinition.parse(text)


def test_normalised_texts_are_equal_where_order_means_nothing() -> None:
    first = AvroDefinition.parse('{"type":"string","b":1,"a":2}')
    second = AvroDefinition.parse('{"a":2,"type":"string","b":1}')
    assert first.normalised() == second.normalised()
    assert first.canonical() != second.canonical()
    named = AvroDefinition.parse('{"type":"fixed","name":"F","namespace":"a.b","size":1}')
    assert named.normalised() == '{"type":"fixed","name":"a.b.F","size":1}'
