"""Schemas made to keep a registry busy: all end soon, with an answer or a SchemaError."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.schemas.compatibility.whole.pairs import compile_here

from penstock.schemas.definitions.avro import AvroDefinition
from penstock.schemas.definitions.definition import NamedText
from penstock.schemas.definitions.json_schema import JsonDefinition
from penstock.schemas.errors import SchemaError


def as_json(schema: Any) -> JsonDefinition:
    return JsonDefinition.parse(json.dumps(schema))


def as_avro(schema: Any) -> AvroDefinition:
    return AvroDefinition.parse(json.dumps(schema))


def test_huge_enums_are_compared() -> None:
    first, second = [f"S{n}" for n in range(40_000)], [f"S{n}" for n in range(1, 40_001)]
    old, new = as_json({"enum": first}), as_json({"enum": second})
    assert [one.kind for one in new.differences(old)] == ["ENUM_ARRAY_CHANGED"]
    enum = {"type": "enum", "name": "E"}
    found = as_avro({**enum, "symbols": second}).differences(as_avro({**enum, "symbols": first}))
    assert [one.detail for one in found] == ["[S0]"]


def test_wide_unions_of_records_end() -> None:
    def union(mark: str) -> AvroDefinition:
        return as_avro([{"type": "record", "name": f"{mark}{n}", "fields": []} for n in range(150)])

    found = union("A").differences(union("B"))
    assert {one.kind for one in found} == {"MISSING_UNION_BRANCH"}
    with pytest.raises(SchemaError, match="too large"):
        as_avro([{"type": "fixed", "name": f"A{n}", "size": 1} for n in range(300)]).differences(
            as_avro([{"type": "fixed", "name": f"B{n}", "size": 1} for n in range(300)])
        )


def test_a_chain_of_records_is_refused_where_it_is_too_long() -> None:
    def chain(length: int) -> AvroDefinition:
        records: list[Any] = [{"type": "record", "name": "R0", "fields": []}]
        for n in range(1, length + 1):
            inner = {"name": "f", "type": f"R{n - 1}"}
            records.append({"type": "record", "name": f"R{n}", "fields": [inner]})
        part = NamedText(name="parts", text=json.dumps(records))
        return AvroDefinition.parse(f'"R{length}"', [part])

    assert chain(20).differences(chain(20)) == []
    with pytest.raises(SchemaError, match="nested too deeply"):
        chain(3_000).differences(chain(3_000))


@pytest.mark.parametrize("length", [2, 5_000])
def test_references_in_a_circle_are_refused_and_long_chains_followed(length: int) -> None:
    parts = {f"p{n}": {"$ref": f"#/definitions/p{n + 1}"} for n in range(length)}
    whole = {"$ref": "#/definitions/p0"}
    circle = {**parts, f"p{length}": {"$ref": "#/definitions/p0"}}
    with pytest.raises(SchemaError, match="refers to itself"):
        as_json({"definitions": circle, **whole})
    chain = as_json({"definitions": {**parts, f"p{length}": {"type": "string"}}, **whole})
    assert chain.differences(as_json({"type": "string"})) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://[x"},
        {"allOf": [{}], "not": {"$ref": "#/allOf/" + "1" * 5_000}},
        {"type": "number", "exclusiveMaximum": "a"},
        {"type": "object", "required": [[]]},
        {"type": "object", "dependencies": {"a": [1]}},
    ],
)
def test_what_only_looks_like_a_schema_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaError):
        as_json(schema)


def test_numbers_without_end_are_compared() -> None:
    old, new = as_json({"maxLength": 10**400}), as_json({"maxLength": 10**401})
    assert new.differences(old) == []


def test_a_name_on_a_type_without_names_means_nothing() -> None:
    named = {"type": "array", "items": "int", "name": ["x"]}
    assert as_avro(["null", named]).differences(as_avro(["null", named])) == []


def test_a_pattern_that_would_take_years_takes_none() -> None:
    rest = {"type": "object", "patternProperties": {"^(a+)+$": {"type": "string"}}}
    name = "a" * 40 + "b"
    new = as_json({**rest, "properties": {name: {"type": "string"}}})
    assert [one.kind for one in new.differences(as_json(rest))] == [
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
    ]


def test_many_names_against_many_patterns_end() -> None:
    patterns = {f"^x{n}": {} for n in range(3_000)}
    old = as_json({"type": "object", "patternProperties": patterns})
    properties = {f"y{n}": {"type": "string"} for n in range(3_000)}
    with pytest.raises(SchemaError, match="too large"):
        as_json({"type": "object", "properties": properties}).differences(old)


def test_a_pattern_of_another_dialect_may_match_anything() -> None:
    looks = {"type": "object", "patternProperties": {"^(?=b)": {"type": "string"}}}
    closed = {**looks, "additionalProperties": False}
    new = as_json({**closed, "properties": {"b": {"type": "number"}}})
    assert new.differences(as_json(closed)), "the pattern may have held a string"
    assert as_json(closed).differences(new)


def test_ten_thousand_levels_are_refused_in_every_language() -> None:
    for text in ('{"not":' * 10_000 + "{}" + "}" * 10_000, "[" * 10_000, '{"a":' * 10_000):
        for parse in (JsonDefinition.parse, AvroDefinition.parse):
            with pytest.raises(SchemaError):
                parse(text)


def test_a_chain_of_messages_is_compared_or_refused() -> None:
    pytest.importorskip("grpc_tools")

    def chain(last: str) -> str:
        links = [f"message M{n} {{ M{n + 1} a = 1; }}" for n in range(3_000)]
        return 'syntax = "proto3"; ' + " ".join(links) + f" message M3000 {{ {last} a = 1; }}"

    old, new = compile_here(chain("int32")), compile_here(chain("string"))
    with pytest.raises(SchemaError, match="nested too deeply"):
        new.differences(old)


_KEYWORDS = [
    "type", "properties", "patternProperties", "additionalProperties", "required", "items",
    "prefixItems", "additionalItems", "contains", "enum", "const", "allOf", "anyOf", "oneOf", "not",
    "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "maxLength",
    "minLength", "pattern", "maxItems", "uniqueItems", "maxProperties", "propertyNames",
    "dependencies", "dependentRequired", "dependentSchemas", "$ref", "$id", "$anchor", "default",
    "if", "then", "definitions",
]  # fmt: skip
_AVRO_WORDS = [
    "type", "name", "namespace", "fields", "symbols", "size", "items", "values", "default",
    "aliases", "doc", "order", "logicalType",
]  # fmt: skip
_TEXTS = [
    "object", "string", "record", "enum", "fixed", "array", "map", "int", "a", "#", "#/a", "(",
    "http://[", ".",
]  # fmt: skip


def trees(words: list[str]) -> st.SearchStrategy[Any]:
    leaves = st.one_of(
        st.none(), st.booleans(), st.sampled_from([-1, 0, 1.5, 10**400]), st.sampled_from(_TEXTS)
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(words), inner, max_size=4)
        ),
        max_leaves=8,
    )


def compare_or_refuse(parse: Any, first: Any, second: Any) -> None:
    try:
        old, new = parse(json.dumps(first)), parse(json.dumps(second))
        new.differences(old)
        old.differences(new)
    except SchemaError:
        return
    assert parse(new.canonical()).canonical() == new.canonical()


@settings(max_examples=200, deadline=None)
@given(trees(_KEYWORDS), trees(_KEYWORDS))
def test_any_json_is_a_schema_or_refused(first: Any, second: Any) -> None:
    compare_or_refuse(JsonDefinition.parse, first, second)


@settings(max_examples=200, deadline=None)
@given(trees(_AVRO_WORDS), trees(_AVRO_WORDS))
def test_any_json_is_an_avro_schema_or_refused(first: Any, second: Any) -> None:
    compare_or_refuse(AvroDefinition.parse, first, second)
