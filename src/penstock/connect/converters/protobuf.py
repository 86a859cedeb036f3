"""ProtobufConverter: structs as Protobuf messages under the header of a schema registry.

A struct is a message of proto3, whose optional fields are `optional` (Confluent's converter with
`optional.for.nullables`). INT8 and INT16 come back as INT32, and a message is named by the last
part of its name. What Protobuf has no word for here is a DataError: dates, times and decimals
(Timestamp it has), maps with keys of other types than texts, integers and booleans, and values that
are no structs. A `oneof` is read as optional fields.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.connect.converters.registry_settings import let_through, registry_settings
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import ConfigDef
from penstock.connect.plugins.contract import Converter, SchemaAndValue
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.logical import (
    TIMESTAMP,
    TIMESTAMP_SCHEMA,
    is_logical,
    timestamp_ms_of,
    timestamp_of,
)
from penstock.connect.values.schema import Schema, SchemaField, SchemaType
from penstock.connect.values.struct import StructValue, check_value
from penstock.schemas.bounded_cache import BoundedCache
from penstock.schemas.errors import FormatError
from penstock.schemas.protobuf import (
    Descriptor,
    FileDescriptorProto,
    Message,
    ProtobufSchema,
    joined,
)
from penstock.schemas.registry_client import RegistryClient, RegistryRefused
from penstock.schemas.serializers.protobuf import ProtobufDeserializer, ProtobufSerializer

_DEFAULT_NAME = "ConnectDefault1"
_STAMP = "google.protobuf.Timestamp"
_STAMP_FILE = "google/protobuf/timestamp.proto"
_ENTRIES_MAX = 1_000
_DEPTH_MAX = 60
# Connect's types with the names of Protobuf's, which descriptors have as TYPE_....
_WORDS = {
    SchemaType.INT8: "INT32",
    SchemaType.INT16: "INT32",
    SchemaType.INT32: "INT32",
    SchemaType.INT64: "INT64",
    SchemaType.FLOAT32: "FLOAT",
    SchemaType.FLOAT64: "DOUBLE",
    SchemaType.BOOLEAN: "BOOL",
    SchemaType.STRING: "STRING",
    SchemaType.BYTES: "BYTES",
}
_TYPES = {
    "INT32": SchemaType.INT32,
    "SINT32": SchemaType.INT32,
    "SFIXED32": SchemaType.INT32,
    "UINT32": SchemaType.INT64,
    "FIXED32": SchemaType.INT64,
    "INT64": SchemaType.INT64,
    "SINT64": SchemaType.INT64,
    "SFIXED64": SchemaType.INT64,
    "UINT64": SchemaType.INT64,
    "FIXED64": SchemaType.INT64,
    "FLOAT": SchemaType.FLOAT32,
    "DOUBLE": SchemaType.FLOAT64,
    "BOOL": SchemaType.BOOLEAN,
    "STRING": SchemaType.STRING,
    "BYTES": SchemaType.BYTES,
    "ENUM": SchemaType.STRING,
}
_KEYS = {
    SchemaType.STRING,
    SchemaType.BOOLEAN,
    SchemaType.INT8,
    SchemaType.INT16,
    SchemaType.INT32,
    SchemaType.INT64,
}


class ProtobufConverter(Converter):
    """Confluent's ProtobufConverter."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        is_key: bool,
        registry: RegistryClient | None = None,
    ) -> None:
        super().__init__(config, is_key=is_key)
        self._reader = ProtobufDeserializer(registry=registry, settings=config, is_key=is_key)
        self._writer = ProtobufSerializer(
            registry=self._reader.settings.registry, settings=config, is_key=is_key
        )
        self._written = SchemaCache(lambda schema: ProtobufSchema.of(*compiled_of(schema)))
        self._read: BoundedCache[int, tuple[Descriptor, Schema]] = BoundedCache(_ENTRIES_MAX)

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Where the registry is, and what is done about schemas."""
        return registry_settings()

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The message of a struct; null stays null."""
        if value is None:
            return None
        if schema is None or schema.type is not SchemaType.STRUCT:
            raise DataError("ProtobufConverter writes structs alone")
        check_value(schema, value)
        try:
            message = self._written.get(schema).message_class()
            _fill(message, value)
            return self._writer.serialize(topic, message)
        except (FormatError, RegistryRefused, TypeError, ValueError) as error:
            let_through(error)
            raise DataError(
                f"Failed to serialize Protobuf data from topic {topic} : {error}"
            ) from error

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The struct of a message."""
        if data is None:
            return None, None
        try:
            message = self._reader.deserialize(topic, data)
        except (FormatError, RegistryRefused) as error:
            let_through(error)
            raise DataError(
                f"Failed to deserialize data for topic {topic} to Protobuf: {error}"
            ) from error
        descriptor = message.DESCRIPTOR
        # By identity; the entry keeps the descriptor, so that its id is not another's.
        _, schema = self._read.get_or_make(
            id(descriptor), lambda: (descriptor, connect_of(descriptor, 0))
        )
        return schema, _struct_of(schema, message)


def compiled_of(schema: Schema) -> tuple[bytes, str]:
    """The compiled file of a struct's message, and the message's full name."""
    parts = [re.sub(r"\W", "_", word, flags=re.ASCII) for word in (schema.name or "").split(".")]
    name = parts[-1] or _DEFAULT_NAME
    package = ".".join(part for part in parts[:-1] if part)
    file = FileDescriptorProto(name=f"{name}.proto", package=package, syntax="proto3")
    _write_message(file.message_type.add(name=name), schema, _prefix(package, name), file, 0)
    return joined([file]), f"{package}.{name}" if package else name


def _prefix(package: str, name: str) -> str:
    return f".{package}.{name}" if package else f".{name}"


def _write_message(made: Any, schema: Schema, path: str, file: Any, depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise DataError("a struct has too many others inside")
    for at, one in enumerate(schema.fields):
        if not re.fullmatch(r"[A-Za-z_]\w*", one.name, flags=re.ASCII):
            raise DataError(f"{one.name} is no name of a field in Protobuf")
        field = made.field.add(name=one.name, number=at + 1)
        field.label = field.LABEL_OPTIONAL
        _write_field(made, field, one.schema, path, file, depth)
    # The oneofs of optional fields come after all fields, as protoc writes them.
    for field in made.field:
        if field.proto3_optional:
            field.oneof_index = len(made.oneof_decl)
            made.oneof_decl.add(name=f"_{field.name}")


def _write_field(made: Any, field: Any, schema: Schema, path: str, file: Any, depth: int) -> None:
    if schema.type is SchemaType.ARRAY and schema.value_schema is not None:
        if schema.value_schema.type in (SchemaType.ARRAY, SchemaType.MAP):
            raise DataError("Protobuf has no lists of lists or maps")
        field.label = field.LABEL_REPEATED
        _write_type(made, field, schema.value_schema, path, file, depth)
    elif schema.type is SchemaType.MAP:
        _write_map(made, field, schema, path, file, depth)
    else:
        _write_type(made, field, schema, path, file, depth)
        is_scalar = field.type != field.TYPE_MESSAGE
        field.proto3_optional = is_scalar and schema.optional


def _write_map(made: Any, field: Any, schema: Schema, path: str, file: Any, depth: int) -> None:
    keys, values = schema.key_schema, schema.value_schema
    if keys is None or values is None or keys.type not in _KEYS:
        raise DataError("Protobuf has no maps with such keys")
    if values.type in (SchemaType.ARRAY, SchemaType.MAP):
        raise DataError("Protobuf has no maps of lists or maps")
    name = "".join(word[:1].upper() + word[1:] for word in field.name.split("_")) + "Entry"
    entry = made.nested_type.add(name=name)
    entry.options.map_entry = True
    for at, (word, part) in enumerate((("key", keys), ("value", values))):
        inner = entry.field.add(name=word, number=at + 1)
        inner.label = inner.LABEL_OPTIONAL
        _write_type(made if word == "value" else entry, inner, part, path, file, depth)
    field.label, field.type = field.LABEL_REPEATED, field.TYPE_MESSAGE
    field.type_name = f"{path}.{name}"


def _write_type(made: Any, field: Any, schema: Schema, path: str, file: Any, depth: int) -> None:
    if schema.name == TIMESTAMP:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_STAMP}"
        if _STAMP_FILE not in file.dependency:
            file.dependency.append(_STAMP_FILE)
    elif is_logical(schema):
        raise DataError(f"{schema.name} cannot be written to Protobuf: cast it to a string first")
    elif schema.type is SchemaType.STRUCT:
        name = f"{field.name[:1].upper()}{field.name[1:]}Struct"
        if any(one.name == name for one in made.nested_type):
            name = f"{name}{len(made.nested_type)}"
        inner = made.nested_type.add(name=name)
        _write_message(inner, schema, f"{path}.{name}", file, depth + 1)
        field.type, field.type_name = field.TYPE_MESSAGE, f"{path}.{name}"
    else:
        field.type = getattr(field, f"TYPE_{_WORDS[schema.type]}")


def _fill(message: Any, struct: StructValue) -> None:
    for one, value in struct.items():
        if value is None:
            continue
        kind = one.schema.type
        if kind is SchemaType.ARRAY:
            _fill_list(getattr(message, one.name), one.schema, value)
        elif kind is SchemaType.MAP:
            _fill_map(getattr(message, one.name), one.schema, value)
        elif one.schema.name == TIMESTAMP:
            _set_stamp(getattr(message, one.name), value)
        elif kind is SchemaType.STRUCT:
            getattr(message, one.name).SetInParent()
            _fill(getattr(message, one.name), value)
        else:
            setattr(message, one.name, value)


def _fill_list(target: Any, schema: Schema, items: Iterable[Any]) -> None:
    for item in items:
        if item is None:
            raise DataError("a list of Protobuf has no nulls")
        if isinstance(item, StructValue):
            _fill(target.add(), item)
        elif schema.value_schema is not None and schema.value_schema.name == TIMESTAMP:
            _set_stamp(target.add(), item)
        else:
            target.append(item)


def _fill_map(target: Any, schema: Schema, entries: Mapping[Any, Any]) -> None:
    for key, item in entries.items():
        if item is None:
            raise DataError("a map of Protobuf has no nulls")
        if isinstance(item, StructValue):
            target[key].SetInParent()
            _fill(target[key], item)
        elif schema.value_schema is not None and schema.value_schema.name == TIMESTAMP:
            _set_stamp(target[key], item)
        else:
            target[key] = item


def _set_stamp(target: Any, value: Any) -> None:
    seconds, ms = divmod(timestamp_ms_of(value), 1000)
    target.seconds, target.nanos = seconds, ms * 1_000_000
    target.SetInParent()


def connect_of(descriptor: Descriptor, depth: int) -> Schema:
    """The Connect schema of a message."""
    if depth > _DEPTH_MAX:
        raise DataError(f"the message {descriptor.full_name} holds itself, which Connect cannot")
    fields = tuple(SchemaField(one.name, _read_field(one, depth)) for one in descriptor.fields)
    name = None if descriptor.name == _DEFAULT_NAME else descriptor.name
    return Schema(type=SchemaType.STRUCT, name=name, fields=fields)


def _read_field(field: Any, depth: int) -> Schema:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        keys, values = (_read_type(entry.fields_by_name[w], depth) for w in ("key", "value"))
        return Schema(type=SchemaType.MAP, key_schema=keys, value_schema=values)
    found = _read_type(field, depth)
    if _is_repeated(field):
        return Schema(type=SchemaType.ARRAY, value_schema=found)
    return found.as_optional() if field.has_presence else found


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _read_type(field: Any, depth: int) -> Schema:
    if field.message_type is None:
        return Schema(type=_TYPES[_word_of(field)])
    if field.message_type.full_name == _STAMP:
        return TIMESTAMP_SCHEMA
    return connect_of(field.message_type, depth + 1)


def _word_of(field: Any) -> str:
    for word in _TYPES:
        if getattr(field, f"TYPE_{word}") == field.type:
            return word
    raise DataError(f"the type of {field.full_name} has no Connect schema")


def _struct_of(schema: Schema, message: Message) -> StructValue:
    by_name = message.DESCRIPTOR.fields_by_name
    values = tuple(_read_value(message, by_name[f.name], f.schema) for f in schema.fields)
    return StructValue(schema, values)


def _read_value(message: Any, field: Any, schema: Schema) -> Any:
    found = getattr(message, field.name)
    if schema.type is SchemaType.MAP and schema.value_schema is not None:
        inner = field.message_type.fields_by_name["value"]
        return {key: _plain(found[key], inner, schema.value_schema) for key in found}
    if schema.type is SchemaType.ARRAY and schema.value_schema is not None:
        return [_plain(one, field, schema.value_schema) for one in found]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _plain(found, field, schema)


def _plain(found: Any, field: Any, schema: Schema) -> Any:
    if schema.name == TIMESTAMP and schema.type is SchemaType.INT64:
        return timestamp_of(found.seconds * 1000 + found.nanos // 1_000_000)
    if schema.type is SchemaType.STRUCT:
        return _struct_of(schema, found)
    if field.enum_type is not None:
        symbol = field.enum_type.values_by_number.get(found)
        return str(found) if symbol is None else symbol.name
    return found
