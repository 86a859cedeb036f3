"""A Protobuf schema as a registry keeps it: the text as it was given, and its descriptor beside it.

Some clients send the compiled form in base64 instead of a text; it is printed first. Normalised is
the text printed from the descriptor, without comments. A text with custom options stays as it is:
a descriptor holds these as bytes that cannot be printed without their declaration.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from google.protobuf import unknown_fields  # type: ignore[import-untyped]

from penstock.schemas.compatibility import protobuf as rules
from penstock.schemas.compatibility.difference import Difference
from penstock.schemas.compatibility.protobuf import CompiledProto, MessageProto
from penstock.schemas.definitions.definition import NamedText
from penstock.schemas.definitions.proto_text import print_file
from penstock.schemas.definitions.protoc import compile_proto
from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import SchemaKind
from penstock.schemas.protobuf import FileDescriptorProto, ParseError, files_of


@dataclass(frozen=True, kw_only=True)
class ProtobufDefinition:
    """A Protobuf schema, understood."""

    text: str
    descriptor_set: bytes
    kind = SchemaKind.PROTOBUF

    @classmethod
    def parse(cls, text: str, references: Sequence[NamedText] = ()) -> "ProtobufDefinition":
        """A text, or a compiled file in base64, with those that it imports."""
        given = _uncompiled(text)
        return cls(text=given, descriptor_set=compile_proto(given, references))

    @cached_property
    def compiled(self) -> CompiledProto:
        """The descriptors that the comparison walks."""
        files = files_of(self.descriptor_set)
        messages: dict[str, MessageProto] = {}
        for file in files:
            _collect(file.message_type, f".{file.package}" if file.package else "", messages)
        return CompiledProto(file=files[-1], messages=messages)

    def canonical(self) -> str:
        """The text, its lines without spaces at their ends."""
        lines = [line.rstrip() for line in self.text.splitlines()]
        return "\n".join(lines).strip() + "\n"

    def normalised(self) -> str:
        """The text as it is printed from the descriptor."""
        file = self.compiled.file
        return self.canonical() if _has_custom_options(file) else print_file(file)

    def serialized(self) -> str:
        """The compiled file by itself, in base64."""
        return base64.b64encode(self.compiled.file.SerializeToString()).decode()

    def top_level_fields(self) -> frozenset[str]:
        """The fields of the first message."""
        first = self.compiled.file.message_type[:1]
        return frozenset(field.name for message in first for field in message.field)

    def differences(self, writer: "ProtobufDefinition") -> list[Difference]:
        """What of the other's messages this schema would misread."""
        try:
            return rules.differences(self.compiled, writer.compiled)
        except RecursionError:
            raise SchemaError("the schemas are nested too deeply to be compared") from None


def _uncompiled(text: str) -> str:
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return text
    try:
        file = FileDescriptorProto.FromString(data)
    except ParseError:
        return text
    if not file.message_type and not file.enum_type:
        raise SchemaError("the compiled schema declares nothing")
    return print_file(file)


def _collect(declared: Any, space: str, into: dict[str, MessageProto]) -> None:
    for message in declared:
        into[f"{space}.{message.name}"] = message
        _collect(message.nested_type, f"{space}.{message.name}", into)


def _has_custom_options(node: Any) -> bool:
    """Whether any options below hold fields that are not known here."""
    for field, value in node.ListFields():
        if field.message_type is None:
            continue
        inner = [value] if hasattr(value, "ListFields") else list(value)
        if field.name == "options" and any(len(unknown_fields.UnknownFieldSet(o)) for o in inner):
            return True
        if any(_has_custom_options(one) for one in inner):
            return True
    return False
