"""Connect's schemas and values as Arrow's and back, for Parquet, tables and columns."""

import decimal
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.logical import (
    DATE,
    DATE_SCHEMA,
    DECIMAL,
    TIME,
    TIME_SCHEMA,
    TIMESTAMP,
    TIMESTAMP_SCHEMA,
    decimal_schema,
    scale_of,
)
from penstock.connect.values.schema import Schema, SchemaField, SchemaType
from penstock.connect.values.struct import StructValue

_DIGITS_MAX = 38
_PLAIN = {
    SchemaType.INT8: pa.int8(),
    SchemaType.INT16: pa.int16(),
    SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(),
    SchemaType.FLOAT32: pa.float32(),
    SchemaType.FLOAT64: pa.float64(),
    SchemaType.BOOLEAN: pa.bool_(),
    SchemaType.STRING: pa.string(),
    SchemaType.BYTES: pa.binary(),
}
_LOGICAL = {DATE: pa.date32(), TIME: pa.time32("ms"), TIMESTAMP: pa.timestamp("ms", tz="UTC")}
_TYPES = {
    pa.int8(): SchemaType.INT8,
    pa.int16(): SchemaType.INT16,
    pa.int32(): SchemaType.INT32,
    pa.int64(): SchemaType.INT64,
    pa.uint8(): SchemaType.INT16,
    pa.uint16(): SchemaType.INT32,
    pa.uint32(): SchemaType.INT64,
    pa.float16(): SchemaType.FLOAT32,
    pa.float32(): SchemaType.FLOAT32,
    pa.float64(): SchemaType.FLOAT64,
    pa.bool_(): SchemaType.BOOLEAN,
    pa.string(): SchemaType.STRING,
    pa.large_string(): SchemaType.STRING,
    pa.string_view(): SchemaType.STRING,
    pa.binary(): SchemaType.BYTES,
    pa.large_binary(): SchemaType.BYTES,
    pa.binary_view(): SchemaType.BYTES,
}


def arrow_schema_of(schema: Schema) -> pa.Schema:
    """The columns of a struct."""
    if schema.type is not SchemaType.STRUCT:
        raise DataError(f"a table has columns, and a value of type {schema.type} has no fields")
    return pa.schema([_field(one.name, one.schema) for one in schema.fields])


def _field(name: str, schema: Schema) -> pa.Field:
    return pa.field(name, _arrow_type(schema), nullable=schema.optional)


def _arrow_type(schema: Schema) -> pa.DataType:
    if schema.name == DECIMAL:
        return pa.decimal128(_DIGITS_MAX, scale_of(schema))
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.type is SchemaType.STRUCT:
        if not schema.fields:
            raise DataError("Parquet has no struct without fields")
        return pa.struct([_field(one.name, one.schema) for one in schema.fields])
    parts, keys = schema.value_schema, schema.key_schema
    if schema.type is SchemaType.ARRAY and parts is not None:
        return pa.list_(_field("element", parts))
    if schema.type is SchemaType.MAP and parts is not None and keys is not None:
        return pa.map_(_arrow_type(keys), _field("value", parts))
    if schema.type not in _PLAIN:
        raise DataError(f"a {schema.type} without a schema for its parts cannot be a column")
    return _PLAIN[schema.type]


def arrow_value(schema: Schema, value: Any) -> Any:
    """A checked value as Arrow takes it; DataError for one that no column can hold."""
    if value is None:
        return schema.default
    if schema.type is SchemaType.STRUCT:
        return {one.name: arrow_value(one.schema, part) for one, part in _pairs(schema, value)}
    parts, keys = schema.value_schema, schema.key_schema
    if schema.type is SchemaType.ARRAY and parts is not None:
        return [arrow_value(parts, one) for one in value]
    if schema.type is SchemaType.MAP and parts is not None and keys is not None:
        return [(arrow_value(keys, key), arrow_value(parts, one)) for key, one in value.items()]
    if isinstance(value, str) and not value.isascii():
        _check_text(value)
    if isinstance(value, decimal.Decimal):
        _check_decimal(schema, value)
    return value


def _pairs(schema: Schema, value: StructValue) -> Any:
    return zip(schema.fields, value.values, strict=True)


def _check_text(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"a text has half a character: {error}") from error


def _check_decimal(schema: Schema, value: decimal.Decimal) -> None:
    digits, exponent = len(value.as_tuple().digits), value.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent != scale_of(schema) or digits > _DIGITS_MAX:
        raise DataError(f"the decimal {value} does not fit decimal(38, {scale_of(schema)})")


def connect_schema_of(columns: pa.Schema) -> Schema:
    """The struct of a table's columns."""
    return Schema(type=SchemaType.STRUCT, fields=tuple(_connect_field(one) for one in columns))


def _connect_field(field: pa.Field) -> SchemaField:
    return SchemaField(field.name, _connect_schema(field))


def _connect_schema(field: pa.Field) -> Schema:
    found = _connect_type(field.type, field.name)
    return found.as_optional() if field.nullable else found


def _connect_type(kind: pa.DataType, name: str) -> Schema:
    if kind in _TYPES:
        return Schema(type=_TYPES[kind])
    for is_kind, make in _SHAPES:
        if is_kind(kind):
            made: Schema = make(kind)
            return made
    raise DataError(f"the column {name} is of type {kind}, which has no Connect schema")


def _list_schema(kind: Any) -> Schema:
    return Schema(type=SchemaType.ARRAY, value_schema=_connect_schema(kind.value_field))


def _map_schema(kind: Any) -> Schema:
    keys = _connect_type(kind.key_type, "key")
    values = _connect_schema(kind.item_field)
    return Schema(type=SchemaType.MAP, key_schema=keys, value_schema=values)


def _struct_schema(kind: Any) -> Schema:
    return Schema(type=SchemaType.STRUCT, fields=tuple(_connect_field(one) for one in kind))


_SHAPES: tuple[tuple[Any, Any], ...] = (
    (pa.types.is_date, lambda kind: DATE_SCHEMA),
    (pa.types.is_time, lambda kind: TIME_SCHEMA),
    (pa.types.is_timestamp, lambda kind: TIMESTAMP_SCHEMA),
    (pa.types.is_uint64, lambda kind: decimal_schema(0)),
    (pa.types.is_decimal, lambda kind: decimal_schema(kind.scale)),
    (pa.types.is_fixed_size_binary, lambda kind: Schema(type=SchemaType.BYTES)),
    (pa.types.is_dictionary, lambda kind: _connect_type(kind.value_type, "value")),
    (pa.types.is_map, _map_schema),
    (pa.types.is_struct, _struct_schema),
    (pa.types.is_list, _list_schema),
    (pa.types.is_large_list, _list_schema),
)


def connect_value_of(schema: Schema, value: Any) -> Any:
    """A value as Arrow gives it, in the columns of `arrow_schema_of` the same schema."""
    if value is None:
        return None
    if schema.type is SchemaType.STRUCT:
        return _struct_value(schema, value)
    parts, keys = schema.value_schema, schema.key_schema
    if schema.type is SchemaType.ARRAY and parts is not None:
        return [connect_value_of(parts, one) for one in value]
    if schema.type is SchemaType.MAP and parts is not None and keys is not None:
        return {key: connect_value_of(parts, one) for key, one in value}
    return value


def _struct_value(schema: Schema, value: Mapping[str, Any]) -> StructValue:
    found = tuple(connect_value_of(one.schema, value.get(one.name)) for one in schema.fields)
    return StructValue(schema, found)
