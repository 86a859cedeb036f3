"""Avro's rules against two others: fastavro decodes, Apache's own package judges."""

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.schemas.definitions.avro import AvroDefinition
from penstock.schemas.errors import SchemaError

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> Any:
    kind = draw(st.sampled_from(["primitive"] * 3 + ["array", "map", "union", "record", "enum"]))
    if kind == "primitive" or depth == 0:
        return draw(st.sampled_from(PRIMITIVES))
    if kind == "array":
        return {"type": "array", "items": draw(schemas(depth=depth - 1))}
    if kind == "map":
        return {"type": "map", "values": draw(schemas(depth=depth - 1))}
    if kind == "union":
        return draw(st.lists(st.sampled_from(PRIMITIVES), min_size=1, max_size=4, unique=True))
    if kind == "enum":
        symbols = draw(st.lists(st.sampled_from("ABC"), min_size=1, max_size=3, unique=True))
        made: dict[str, Any] = {"type": "enum", "name": f"E{depth}", "symbols": symbols}
        return made | ({"default": symbols[0]} if draw(st.booleans()) else {})
    fields = []
    for name in draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True)):
        inner = draw(schemas(depth=0))
        one = {"name": name, "type": inner}
        if draw(st.booleans()):
            one["default"] = DEFAULTS[inner]
        fields.append(one)
    return {"type": "record", "name": f"R{depth}", "fields": fields}


DEFAULTS = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 2,
    "float": 0.5,
    "double": 1.5,
    "bytes": "b",
    "string": "s",
}


def values(schema: Any) -> st.SearchStrategy[Any]:
    match schema if isinstance(schema, str) else "":
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "int":
            return st.integers(-(2**31), 2**31 - 1)
        case "long":
            return st.integers(-(2**63), 2**63 - 1)
        case "float" | "double":
            return st.floats(width=32, allow_nan=False, allow_infinity=False)
        case "bytes":
            return st.text("xyz", max_size=3).map(str.encode)  # Readable as a string, too.
        case "string":
            return st.text(max_size=3)
    if isinstance(schema, list):
        return st.one_of([values(branch) for branch in schema])
    match schema["type"]:
        case "array":
            return st.lists(values(schema["items"]), max_size=2)
        case "map":
            return st.dictionaries(st.text("kl", max_size=1), values(schema["values"]), max_size=2)
        case "enum":
            return st.sampled_from(schema["symbols"])
        case _:
            return st.fixed_dictionaries({f["name"]: values(f["type"]) for f in schema["fields"]})


def defined(schema: Any) -> AvroDefinition:
    try:
        return AvroDefinition.parse(json.dumps(schema))
    except SchemaError:
        assume(False)
        raise


@settings(max_examples=300, deadline=None)
@given(schemas(), schemas(), st.data())
def test_what_is_called_readable_fastavro_reads(new: Any, old: Any, data: st.DataObject) -> None:
    reader, writer = defined(new), defined(old)
    if reader.differences(writer):
        return
    value = data.draw(values(old))
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(old), value)
    out.seek(0)
    fastavro.schemaless_reader(out, fastavro.parse_schema(old), fastavro.parse_schema(new))


@settings(max_examples=100, deadline=None)
@given(schemas())
def test_every_schema_reads_itself_and_its_printed_form(schema: Any) -> None:
    mine = defined(schema)
    assert mine.differences(mine) == []
    again = AvroDefinition.parse(mine.canonical())
    assert again.canonical() == mine.canonical()
    assert AvroDefinition.parse(mine.normalised()).normalised() == mine.normalised()
    assert fastavro.schema.fingerprint(
        fastavro.schema.to_parsing_canonical_form(schema), "CRC-64-AVRO"
    ) == fastavro.schema.fingerprint(
        fastavro.schema.to_parsing_canonical_form(json.loads(mine.canonical())), "CRC-64-AVRO"
    )


@settings(max_examples=200, deadline=None)
@given(schemas(), schemas())
def test_verdicts_are_those_of_apaches_package(new: Any, old: Any) -> None:
    compatibility = pytest.importorskip("avro.compatibility")
    parse = pytest.importorskip("avro.schema").parse
    ours = defined(new).differences(defined(old))
    theirs = compatibility.ReaderWriterCompatibilityChecker().get_compatibility(
        parse(json.dumps(new)), parse(json.dumps(old))
    )
    fits = theirs.compatibility is compatibility.SchemaCompatibilityType.compatible
    assert (not ours) == fits, (ours, theirs.incompatibilities)


RECURSIVE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "next", "type": ["null", "Node"]}, {"name": "value", "type": "int"}],
}


def test_recursive_types_are_compared_to_their_end() -> None:
    wider = json.loads(json.dumps(RECURSIVE).replace('"int"', '"long"'))
    assert defined(wider).differences(defined(RECURSIVE)) == []
    found = defined(RECURSIVE).differences(defined(wider))
    # The branch Node of the union does not fit either, and is told where it stands.
    assert [(one.kind, one.path) for one in found][-1] == ("TYPE_MISMATCH", "/fields/1/type")


def test_unions_of_records_of_unions_end_in_bounded_time() -> None:
    def nest(depth: int, mark: str) -> Any:
        if depth == 0:
            return mark
        fields = [{"name": "f", "type": nest(depth - 1, mark)}]
        return [
            {"type": "record", "name": f"R{mark}{depth}x{n}", "fields": []} for n in range(60)
        ] + [{"type": "record", "name": f"R{mark}{depth}", "fields": fields}]

    assert defined(nest(8, "int")).differences(defined(nest(8, "string")))
