"""JSON values into the types of Spark's columns, and the types that some samples would need.

Missing fields are null and unknown ones are ignored, as Spark's own JSON reader does it. A string
column takes any value, as its JSON text. Dates and times are ISO 8601 text (without an offset:
UTC), binary is Base64.
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from pyspark.sql import types as t

from penstock.schemas.errors import DecodeError, SchemaError

Convert: TypeAlias = Callable[[Any], Any]

_INTEGER_BITS: dict[type[t.DataType], int] = {
    t.ByteType: 8,
    t.ShortType: 16,
    t.IntegerType: 32,
    t.LongType: 64,
}
_NOT_FINITE = {"NaN", "Infinity", "-Infinity", "+Infinity", "INF", "-INF"}
_LONG_MAX = 2**63 - 1
_SHOWN_MAX = 60


def loads(data: bytes) -> Any:
    """The value of a JSON text; numbers with a point keep all their digits."""
    try:
        return json.loads(data.decode("utf-8"), parse_float=Decimal)
    except UnicodeDecodeError as error:
        raise DecodeError(f"the JSON is not UTF-8: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise DecodeError("the JSON is nested too deeply") from error
    except ValueError as error:
        raise DecodeError(f"this is not JSON: {error}") from error


def converter(spark_type: t.DataType, path: str = "") -> Convert:
    """A function that makes a JSON value one of this type, or says where it is not."""
    kind = type(spark_type)
    if kind in _INTEGER_BITS:
        return _integer(_INTEGER_BITS[kind], path)
    if isinstance(spark_type, t.StructType):
        return _struct(spark_type, path)
    if isinstance(spark_type, t.ArrayType):
        return _array(converter(spark_type.elementType, f"{path}[]"), path)
    if isinstance(spark_type, t.MapType):
        return _map(spark_type, path)
    simple = _SIMPLE.get(kind)
    if simple is None:
        where = f" of {path}" if path else ""
        raise SchemaError(f"JSON values have no form for {spark_type.simpleString()}{where}")
    return _guarded(simple, spark_type, path)


def infer(values: Iterable[Any]) -> t.DataType:
    """The narrowest type that holds all of these JSON values."""
    merged: t.DataType = t.NullType()
    for value in values:
        merged = _merge(merged, _type_of(value))
    return _settled(merged)


def _struct(spark_type: t.StructType, path: str) -> Convert:
    fields = [
        (field.name, converter(field.dataType, f"{path}.{field.name}" if path else field.name))
        for field in spark_type.fields
    ]

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _wrong(value, "an object", path)
        return {name: inner(value.get(name)) for name, inner in fields}

    return convert


def _array(inner: Convert, path: str) -> Convert:
    def convert(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, list):
            raise _wrong(value, "an array", path)
        return [inner(one) for one in value]

    return convert


def _map(spark_type: t.MapType, path: str) -> Convert:
    if not isinstance(spark_type.keyType, t.StringType):
        raise SchemaError(
            f"the keys of a JSON object are strings; {path or 'the map'} wants others"
        )
    inner = converter(spark_type.valueType, f"{path}{{}}")

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _wrong(value, "an object", path)
        return [(key, inner(one)) for key, one in value.items()]

    return convert


def _integer(bits: int, path: str) -> Convert:
    limit = 1 << (bits - 1)

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is not int or not -limit <= value < limit:
            raise _wrong(value, f"a {bits}-bit integer", path)
        return value

    return convert


def _guarded(simple: Convert, spark_type: t.DataType, path: str) -> Convert:
    words = spark_type.simpleString()

    def convert(value: Any) -> Any:
        if value is None:
            return None
        try:
            return simple(value)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise _wrong(value, f"a {words}", path) from error

    return convert


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=_number_text)


def _number_text(value: Any) -> float:
    return float(value)  # The only thing json.dumps does not know here is a Decimal.


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _double(value: Any) -> float:
    if isinstance(value, bool) or (isinstance(value, str) and value not in _NOT_FINITE):
        raise TypeError
    return float(value)


def _decimal(value: Any) -> Decimal:
    if isinstance(value, (bool, float)):
        raise TypeError
    try:
        return Decimal(value)
    except InvalidOperation as error:
        raise ValueError(value) from error


def _binary(value: Any) -> bytes:
    try:
        return base64.b64decode(_text(value), validate=True)
    except binascii.Error as error:
        raise ValueError(value) from error


def _timestamp(value: Any) -> datetime:
    moment = datetime.fromisoformat(_text(value))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _local_timestamp(value: Any) -> datetime:
    moment = datetime.fromisoformat(_text(value))
    if moment.tzinfo:
        raise ValueError(value)
    return moment


def _date(value: Any) -> date:
    return date.fromisoformat(_text(value))


def _time(value: Any) -> time:
    return time.fromisoformat(_text(value))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


_SIMPLE: dict[type[t.DataType], Convert] = {
    t.StringType: _string,
    t.BooleanType: _boolean,
    t.FloatType: _double,
    t.DoubleType: _double,
    t.DecimalType: _decimal,
    t.BinaryType: _binary,
    t.TimestampType: _timestamp,
    t.TimestampNTZType: _local_timestamp,
    t.DateType: _date,
    t.TimeType: _time,
}


def _wrong(value: Any, wanted: str, path: str) -> DecodeError:
    shown = _string(value)
    shown = shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}..."
    return DecodeError(f"{path or 'the value'} is not {wanted}: {shown}")


def _type_of(value: Any) -> t.DataType:
    if value is None:
        return t.NullType()
    if isinstance(value, bool):
        return t.BooleanType()
    if isinstance(value, int):
        return t.LongType() if -_LONG_MAX <= value <= _LONG_MAX else t.DoubleType()
    if isinstance(value, (float, Decimal)):
        return t.DoubleType()
    if isinstance(value, str):
        return t.StringType()
    if isinstance(value, list):
        merged: t.DataType = t.NullType()
        for one in value:
            merged = _merge(merged, _type_of(one))
        return t.ArrayType(merged)
    return t.StructType([t.StructField(key, _type_of(one)) for key, one in value.items()])


def _merge(one: t.DataType, other: t.DataType) -> t.DataType:
    if isinstance(one, t.NullType) or one == other:
        return other
    if isinstance(other, t.NullType):
        return one
    if isinstance(one, t.StructType) and isinstance(other, t.StructType):
        return _merge_structs(one, other)
    if isinstance(one, t.ArrayType) and isinstance(other, t.ArrayType):
        return t.ArrayType(_merge(one.elementType, other.elementType))
    if {type(one), type(other)} == {t.LongType, t.DoubleType}:
        return t.DoubleType()
    return t.StringType()


def _merge_structs(one: t.StructType, other: t.StructType) -> t.StructType:
    found = {field.name: field.dataType for field in one.fields}
    for field in other.fields:
        found[field.name] = _merge(found.get(field.name, t.NullType()), field.dataType)
    return t.StructType([t.StructField(name, kind) for name, kind in found.items()])


def _settled(merged: t.DataType) -> t.DataType:
    """Where only nulls were seen, a string column takes whatever may come."""
    if isinstance(merged, t.NullType):
        return t.StringType()
    if isinstance(merged, t.ArrayType):
        return t.ArrayType(_settled(merged.elementType))
    if isinstance(merged, t.StructType):
        return t.StructType([t.StructField(f.name, _settled(f.dataType)) for f in merged.fields])
    return merged
