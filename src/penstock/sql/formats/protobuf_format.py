"""PROTOBUF: a message with a field for each column, behind the id of its schema.

A proto3 message cannot tell NULL from zero, so NULL is written as nothing and read as the type's
zero, as in ksqlDB. DECIMAL, DATE and TIME have no message of Google's own and are refused.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from penstock.schemas.errors import FormatError
from penstock.schemas.lookup import SchemaKind, SchemaLookup, StoredSchema
from penstock.schemas.protobuf import ProtobufSchema, joined
from penstock.schemas.wire_header import (
    read_header,
    read_message_indexes,
    write_header,
    write_message_indexes,
)
from penstock.sql.catalog.relations import RelationColumn
from penstock.sql.formats import moments
from penstock.sql.formats.codec import FormatCodec, FormatMisfit, Values
from penstock.sql.formats.fitting import fields_by_name
from penstock.sql.types.kinds import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    ArrayOf,
    DataType,
    MapOf,
    StructOf,
)

_F: Final = FieldDescriptorProto
_NAME: Final = "ConnectDefault1"
_TIMESTAMP_FILE: Final = "google/protobuf/timestamp.proto"
_TIMESTAMP: Final = ".google.protobuf.Timestamp"
_WRITTEN: Final = {
    "BOOLEAN": _F.TYPE_BOOL, "INTEGER": _F.TYPE_INT32, "BIGINT": _F.TYPE_INT64,
    "DOUBLE": _F.TYPE_DOUBLE, "STRING": _F.TYPE_STRING, "BYTES": _F.TYPE_BYTES,
}  # fmt: skip
_READ: Final = {
    _F.TYPE_BOOL: BOOLEAN, _F.TYPE_STRING: STRING, _F.TYPE_BYTES: BYTES, _F.TYPE_ENUM: STRING,
    _F.TYPE_DOUBLE: DOUBLE, _F.TYPE_FLOAT: DOUBLE, _F.TYPE_INT32: INTEGER, _F.TYPE_SINT32: INTEGER,
    _F.TYPE_SFIXED32: INTEGER, _F.TYPE_INT64: BIGINT, _F.TYPE_SINT64: BIGINT,
    _F.TYPE_SFIXED64: BIGINT, _F.TYPE_UINT32: BIGINT, _F.TYPE_FIXED32: BIGINT,
    _F.TYPE_UINT64: BIGINT, _F.TYPE_FIXED64: BIGINT,
}  # fmt: skip


def protobuf_schema(columns: Sequence[RelationColumn], *, name: str | None) -> StoredSchema:
    """The schema of the columns."""
    package, _, short = (name or _NAME).rpartition(".")
    file = FileDescriptorProto(name="ksql.proto", package=package, syntax="proto3")
    path = f".{package}.{short}" if package else f".{short}"
    file.message_type.append(_message(short, path, [(c.name, c.type) for c in columns]))
    if _uses_timestamp(file.message_type[0]):
        file.dependency.append(_TIMESTAMP_FILE)
    return StoredSchema(schema_id=0, kind=SchemaKind.PROTOBUF, descriptor_set=joined([file]))


def _message(name: str, path: str, fields: Iterable[tuple[str, DataType | None]]) -> Any:
    made = DescriptorProto(name=name)
    for number, (field, kind) in enumerate(fields, 1):
        made.field.append(_field(made, path, field, number, kind))
    return made


def _field(owner: Any, path: str, name: str, number: int, kind: DataType | None) -> Any:
    label = _F.LABEL_OPTIONAL
    if isinstance(kind, ArrayOf):
        label, kind = _F.LABEL_REPEATED, kind.item
        if isinstance(kind, ArrayOf | MapOf):
            raise FormatMisfit("Protobuf has no arrays of arrays or of maps")
    made = _F(name=name, number=number, label=label, json_name=name)
    match kind:
        case MapOf():
            entry = f"{name}Entry"
            inner = _message(entry, f"{path}.{entry}", [("key", kind.key), ("value", kind.value)])
            inner.options.map_entry = True
            owner.nested_type.append(inner)
            made.label, made.type, made.type_name = (
                _F.LABEL_REPEATED, _F.TYPE_MESSAGE, f"{path}.{entry}",
            )  # fmt: skip
        case StructOf():
            short = f"{name}_message"
            owner.nested_type.append(_message(short, f"{path}.{short}", kind.fields))
            made.type, made.type_name = _F.TYPE_MESSAGE, f"{path}.{short}"
        case _ if kind == TIMESTAMP:
            made.type, made.type_name = _F.TYPE_MESSAGE, _TIMESTAMP
        case _:
            if str(kind) not in _WRITTEN:
                raise FormatMisfit(f"the PROTOBUF format does not support the type {kind} yet")
            made.type = _WRITTEN[str(kind)]
    return made


def _uses_timestamp(message: Any) -> bool:
    own = any(field.type_name == _TIMESTAMP for field in message.field)
    return own or any(_uses_timestamp(nested) for nested in message.nested_type)


def protobuf_columns(stored: StoredSchema, name: str | None = None) -> list[tuple[str, DataType]]:
    """The columns that a schema says."""
    stored.expect(SchemaKind.PROTOBUF)
    kind = _struct(ProtobufSchema.of(stored.descriptor_set, name).descriptor)
    return [(field, one) for field, one in kind.fields if one is not None]


def _struct(descriptor: Any) -> StructOf:
    found = [(field.name.upper(), _data_type(field)) for field in descriptor.fields]
    return StructOf(tuple((name, kind) for name, kind in found if kind is not None))


def _data_type(field: Any) -> DataType | None:
    if _is_map(field):
        entry = field.message_type.fields_by_name
        return MapOf(_single(entry["key"]), _single(entry["value"]))
    return ArrayOf(_single(field)) if _is_repeated(field) else _single(field)


def _single(field: Any) -> DataType | None:
    if field.message_type is None:
        return _READ.get(field.type)
    if field.message_type.full_name == _TIMESTAMP[1:]:
        return TIMESTAMP
    return _struct(field.message_type)


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def protobuf_codec(
    columns: Sequence[RelationColumn], lookup: SchemaLookup, schema_id: int, name: str | None = None
) -> FormatCodec:
    """The codec of the columns under a registered schema."""
    stored = lookup.by_id(schema_id).expect(SchemaKind.PROTOBUF)
    schema = ProtobufSchema.of(stored.descriptor_set, name)
    header = write_header(schema_id) + write_message_indexes(schema.index_path)
    names = [column.name for column in columns]
    kinds = [column.type for column in columns]
    readers: dict[tuple[int, tuple[int, ...]], ProtobufSchema] = {}

    def write(values: Values) -> bytes:
        message = _filled(schema.message_class(), dict(zip(names, values, strict=True)))
        return header + bytes(message.SerializeToString(deterministic=True))

    def read(data: bytes) -> list[Any]:
        try:
            found_id, (path, at) = read_header(data), read_message_indexes(data)
            if (found_id, path) not in readers:
                its = lookup.by_id(found_id).expect(SchemaKind.PROTOBUF)
                readers[found_id, path] = ProtobufSchema.at(its.descriptor_set, path)
            message = readers[found_id, path].decode(bytes(data[at:]))
        except FormatError as error:
            raise FormatMisfit(str(error)) from None
        return fields_by_name(_values(message), names, kinds)

    return FormatCodec(write, read)


def _filled(message: Any, row: dict[str, Any]) -> Any:
    fields = {field.name.upper(): field for field in message.DESCRIPTOR.fields}
    for name, value in row.items():
        field = fields.get(name.upper())
        if value is None or field is None:
            continue
        if _is_map(field):
            _fill_map(getattr(message, field.name), field, value)
        elif _is_repeated(field):
            _fill_list(getattr(message, field.name), field, value)
        elif field.message_type is not None:
            _fill_message(getattr(message, field.name), field, value)
        else:
            setattr(message, field.name, value)
    return message


def _fill_message(message: Any, field: Any, value: Any) -> None:
    message.SetInParent()
    if field.message_type.full_name == _TIMESTAMP[1:]:
        seconds, millis = divmod(moments.timestamp_ms(value), 1000)
        message.seconds, message.nanos = seconds, millis * 1_000_000
    else:
        _filled(message, value)


def _fill_list(target: Any, field: Any, values: Sequence[Any]) -> None:
    for value in values:
        if value is None:
            raise FormatMisfit("a repeated field of Protobuf cannot hold NULL")
        if field.message_type is None:
            target.append(value)
        else:
            _fill_message(target.add(), field, value)


def _fill_map(target: Any, field: Any, entries: dict[Any, Any]) -> None:
    value_field = field.message_type.fields_by_name["value"]
    for key, value in entries.items():
        if value_field.message_type is None:
            target[key] = value
        else:
            _fill_message(target[key], value_field, value)


def _values(message: Any) -> dict[str, Any]:
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: Any, field: Any) -> Any:
    value = getattr(message, field.name)
    if _is_map(field):
        inner = field.message_type.fields_by_name["value"]
        return {key: _plain(one, inner) for key, one in value.items()}
    if _is_repeated(field):
        return [_plain(one, field) for one in value]
    if field.message_type is not None and not message.HasField(field.name):
        return None
    if field.has_presence and field.message_type is None and not message.HasField(field.name):
        return None
    return _plain(value, field)


def _plain(value: Any, field: Any) -> Any:
    if field.message_type is None:
        if field.enum_type is not None:
            named = field.enum_type.values_by_number.get(value)
            return str(value) if named is None else named.name
        return value
    if field.message_type.full_name == _TIMESTAMP[1:]:
        return datetime.fromtimestamp(0, UTC) if not value.ByteSize() else moments.timestamp_of(
            value.seconds * 1000 + value.nanos // 1_000_000
        )  # fmt: skip
    return _values(value)
