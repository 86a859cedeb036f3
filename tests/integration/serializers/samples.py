"""Random schemas of the three languages with values of theirs."""

import itertools
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import strategies as st

Field = descriptor_pb2.FieldDescriptorProto
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NUMBERS = itertools.count()

AVRO_PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=6),
    "string": TEXTS,
}


@st.composite
def avro_pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """A record's schema and a value of it that takes a byte: confluent-kafka reads no other."""
    schema, value = draw(_avro_record(2))
    schema["fields"].append({"name": "last", "type": "long"})
    return schema, {**value, "last": draw(AVRO_PLAIN["long"])}


@st.composite
def _avro_record(draw: st.DrawFn, depth: int) -> tuple[Any, Any]:
    parts = draw(st.lists(_avro(depth - 1), min_size=1, max_size=4))
    name = f"R{next(NUMBERS)}"
    fields = [{"name": f"f{place}", "type": part[0]} for place, part in enumerate(parts)]
    value = {f"f{place}": part[1] for place, part in enumerate(parts)}
    return {"type": "record", "name": name, "namespace": "random", "fields": fields}, value


@st.composite
def _avro(draw: st.DrawFn, depth: int) -> tuple[Any, Any]:
    kinds = [*AVRO_PLAIN, "enum", "fixed", "optional"]
    if depth > 0:
        kinds += ["array", "map", "record"]
    kind = draw(st.sampled_from(kinds))
    if kind in AVRO_PLAIN:
        return kind, draw(AVRO_PLAIN[kind])
    if kind == "enum":
        symbols = ["A", "B", "C"]
        schema = {"type": "enum", "name": f"E{next(NUMBERS)}", "symbols": symbols}
        return schema, draw(st.sampled_from(symbols))
    if kind == "fixed":
        schema = {"type": "fixed", "name": f"F{next(NUMBERS)}", "size": 3}
        return schema, draw(st.binary(min_size=3, max_size=3))
    if kind == "record":
        return draw(_avro_record(depth))
    if kind == "optional":
        plain = draw(st.sampled_from([one for one in AVRO_PLAIN if one != "null"]))
        return ["null", plain], draw(st.none() | AVRO_PLAIN[plain])
    plain = draw(st.sampled_from(sorted(AVRO_PLAIN)))
    if kind == "array":
        return {"type": "array", "items": plain}, draw(st.lists(AVRO_PLAIN[plain], max_size=4))
    values = st.dictionaries(TEXTS, AVRO_PLAIN[plain], max_size=3)
    return {"type": "map", "values": plain}, draw(values)


JSON_PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "integer": st.integers(-(2**60), 2**60),
    "number": st.floats(-1e12, 1e12, allow_nan=False),
    "string": TEXTS,
}


@st.composite
def json_pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """An object's schema and a document of it."""
    names = draw(st.lists(st.sampled_from("abcdé"), unique=True, max_size=4))
    properties: dict[str, Any] = {}
    document: dict[str, Any] = {}
    for name in names:
        kind = draw(st.sampled_from(sorted(JSON_PLAIN)))
        if draw(st.booleans()):
            properties[name] = {"type": "array", "items": {"type": kind}, "maxItems": 3}
            document[name] = draw(st.lists(JSON_PLAIN[kind], max_size=3))
        else:
            properties[name] = {"type": kind}
            document[name] = draw(JSON_PLAIN[kind])
    required = [name for name in names if draw(st.booleans())]
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"Random{next(NUMBERS)}",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return schema, document


PROTO_PLAIN: dict[int, st.SearchStrategy[Any]] = {
    Field.TYPE_BOOL: st.booleans(),
    Field.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    Field.TYPE_SINT64: st.integers(-(2**63), 2**63 - 1),
    Field.TYPE_UINT64: st.integers(0, 2**64 - 1),
    Field.TYPE_FLOAT: st.floats(width=32, allow_nan=False),
    Field.TYPE_DOUBLE: st.floats(allow_nan=False),
    Field.TYPE_STRING: TEXTS,
    Field.TYPE_BYTES: st.binary(max_size=6),
}


@st.composite
def proto_pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """A class of messages, declared somewhere in a file, and a message of it."""
    number = next(NUMBERS)
    file = descriptor_pb2.FileDescriptorProto(
        name=f"random{number}.proto", package=f"random{number}", syntax="proto3"
    )
    places: list[str] = []
    values: dict[str, dict[str, Any]] = {}
    for top in range(draw(st.integers(1, 3))):
        message = file.message_type.add(name=f"M{top}")
        _fill(draw, message, f"random{number}.M{top}", places, values)
        for inner in range(draw(st.integers(0, 2))):
            nested = message.nested_type.add(name=f"N{inner}")
            _fill(draw, nested, f"random{number}.M{top}.N{inner}", places, values)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    chosen = draw(st.sampled_from(places))
    message_class = message_factory.GetMessageClass(pool.FindMessageTypeByName(chosen))
    return message_class, message_class(**values[chosen])


def _fill(
    draw: st.DrawFn,
    message: Any,
    name: str,
    places: list[str],
    values: dict[str, dict[str, Any]],
) -> None:
    places.append(name)
    values[name] = {}
    for number in range(1, draw(st.integers(0, 4)) + 1):
        kind = draw(st.sampled_from(sorted(PROTO_PLAIN)))
        repeated = draw(st.booleans())
        label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
        field = message.field.add(name=f"f{number}", number=number, type=kind, label=label)
        one = PROTO_PLAIN[kind]
        values[name][field.name] = draw(st.lists(one, max_size=3) if repeated else one)
