"""The JSON Schema of what Spark writes as JSON for a type.

Objects are closed and a field that may be null need not be there, so a column that is added later
is a change that old and new readers live with.
"""

from typing import Any

from pyspark.sql import types as t

from penstock.schemas.errors import SchemaError

DRAFT = "http://json-schema.org/draft-07/schema#"
_PLAIN: dict[type[t.DataType], dict[str, Any]] = {
    t.BooleanType: {"type": "boolean"},
    t.ByteType: {"type": "integer"},
    t.ShortType: {"type": "integer"},
    t.IntegerType: {"type": "integer"},
    t.LongType: {"type": "integer"},
    t.FloatType: {"type": "number"},
    t.DoubleType: {"type": "number"},
    t.DecimalType: {"type": "number"},
    t.StringType: {"type": "string"},
    t.BinaryType: {"type": "string", "contentEncoding": "base64"},
    t.DateType: {"type": "string", "format": "date"},
    t.TimestampType: {"type": "string", "format": "date-time"},
    t.TimestampNTZType: {"type": "string"},
}


def json_schema_of(
    spark_type: t.DataType, *, null_fields: bool = False, title: str = "Value"
) -> dict[str, Any]:
    """A whole schema; with `null_fields`, fields that are null are written as such."""
    return {"$schema": DRAFT, "title": title, **_schema(spark_type, null_fields)}


def _schema(spark_type: t.DataType, nulls: bool) -> dict[str, Any]:
    if isinstance(spark_type, t.StructType):
        return _object(spark_type, nulls)
    if isinstance(spark_type, t.ArrayType):
        items = _schema(spark_type.elementType, nulls)
        return {"type": "array", "items": _or_null(items) if spark_type.containsNull else items}
    if isinstance(spark_type, t.MapType):
        values = _schema(spark_type.valueType, nulls)
        inner = _or_null(values) if spark_type.valueContainsNull else values
        return {"type": "object", "additionalProperties": inner}
    for kind, schema in _PLAIN.items():
        if isinstance(spark_type, kind):
            return dict(schema)
    raise SchemaError(f"JSON Schema has no form for {spark_type.simpleString()}")


def _object(struct: t.StructType, nulls: bool) -> dict[str, Any]:
    inner = {field.name: _schema(field.dataType, nulls) for field in struct.fields}
    nullable = {field.name for field in struct.fields if field.nullable}
    if nulls:
        inner |= {name: _or_null(inner[name]) for name in inner if name in nullable}
    made = {"type": "object", "properties": inner, "additionalProperties": False}
    required = [name for name in inner if name not in nullable]
    return {**made, "required": required} if required else made


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, schema]}
