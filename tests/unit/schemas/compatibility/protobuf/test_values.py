"""What is called readable, the new descriptor reads, and loses nothing that both know."""

from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from hypothesis import event, given, settings
from hypothesis import strategies as st

from penstock.schemas.definitions.protobuf import ProtobufDefinition
from penstock.schemas.protobuf import ProtobufSchema

NUMBERS = range(1, 5)
SCALARS = [
    Field.TYPE_INT32,
    Field.TYPE_UINT64,
    Field.TYPE_BOOL,
    Field.TYPE_ENUM,
    Field.TYPE_SINT32,
    Field.TYPE_SINT64,
    Field.TYPE_STRING,
    Field.TYPE_BYTES,
    Field.TYPE_FIXED32,
    Field.TYPE_SFIXED32,
    Field.TYPE_DOUBLE,
    Field.TYPE_MESSAGE,
]
# None stands alone, the others are names of oneofs.
PLACES = [None, None, None, "o", "p"]
Shape = tuple[int, bool, str | None]

shapes = st.tuples(st.sampled_from(SCALARS), st.booleans(), st.sampled_from(PLACES))
messages = st.dictionaries(st.sampled_from(NUMBERS), shapes, max_size=4)


@st.composite
def changed(draw: st.DrawFn, old: dict[int, Shape]) -> dict[int, Shape]:
    """A message of which most fields stay: two random ones rarely fit."""
    new = dict(old)
    for number in NUMBERS:
        match draw(st.sampled_from(["stay", "stay", "go", "type", "many", "place", "place"])):
            case "go":
                new.pop(number, None)
            case "type" if number in old:
                new[number] = (draw(st.sampled_from(SCALARS)), *old[number][1:])
            case "many" if number in old:
                kind, many, place = old[number]
                new[number] = (kind, not many, place)
            case "place" if number in old:
                new[number] = (*old[number][:2], draw(st.sampled_from(PLACES)))
    return new


def defined(shape: dict[int, Shape]) -> ProtobufDefinition:
    file = FileDescriptorProto(name="m.proto", syntax="proto3")
    file.message_type.add(name="N").field.add(name="x", number=1, type=Field.TYPE_INT32, label=1)
    kinds = file.enum_type.add(name="E")
    kinds.value.add(name="ZERO", number=0)
    kinds.value.add(name="ONE", number=1)
    message = file.message_type.add(name="M")
    places: list[str] = []
    for number, (kind, many, place) in sorted(shape.items(), key=lambda one: str(one[1][2])):
        label = Field.LABEL_REPEATED if many and place is None else Field.LABEL_OPTIONAL
        field = message.field.add(name=f"f{number}", number=number, type=kind, label=label)
        if kind in (Field.TYPE_MESSAGE, Field.TYPE_ENUM):
            field.type_name = ".N" if kind == Field.TYPE_MESSAGE else ".E"
        if place is not None:
            if place not in places:
                places.append(place)
                message.oneof_decl.add(name=place)
            field.oneof_index = places.index(place)
    return ProtobufDefinition(
        text="", descriptor_set=FileDescriptorSet(file=[file]).SerializeToString()
    )


def fill(message: Any, chosen: dict[int, int]) -> None:
    """Values that every type of their group can hold, and never a zero, which is not written."""
    for field in message.DESCRIPTOR.fields:
        count = chosen.get(field.number, 0)
        many = field.is_repeated
        for n in range(count if many else min(count, 1)):
            if field.message_type is not None:
                inner = getattr(message, field.name)
                (inner.add() if many else inner).x = n + 1
                continue
            text = f"v{n}"
            value: Any = {"str": text, "bytes": text.encode()}.get(type_of(field), 1)
            if many:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)


def type_of(field: Any) -> str:
    return {Field.TYPE_STRING: "str", Field.TYPE_BYTES: "bytes"}.get(field.type, "number")


def held(message: Any) -> dict[int, list[Any]]:
    """By number, what is in a message, texts as bytes and inner messages as their number."""
    found = {}
    for field, value in message.ListFields():
        many = field.is_repeated
        found[field.number] = [plain(one) for one in (value if many else [value])]
    return found


def plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    return value.x if hasattr(value, "ListFields") else value


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_what_is_called_readable_loses_nothing(data: st.DataObject) -> None:
    shape = data.draw(messages)
    after = data.draw(changed(shape))
    old, new = defined(shape), defined(after)
    if new.differences(old):
        event("refused")
        return
    event("readable" if after != shape else "the same")
    written = ProtobufSchema.of(old.descriptor_set, "M").message_class()
    fill(written, data.draw(st.dictionaries(st.sampled_from(NUMBERS), st.integers(1, 2))))
    reader = ProtobufSchema.of(new.descriptor_set, "M")
    read = reader.message_class.FromString(written.SerializeToString())
    known = {field.number: field for field in read.DESCRIPTOR.fields}
    expected = {
        number: values if known[number].is_repeated else values[-1:]
        for number, values in held(written).items()
        if number in known
    }
    assert held(read) == expected
