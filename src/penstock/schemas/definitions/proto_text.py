"""A Protobuf descriptor as the text of a .proto file.

The parts come in the order of the specification's own examples: options, fields with their oneofs,
nested types, reserved numbers and names. Two files that compile to one descriptor print alike.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    FieldDescriptorProto as Field,
)

from penstock.schemas.definitions.definition import dump_json

_LABELS = {Field.LABEL_REPEATED: "repeated ", Field.LABEL_REQUIRED: "required "}
_INDENT = "  "
_FIELD_NUMBER_END = 536870912
_ENUM_NUMBER_END = 2147483647


def print_file(file: Any) -> str:
    """The text of a whole file."""
    return "\n".join(_file(file)) + "\n"


def _file(file: Any) -> Iterator[str]:
    if file.syntax == "editions":
        yield f'edition = "{file.edition}";'
    else:
        yield f'syntax = "{file.syntax or "proto2"}";'
    if file.package:
        yield f"package {file.package};"
    for place, name in enumerate(file.dependency):
        public = "public " if place in file.public_dependency else ""
        yield f"import {public}{dump_json(name)};"
    yield from _options(file.options, "")
    legacy = file.syntax != "proto3"
    for enum in file.enum_type:
        yield from _enum(enum, "")
    for message in file.message_type:
        yield from _message(message, "", legacy=legacy)
    yield from _extensions(file.extension, {}, "", legacy=legacy)
    for service in file.service:
        yield from _service(service)


def _message(message: Any, pad: str, *, legacy: bool, header: str = "") -> Iterator[str]:
    yield f"{pad}{header or f'message {message.name}'} {{"
    inner = pad + _INDENT
    yield from _options(message.options, inner, skip=("map_entry",))
    special = {one.name: one for one in message.nested_type}
    yield from _fields(message, special, inner, legacy=legacy)
    for enum in message.enum_type:
        yield from _enum(enum, inner)
    groups = {one.type_name.rpartition(".")[2] for one in message.field if one.type == 10}
    for nested in message.nested_type:
        if not nested.options.map_entry and nested.name not in groups:
            yield from _message(nested, inner, legacy=legacy)
    yield from _extensions(message.extension, special, inner, legacy=legacy)
    for span in message.extension_range:
        yield f"{inner}extensions {_span(span.start, span.end - 1, _FIELD_NUMBER_END - 1)};"
    for span in message.reserved_range:
        yield f"{inner}reserved {_span(span.start, span.end - 1, _FIELD_NUMBER_END - 1)};"
    yield from _reserved_names(message, inner)
    yield f"{pad}}}"


def _fields(message: Any, special: dict[str, Any], pad: str, *, legacy: bool) -> Iterator[str]:
    """Fields in the order of the text; a oneof stands where its first field does."""
    printed: set[int] = set()
    for field in message.field:
        if not field.HasField("oneof_index") or field.proto3_optional:
            yield from _field(field, special, pad, legacy=legacy)
        elif field.oneof_index not in printed:
            printed.add(field.oneof_index)
            yield f"{pad}oneof {message.oneof_decl[field.oneof_index].name} {{"
            for one in message.field:
                same = one.HasField("oneof_index") and one.oneof_index == field.oneof_index
                if same and not one.proto3_optional:
                    yield from _field(one, special, pad + _INDENT, legacy=False)
            yield f"{pad}}}"


def _field(field: Any, special: dict[str, Any], pad: str, *, legacy: bool) -> Iterator[str]:
    nested = special.get(field.type_name.rpartition(".")[2]) if field.type_name else None
    label = _LABELS.get(field.label, "")
    if field.proto3_optional or (legacy and not label):
        label = "optional "
    if field.type == Field.TYPE_GROUP and nested is not None:
        header = f"{label}group {nested.name} = {field.number}"
        yield from _message(nested, pad, legacy=True, header=header)
        return
    if nested is not None and nested.options.map_entry:
        key, value = nested.field
        kind, label = f"map<{_type(key)}, {_type(value)}>", ""
    else:
        kind = _type(field)
    yield f"{pad}{label}{kind} {field.name} = {field.number}{_field_options(field)};"


def _type(field: Any) -> str:
    if field.type_name:
        return str(field.type_name)
    return str(Field.Type.Name(field.type).removeprefix("TYPE_").lower())


def _field_options(field: Any) -> str:
    parts = []
    if field.HasField("default_value"):
        quoted = field.type in (Field.TYPE_STRING, Field.TYPE_BYTES)
        value = f'"{_escaped(field)}"' if quoted else field.default_value
        parts.append(f"default = {value}")
    if field.json_name and field.json_name != _camel(field.name):
        parts.append(f"json_name = {dump_json(field.json_name)}")
    return _bracketed(field.options, parts)


def _bracketed(options: Any, first: Sequence[str] = ()) -> str:
    parts = [*first, *(f"{name} = {value}" for name, value in _option_values(options))]
    return f" [{', '.join(parts)}]" if parts else ""


def _escaped(field: Any) -> str:
    """Defaults of bytes are escaped in the descriptor already."""
    if field.type == Field.TYPE_BYTES:
        return str(field.default_value)
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\000"}
    return "".join(escapes.get(letter, letter) for letter in field.default_value)


def _camel(name: str) -> str:
    made, upper = "", False
    for letter in name:
        if letter == "_":
            upper = True
        else:
            made += letter.upper() if upper else letter
            upper = False
    return made


def _enum(enum: Any, pad: str) -> Iterator[str]:
    yield f"{pad}enum {enum.name} {{"
    inner = pad + _INDENT
    yield from _options(enum.options, inner)
    for value in enum.value:
        yield f"{inner}{value.name} = {value.number}{_bracketed(value.options)};"
    for span in enum.reserved_range:
        yield f"{inner}reserved {_span(span.start, span.end, _ENUM_NUMBER_END)};"
    yield from _reserved_names(enum, inner)
    yield f"{pad}}}"


def _reserved_names(node: Any, pad: str) -> Iterator[str]:
    if node.reserved_name:
        yield f"{pad}reserved {', '.join(dump_json(name) for name in node.reserved_name)};"


def _span(first: int, last: int, highest: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last >= highest else last}"


def _extensions(fields: Any, special: dict[str, Any], pad: str, *, legacy: bool) -> Iterator[str]:
    for field in fields:
        yield f"{pad}extend {field.extendee} {{"
        yield from _field(field, special, pad + _INDENT, legacy=legacy)
        yield f"{pad}}}"


def _service(service: Any) -> Iterator[str]:
    yield f"service {service.name} {{"
    yield from _options(service.options, _INDENT)
    for method in service.method:
        takes = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
        gives = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
        yield f"{_INDENT}rpc {method.name} ({takes}) returns ({gives}) {{"
        yield from _options(method.options, _INDENT * 2)
        yield f"{_INDENT}}}"
    yield "}"


def _options(options: Any, pad: str, skip: tuple[str, ...] = ()) -> Iterator[str]:
    for name, value in _option_values(options):
        if name not in skip:
            yield f"{pad}option {name} = {value};"


def _option_values(options: Any) -> Iterator[tuple[str, str]]:
    """Options that are known and hold one plain value."""
    for field, value in options.ListFields():
        if field.message_type is not None or not isinstance(value, bool | int | float | str):
            continue
        if field.enum_type is not None:
            yield field.name, field.enum_type.values_by_number[value].name
        else:
            yield field.name, dump_json(value)
