"""Protobuf compared by what is on the wire: numbers, types and labels of fields.

Names mean nothing to the wire, with one exception: a message type that is gone cannot be read any
more. Fields that come or go are harmless; what changes the meaning of bytes is not.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    FieldDescriptorProto as Field,
)

from penstock.schemas.compatibility.difference import Difference

FileProto: TypeAlias = Any
MessageProto: TypeAlias = Any
FieldProto: TypeAlias = Any
_VARINTS = {Field.TYPE_INT32, Field.TYPE_UINT32, Field.TYPE_INT64, Field.TYPE_UINT64}
_GROUPS = (
    {*_VARINTS, Field.TYPE_BOOL, Field.TYPE_ENUM},
    {Field.TYPE_SINT32, Field.TYPE_SINT64},
    {Field.TYPE_STRING, Field.TYPE_BYTES},
    {Field.TYPE_FIXED32, Field.TYPE_SFIXED32},
    {Field.TYPE_FIXED64, Field.TYPE_SFIXED64},
)
_NAMED = {Field.TYPE_MESSAGE, Field.TYPE_GROUP}
_TEXTS = {Field.TYPE_STRING, Field.TYPE_BYTES}
_SENTENCES = {
    "MESSAGE_REMOVED": (
        "The {{0}} schema is missing a MESSAGE type at path '{path}' in the {{1}} schema"
    ),
    "FIELD_KIND_CHANGED": (
        "The type of a field at path '{path}' in the {{0}} schema does not match the {{1}} schema"
    ),
    "FIELD_SCALAR_KIND_CHANGED": (
        "The kind of a SCALAR field at path '{path}' in the {{0}} schema does not match its kind "
        "in the {{1}} schema"
    ),
    "FIELD_NAMED_TYPE_CHANGED": (
        "The type of a MESSAGE field at path '{path}' in the {{0}} schema does not match its type "
        "in the {{1}} schema"
    ),
    "FIELD_NUMERIC_LABEL_CHANGED": (
        "The label for a NUMERIC field at path '{path}' in the {{0}} schema does not match its "
        "label in the {{1}} schema"
    ),
    "REQUIRED_FIELD_ADDED": (
        "A required field  at path '{path}' in the {{0}} schema is missing in the {{1}} schema"
    ),
    "REQUIRED_FIELD_REMOVED": (
        "The {{0}} schema is missing a required field at path: '{path}' in the {{1}} schema"
    ),
    "ONEOF_FIELD_REMOVED": (
        "The {{0}} schema is missing a oneof field at path '{path}' in the {{1}} schema"
    ),
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": (
        "Multiple fields in the oneof at path '{path}' in the {{0}} schema are outside a oneof in "
        "the {{1}} schema"
    ),
    "FIELD_MOVED_TO_EXISTING_ONEOF": (
        "A field in the oneof at path '{path}' in the {{0}} schema is outside an existing oneof in "
        "the {{1}} schema"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledProto:
    """A file and, by full name, all messages that it can mention."""

    file: FileProto
    messages: Mapping[str, MessageProto]


def differences(reader: CompiledProto, writer: CompiledProto) -> list[Difference]:
    """What of the writer's messages the reader would misread."""
    walk = _Walk(reader=reader, writer=writer, open_pairs=set())
    return walk.scope(reader.file.message_type, writer.file.message_type, "#/")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    reader: CompiledProto
    writer: CompiledProto
    open_pairs: set[tuple[int, int]]

    def scope(
        self, new: Iterable[MessageProto], old: Iterable[MessageProto], path: str
    ) -> list[Difference]:
        """The messages declared in a file or message, by name."""
        known = {one.name: one for one in new}
        found: list[Difference] = []
        for one in old:
            here = path + one.name
            if one.options.map_entry:
                continue
            if one.name in known:
                found += self.message(known[one.name], one, here)
            else:
                found.append(_difference("MESSAGE_REMOVED", here))
        return found

    def message(self, new: MessageProto, old: MessageProto, path: str) -> list[Difference]:
        pair = (id(new), id(old))
        if pair in self.open_pairs:
            return []
        self.open_pairs.add(pair)
        before = {one.number: one for one in old.field}
        after = {one.number: one for one in new.field}
        staying = _staying(new, old)
        found: list[Difference] = []
        for number in sorted({*before, *after}):
            if number not in after:
                found += _removed(before[number], old, staying, path)
            elif number not in before:
                found += _added(after[number], f"{path}/{number}")
            else:
                here = _place(after[number], before[number], new, old, path)
                found += self.field(after[number], before[number], here)
        found += _moves(new, old, before, path)
        return found + self.scope(new.nested_type, old.nested_type, path + "/")

    def field(self, new: FieldProto, old: FieldProto, path: str) -> list[Difference]:
        found = self._types(new, old, path) or _labels(new, old, path)
        if new.label == Field.LABEL_REQUIRED and old.label != Field.LABEL_REQUIRED:
            found.append(_difference("REQUIRED_FIELD_ADDED", path))
        return found

    def _types(self, new: FieldProto, old: FieldProto, path: str) -> list[Difference]:
        if (new.type in _NAMED) != (old.type in _NAMED):
            return [_difference("FIELD_KIND_CHANGED", path)]
        if new.type in _NAMED:
            return self._messages(new, old, path)
        same = new.type == old.type or any({new.type, old.type} <= one for one in _GROUPS)
        return [] if same else [_difference("FIELD_SCALAR_KIND_CHANGED", path)]

    def _messages(self, new: FieldProto, old: FieldProto, path: str) -> list[Difference]:
        ours = self.reader.messages.get(new.type_name)
        theirs = self.writer.messages.get(old.type_name)
        is_map = ours is not None and ours.options.map_entry
        was_map = theirs is not None and theirs.options.map_entry
        if new.type != old.type or is_map != was_map:
            return [_difference("FIELD_KIND_CHANGED", path)]
        if is_map:
            return self.message(ours, theirs, path)
        if _local(new.type_name, self.reader) != _local(old.type_name, self.writer):
            return [_difference("FIELD_NAMED_TYPE_CHANGED", path)]
        if ours is None or theirs is None:
            return []
        return self.message(
            ours, theirs, "#/" + _local(old.type_name, self.writer).replace(".", "/")
        )


def _local(full_name: str, file: CompiledProto) -> str:
    """A name without the file's own package, which may change."""
    package = f".{file.file.package}." if file.file.package else "."
    return full_name.removeprefix(package).removeprefix(".")


def _place(
    field: FieldProto, was: FieldProto, new: MessageProto, old: MessageProto, path: str
) -> str:
    """A field that stayed in its oneof is told with the oneof's name."""
    name = _oneof(field, new)
    within = f"{name}/" if name is not None and name == _oneof(was, old) else ""
    return f"{path}/{within}{field.number}"


def _removed(
    gone: FieldProto, old: MessageProto, staying: Container[str], path: str
) -> list[Difference]:
    """A oneof that goes as a whole is missed by nobody; one that stays would seem unset."""
    if gone.label == Field.LABEL_REQUIRED:
        return [_difference("REQUIRED_FIELD_REMOVED", f"{path}/{gone.number}")]
    oneof = _oneof(gone, old)
    if oneof is None or oneof not in staying:
        return []
    return [_difference("ONEOF_FIELD_REMOVED", f"{path}/{oneof}/{gone.number}")]


def _staying(new: MessageProto, old: MessageProto) -> set[str]:
    """The old oneofs of which the new message has the name or, in any oneof, a field."""
    by_name = {name for one in new.field if (name := _oneof(one, new)) is not None}
    numbers = {one.number for one in new.field if _oneof(one, new) is not None}
    names = ((one, _oneof(one, old)) for one in old.field)
    return {name for one, name in names if name and (name in by_name or one.number in numbers)}


def _added(new: FieldProto, path: str) -> list[Difference]:
    needed = new.label == Field.LABEL_REQUIRED
    return [_difference("REQUIRED_FIELD_ADDED", path)] if needed else []


def _labels(new: FieldProto, old: FieldProto, path: str) -> list[Difference]:
    """A reader of one takes the last of several; only packed numbers it cannot read."""
    repeated = new.label == Field.LABEL_REPEATED
    if repeated == (old.label == Field.LABEL_REPEATED) or new.type in _TEXTS | _NAMED:
        return []
    return [_difference("FIELD_NUMERIC_LABEL_CHANGED", path)]


def _oneof(field: FieldProto, message: MessageProto) -> str | None:
    """The oneof that a field is in, as its message names it; None: it stands alone."""
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    return str(message.oneof_decl[field.oneof_index].name)


def _moves(
    new: MessageProto, old: MessageProto, before: Mapping[int, FieldProto], path: str
) -> list[Difference]:
    """Fields that share a oneof now and did not: a message may hold several of them."""
    alone: dict[str, int] = {}
    shared: dict[str, set[str]] = {}
    for one in new.field:
        name = _oneof(one, new)
        if name is None or one.number not in before:
            continue
        was = _oneof(before[one.number], old)
        alone[name] = alone.get(name, 0) + (was is None)
        shared.setdefault(name, set()).update([] if was is None else [was])
    found = []
    for name, count in alone.items():
        if count > 1 or len(shared[name]) > 1:
            found.append(_difference("MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{path}/{name}"))
        elif count and shared[name]:
            found.append(_difference("FIELD_MOVED_TO_EXISTING_ONEOF", f"{path}/{name}"))
    return found


def _difference(kind: str, path: str) -> Difference:
    return Difference(kind=kind, path=path, sentence=_SENTENCES[kind].format(path=path))
