"""JSON Schema's rules: `jsonschema` validates whatever we call readable."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.schemas.definitions.definition import NamedText
from penstock.schemas.definitions.json_schema import JsonDefinition
from penstock.schemas.errors import SchemaError

jsonschema = pytest.importorskip("jsonschema")


def defined(schema: Any, *references: NamedText) -> JsonDefinition:
    return JsonDefinition.parse(json.dumps(schema), references)


def kinds(new: Any, old: Any) -> list[tuple[str, str]]:
    return [(one.kind, one.path) for one in defined(new).differences(defined(old))]


small = st.integers(0, 3)


def maybe(**words: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=words)


leaves = st.one_of(
    st.booleans(),
    st.just({}),
    maybe(maxLength=small, minLength=small, pattern=st.sampled_from(["a", "^b"])).map(
        lambda words: {"type": "string", **words}
    ),
    maybe(
        maximum=small, minimum=small, exclusiveMaximum=small, multipleOf=st.sampled_from([1, 2, 4])
    ).map(lambda words: {"type": "number", **words}),
    maybe(minimum=small).map(lambda words: {"type": "integer", **words}),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"maxLength": 1}, {"minimum": 1}]),
    st.lists(st.sampled_from(["a", "b", 1, True, None]), min_size=1, max_size=3).map(
        lambda values: {"enum": values}
    ),
    st.lists(st.sampled_from(["string", "number", "null", "object"]), min_size=1, unique=True).map(
        lambda types: {"type": types}
    ),
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from("ab")
    return maybe(
        properties=st.dictionaries(names, inner, max_size=2),
        required=st.lists(names, max_size=2, unique=True),
        additionalProperties=inner,
        patternProperties=st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=1),
        maxProperties=small,
        minProperties=st.integers(0, 1),
        dependencies=st.just({"a": ["b"]}),
        propertyNames=st.just({"maxLength": 1}),
    ).map(lambda words: {"type": "object", **words})


def arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        maybe(items=inner, maxItems=small, minItems=small, uniqueItems=st.booleans()),
        maybe(items=st.lists(inner, min_size=1, max_size=2), additionalItems=inner),
        maybe(contains=inner),
    ).map(lambda words: {"type": "array", **words})


def combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        some.map(lambda parts: {"anyOf": parts}),
        some.map(lambda parts: {"allOf": parts}),
        inner.map(lambda part: {"not": part}),
        st.tuples(some, inner).map(lambda two: {"anyOf": two[0], "allOf": [two[1]]}),
    )


schemas = st.recursive(
    leaves, lambda inner: st.one_of(objects(inner), arrays(inner), combined(inner)), max_leaves=6
)
values = st.recursive(
    st.one_of(
        st.sampled_from(["", "a", "b", "ab", "abcd", None, True, False, 0, 1, 2, 3, 4, 1.5, -1])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "ab", "c"]), inner)
    ),
    max_leaves=5,
)


@settings(max_examples=400, deadline=None)
@given(schemas, schemas, st.lists(values, min_size=1, max_size=8))
def test_what_is_called_readable_validates(new: Any, old: Any, candidates: list[Any]) -> None:
    if defined(new).differences(defined(old)):
        return
    before, after = jsonschema.Draft7Validator(old), jsonschema.Draft7Validator(new)
    for value in candidates:
        if before.is_valid(value):
            assert after.is_valid(value), value


@settings(max_examples=200, deadline=None)
@given(schemas, st.data())
def test_a_schema_changed_in_one_place_is_judged_soundly(old: Any, data: st.DataObject) -> None:
    """Two random schemas rarely fit, so most pairs here differ little."""
    new = json.loads(json.dumps(old))
    if isinstance(new, dict) and new:
        key = data.draw(st.sampled_from(sorted(new)))
        if key != "type" and data.draw(st.booleans()):
            del new[key]
        elif isinstance(new[key], int) and not isinstance(new[key], bool):
            new[key] += data.draw(st.sampled_from([1, 2]))
        elif isinstance(new[key], dict) and key in ("properties", "patternProperties"):
            new[key]["c"] = data.draw(leaves)
    if not isinstance(new, bool) and defined(new).differences(defined(old)):
        return
    for value in data.draw(st.lists(values, max_size=8)):
        if jsonschema.Draft7Validator(old).is_valid(value):
            assert jsonschema.Draft7Validator(new).is_valid(value), value


@settings(max_examples=150, deadline=None)
@given(schemas)
def test_every_schema_takes_what_it_let_through(schema: Any) -> None:
    assert kinds(schema, schema) == []
    mine = defined(schema)
    assert JsonDefinition.parse(mine.normalised()).normalised() == mine.normalised()


def test_recursive_schemas_are_compared_to_their_end() -> None:
    tree = {
        "definitions": {
            "node": {
                "type": "object",
                "properties": {
                    "next": {"$ref": "#/definitions/node"},
                    "value": {"type": "integer"},
                },
                "additionalProperties": False,
            }
        },
        "$ref": "#/definitions/node",
    }
    wider = json.loads(json.dumps(tree).replace('"integer"', '"number"'))
    assert kinds(wider, tree) == []
    assert ("TYPE_NARROWED", "#/properties/value") in kinds(tree, wider)


def test_references_are_followed_by_name_and_by_id() -> None:
    part = NamedText(name="part.json", text='{"$id":"http://x/part.json","type":"string"}')
    mine = defined({"$ref": "part.json"}, part)
    assert [d.kind for d in mine.differences(defined({"type": "number"}))] == ["TYPE_CHANGED"]
    by_id = defined({"$id": "http://x/root.json", "$ref": "part.json"}, part)
    assert by_id.differences(defined({"type": "string"})) == []
    for wrong in ("nowhere.json", "#/definitions/none", "#none", 3, "#"):
        with pytest.raises(SchemaError):
            defined({"$ref": wrong})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        '"object"',
        "[" * 10_000,
        '{"type":"thing"}',
        '{"type":[]}',
        '{"properties":3}',
        '{"allOf":[]}',
        '{"enum":[]}',
        '{"type":"string","maxLength":-1}',
        '{"type":"number","multipleOf":0}',
        '{"type":"number","maximum":1e400}',
        '{"type":"object","required":"a"}',
        '{"properties":{"a":3}}',
    ],
)
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        JsonDefinition.parse(text)


def test_texts_are_stored_without_spaces_and_normalised_in_order() -> None:
    mine = JsonDefinition.parse('{ "type": "object", "properties": {"b": {}, "a": {}} }')
    assert mine.canonical() == '{"type":"object","properties":{"b":{},"a":{}}}'
    assert mine.normalised() == '{"properties":{"a":{},"b":{}},"type":"object"}'
    assert mine.top_level_fields() == {"a", "b"}
