"""Protobuf's types and Spark's: which column a field becomes, and how values pass between them.

| Protobuf                                  | Spark                                     |
| ----------------------------------------- | ----------------------------------------- |
| bool, int32, int64, sint*, sfixed*        | boolean, int, bigint                      |
| uint32, fixed32; uint64, fixed64          | bigint; decimal(20, 0)                    |
| float, double, string, bytes              | float, double, string, binary             |
| enum                                      | string; a number not declared as its text |
| repeated, map, message                    | array, map, struct                        |
| google.protobuf.Timestamp, Duration       | timestamp, interval day to second         |
| google.protobuf.Int64Value and the like   | the type inside                           |
| google.protobuf.Struct, Value, ListValue  | string, as JSON                           |

A field that can tell whether it is set (messages, `optional`, `oneof`) is null when it is not;
the others have their default then, as the language defines it.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from google.protobuf import json_format  # type: ignore[import-untyped]
from pyspark.sql import types as t

from penstock.schemas.errors import DecodeError, EncodeError, SchemaError
from penstock.schemas.protobuf import Descriptor, FieldDescriptor, Message

Load: TypeAlias = Callable[[Any], Any]
Dump: TypeAlias = Callable[[Any, Any], None]  # A message to fill, and the value.

_MICROS = 1_000_000
_UNSIGNED_64 = t.DecimalType(20, 0)
_SCALARS: dict[int, t.DataType] = {
    FieldDescriptor.TYPE_BOOL: t.BooleanType(),
    FieldDescriptor.TYPE_INT32: t.IntegerType(),
    FieldDescriptor.TYPE_SINT32: t.IntegerType(),
    FieldDescriptor.TYPE_SFIXED32: t.IntegerType(),
    FieldDescriptor.TYPE_INT64: t.LongType(),
    FieldDescriptor.TYPE_SINT64: t.LongType(),
    FieldDescriptor.TYPE_SFIXED64: t.LongType(),
    FieldDescriptor.TYPE_UINT32: t.LongType(),
    FieldDescriptor.TYPE_FIXED32: t.LongType(),
    FieldDescriptor.TYPE_UINT64: _UNSIGNED_64,
    FieldDescriptor.TYPE_FIXED64: _UNSIGNED_64,
    FieldDescriptor.TYPE_FLOAT: t.FloatType(),
    FieldDescriptor.TYPE_DOUBLE: t.DoubleType(),
    FieldDescriptor.TYPE_STRING: t.StringType(),
    FieldDescriptor.TYPE_BYTES: t.BinaryType(),
    FieldDescriptor.TYPE_ENUM: t.StringType(),
}
_WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in (
        "Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes",
    )
}  # fmt: skip
_AS_JSON = {"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"}
_TIMESTAMP = "google.protobuf.Timestamp"
_DURATION = "google.protobuf.Duration"


class Single(NamedTuple):
    """One value of a field, without regard to repetition."""

    spark: t.DataType
    load: Load | None = None  # None: Protobuf's value is Arrow's.
    dump: Load | None = None  # For scalars: Arrow's value as Protobuf's.
    fill: Dump | None = None  # For messages: puts the value into one.


class FieldColumn(NamedTuple):
    """A field of a message as a column."""

    name: str
    spark: t.DataType
    read: Load  # Out of the message.
    write: Dump  # Into the message.


def fields_of(message: Descriptor, above: tuple[str, ...] = ()) -> list[FieldColumn]:
    """The columns of a message."""
    if message.full_name in above:
        raise SchemaError(
            f"the message {message.full_name} contains itself; Spark has no such columns"
        )
    if not message.fields:
        raise SchemaError(f"the message {message.full_name} has no fields; Spark needs one")
    return [_field(field, (*above, message.full_name)) for field in message.fields]


def spark_type(message: Descriptor) -> t.DataType:
    """The type of a whole message."""
    return _message(message, ()).spark


def loader(message: Descriptor) -> Load:
    """From a message to a value for Arrow."""
    found = _message(message, ()).load
    assert found is not None
    return found


def filler(message: Descriptor) -> Dump:
    """From a value of Arrow into an empty message."""
    found = _message(message, ()).fill
    assert found is not None
    return found


def _field(field: FieldDescriptor, above: tuple[str, ...]) -> FieldColumn:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _map_field(field, above)
    one = _single(field, above)
    if field.is_repeated:
        return _repeated_field(field.name, one)
    if one.fill is not None:
        return _message_field(field.name, one)
    return _scalar_field(field.name, one, has_presence=field.has_presence)


def _scalar_field(name: str, one: Single, *, has_presence: bool) -> FieldColumn:
    load, dump = one.load, one.dump

    def read(message: Any) -> Any:
        if has_presence and not message.HasField(name):
            return None
        value = getattr(message, name)
        return value if load is None else load(value)

    def write(message: Any, value: Any) -> None:
        if value is not None:
            setattr(message, name, value if dump is None else dump(value))

    return FieldColumn(name, one.spark, read, write)


def _message_field(name: str, one: Single) -> FieldColumn:
    load, fill = one.load, one.fill
    assert load is not None and fill is not None

    def read(message: Any) -> Any:
        return load(getattr(message, name)) if message.HasField(name) else None

    def write(message: Any, value: Any) -> None:
        if value is not None:
            inner = getattr(message, name)
            inner.SetInParent()
            fill(inner, value)

    return FieldColumn(name, one.spark, read, write)


def _repeated_field(name: str, one: Single) -> FieldColumn:
    load, dump, fill = one.load, one.dump, one.fill

    def read(message: Any) -> Any:
        values = getattr(message, name)
        return list(values) if load is None else [load(value) for value in values]

    def write(message: Any, value: Any) -> None:
        inner = getattr(message, name)
        for item in value or ():
            if item is None:
                raise EncodeError(f"{name} holds a null; a repeated field cannot")
            if fill is not None:
                fill(inner.add(), item)
            else:
                inner.append(item if dump is None else dump(item))

    return FieldColumn(name, t.ArrayType(one.spark), read, write)


def _map_field(field: FieldDescriptor, above: tuple[str, ...]) -> FieldColumn:
    name = field.name
    key = _single(field.message_type.fields_by_name["key"], above)
    one = _single(field.message_type.fields_by_name["value"], above)
    load, dump, fill = one.load, one.dump, one.fill

    def read(message: Any) -> Any:
        pairs = getattr(message, name).items()
        return [
            (k if key.load is None else key.load(k), v if load is None else load(v))
            for k, v in pairs
        ]

    def write(message: Any, value: Any) -> None:
        inner = getattr(message, name)
        for k, v in (value or {}).items():
            at = k if key.dump is None else key.dump(k)
            if v is None:
                raise EncodeError(f"{name} holds a null; a map's value cannot be one")
            if fill is not None:
                fill(inner[at], v)
            else:
                inner[at] = v if dump is None else dump(v)

    return FieldColumn(name, t.MapType(key.spark, one.spark), read, write)


def _single(field: FieldDescriptor, above: tuple[str, ...]) -> Single:
    if field.message_type is not None:
        return _message(field.message_type, above)
    spark = _SCALARS[field.type]
    if field.type == FieldDescriptor.TYPE_ENUM:
        return _enum(field.enum_type)
    if spark == _UNSIGNED_64:
        return Single(spark, Decimal, int)
    return Single(spark)


def _enum(enum: Any) -> Single:
    names = {number: value.name for number, value in enum.values_by_number.items()}
    numbers = {name: value.number for name, value in enum.values_by_name.items()}

    def load(number: int) -> str:
        return names.get(number) or str(number)

    def dump(name: str) -> int:
        if name in numbers:
            return int(numbers[name])
        if name.lstrip("-").isdecimal():
            return int(name)
        raise EncodeError(f"{enum.full_name} has no value {name}")

    return Single(t.StringType(), load, dump)


def _message(message: Descriptor, above: tuple[str, ...]) -> Single:
    name = message.full_name
    if name in (_TIMESTAMP, _DURATION):
        is_time = name == _TIMESTAMP
        kind = t.TimestampType() if is_time else t.DayTimeIntervalType(0, 3)
        return Single(kind, _micros, None, _fill_micros)
    if name in _AS_JSON:
        return Single(t.StringType(), _json_text, None, _fill_json)
    if name in _WRAPPERS:
        field = _field(message.fields_by_name["value"], above)
        return Single(field.spark, field.read, None, field.write)
    fields = fields_of(message, above)
    spark = t.StructType([t.StructField(field.name, field.spark) for field in fields])
    return Single(spark, _struct_load(fields), None, _struct_fill(fields))


def _struct_load(fields: list[FieldColumn]) -> Load:
    readers = [(field.name, field.read) for field in fields]
    return lambda message: {name: read(message) for name, read in readers}


def _struct_fill(fields: list[FieldColumn]) -> Dump:
    def fill(message: Any, value: Any) -> None:
        for field in fields:
            try:
                field.write(message, value.get(field.name))
            except (TypeError, ValueError) as error:
                raise EncodeError(f"{field.name}: {error}") from error

    return fill


def _micros(message: Any) -> int:
    return int(message.seconds) * _MICROS + int(message.nanos) // 1000


def _fill_micros(message: Any, micros: int) -> None:
    seconds, rest = divmod(micros, _MICROS)
    if message.DESCRIPTOR.full_name == _DURATION and seconds < 0 < rest:
        seconds, rest = seconds + 1, rest - _MICROS  # A duration's parts have one sign.
    message.seconds, message.nanos = seconds, rest * 1000


def _json_text(message: Message) -> str:
    try:
        return str(json_format.MessageToJson(message, indent=None))
    except (json_format.SerializeToJsonError, ValueError) as error:
        raise DecodeError(f"{message.DESCRIPTOR.full_name} has no JSON form: {error}") from error


def _fill_json(message: Message, text: str) -> None:
    try:
        json_format.Parse(text, message)
    except json_format.ParseError as error:
        raise EncodeError(f"{message.DESCRIPTOR.full_name}: {error}") from error
