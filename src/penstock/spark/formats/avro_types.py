"""Avro's types and Spark's: which column an Avro type becomes, and how values pass between them.

| Avro                                | Spark                                                 |
| ----------------------------------- | ----------------------------------------------------- |
| boolean, int, long, float, double   | boolean, int, bigint, float, double                   |
| string, enum, string with uuid      | string                                                |
| bytes, fixed                        | binary                                                |
| decimal(p, s) on bytes or fixed     | decimal(p, s), up to 38 digits                        |
| date                                | date                                                  |
| time-millis, time-micros            | time(3), time(6)                                      |
| timestamp-millis, timestamp-micros  | timestamp                                             |
| local-timestamp-millis, -micros     | timestamp_ntz                                         |
| array, map, record                  | array, map, struct                                    |
| union of null and one type          | that type                                             |
| union of int and long; of floats    | bigint; double                                        |
| any other union                     | struct of member0, member1, ...: the one there is set |

Values pass as plain numbers; Arrow turns them into dates and times, a column at a time.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import types as t

from penstock.schemas.avro import NAMED, Schema, has_choice, recursive_name
from penstock.schemas.errors import EncodeError, SchemaError
from penstock.spark.formats.format import arrow_type

Pass: TypeAlias = Callable[[Any], Any]
DECIMAL_DIGITS_MAX = 38


class Mapped(NamedTuple):
    """How an Avro type stands in a column."""

    spark: t.DataType
    stored: pa.DataType  # What Avro's plain values are to Arrow, in Avro's own units.
    plain: pa.DataType  # The same as numbers, for the way out.
    load: Pass | None = None  # From fastavro's value to Arrow's; None: it is the same.
    dump: Pass | None = None


_PRIMITIVES: dict[str, Mapped] = {
    "null": Mapped(t.StringType(), pa.string(), pa.string()),
    "boolean": Mapped(t.BooleanType(), pa.bool_(), pa.bool_()),
    "int": Mapped(t.IntegerType(), pa.int32(), pa.int32()),
    "long": Mapped(t.LongType(), pa.int64(), pa.int64()),
    "float": Mapped(t.FloatType(), pa.float32(), pa.float32()),
    "double": Mapped(t.DoubleType(), pa.float64(), pa.float64()),
    "bytes": Mapped(t.BinaryType(), pa.binary(), pa.binary()),
    "string": Mapped(t.StringType(), pa.string(), pa.string()),
    "enum": Mapped(t.StringType(), pa.string(), pa.string()),
    "fixed": Mapped(t.BinaryType(), pa.binary(), pa.binary()),
}
_LOGICAL: dict[tuple[str, str], Mapped] = {
    ("int", "date"): Mapped(t.DateType(), pa.date32(), pa.int32()),
    ("int", "time-millis"): Mapped(t.TimeType(3), pa.time32("ms"), pa.int32()),
    ("long", "time-micros"): Mapped(t.TimeType(6), pa.time64("us"), pa.int64()),
    ("long", "timestamp-millis"): Mapped(t.TimestampType(), pa.timestamp("ms", "UTC"), pa.int64()),
    ("long", "timestamp-micros"): Mapped(t.TimestampType(), pa.timestamp("us", "UTC"), pa.int64()),
    ("long", "local-timestamp-millis"): Mapped(
        t.TimestampNTZType(), pa.timestamp("ms"), pa.int64()
    ),
    ("long", "local-timestamp-micros"): Mapped(
        t.TimestampNTZType(), pa.timestamp("us"), pa.int64()
    ),
}
_WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


def mapped(schema: Schema) -> Mapped:
    """How a schema as `penstock.schemas.avro.parse` gives it stands in a column."""
    recursive = recursive_name(schema)
    if recursive is not None:
        raise SchemaError(f"the Avro type {recursive} contains itself; Spark has no such columns")
    return _mapped(schema, "", has_choice(schema))


def _mapped(schema: Schema, path: str, tagged: bool) -> Mapped:
    if isinstance(schema, list):
        return _union(schema, path, tagged)
    if isinstance(schema, str):
        return _PRIMITIVES[schema]
    kind = schema["type"]
    if kind in ("record", "error"):
        return _record(schema, path, tagged)
    if kind == "array":
        inner = _mapped(schema["items"], f"{path}[]", tagged)
        return _container(inner, t.ArrayType(inner.spark), pa.list_, _list_pass)
    if kind == "map":
        inner = _mapped(schema["values"], f"{path}{{}}", tagged)
        return _container(inner, t.MapType(t.StringType(), inner.spark), _map_type, _dict_pass)
    if schema.get("logicalType") == "decimal":
        return _decimal(schema, path)
    return _LOGICAL.get((kind, schema.get("logicalType", ""))) or _PRIMITIVES[kind]


def _record(schema: Schema, path: str, tagged: bool) -> Mapped:
    inner = [
        (field["name"], _mapped(field["type"], f"{path}.{field['name']}".lstrip("."), tagged))
        for field in schema["fields"]
    ]
    if not inner:
        raise SchemaError(f"the Avro record {schema['name']} has no fields; Spark needs one")
    return Mapped(
        t.StructType([t.StructField(name, one.spark) for name, one in inner]),
        pa.struct([(name, one.stored) for name, one in inner]),
        pa.struct([(name, one.plain) for name, one in inner]),
        _fields_pass([(name, one.load) for name, one in inner]),
        _fields_pass([(name, one.dump) for name, one in inner]),
    )


def _union(schema: list[Schema], path: str, tagged: bool) -> Mapped:
    branches = [branch for branch in schema if branch != "null"]
    if len(branches) <= 1:
        inner = _mapped(branches[0] if branches else "null", path, tagged)
        named = bool(branches) and _type_name(branches[0]) not in _PRIMITIVES
        return inner._replace(load=_untagged(inner.load)) if tagged and named else inner
    wider = _WIDER.get(frozenset(b if isinstance(b, str) else "" for b in branches))
    if wider is not None:
        return _PRIMITIVES[wider]
    members = [_mapped(branch, f"{path}.member{n}", tagged) for n, branch in enumerate(branches)]
    names = [f"member{number}" for number in range(len(members))]
    pairs = list(zip(names, members, strict=True))
    return Mapped(
        t.StructType([t.StructField(name, one.spark) for name, one in pairs]),
        pa.struct([(name, one.stored) for name, one in pairs]),
        pa.struct([(name, one.plain) for name, one in pairs]),
        _into_member(branches, pairs),
        _out_of_member([_type_name(branch) for branch in branches], pairs),
    )


def _decimal(schema: Schema, path: str) -> Mapped:
    digits, scale = int(schema["precision"]), int(schema.get("scale", 0))
    if digits > DECIMAL_DIGITS_MAX:
        raise SchemaError(
            f"{path or 'the value'} is a decimal of {digits} digits; "
            f"Spark has {DECIMAL_DIGITS_MAX} at most"
        )
    stored = pa.decimal128(digits, scale)
    return Mapped(t.DecimalType(digits, scale), stored, stored)


def _container(
    inner: Mapped,
    spark: t.DataType,
    around: Callable[[pa.DataType], pa.DataType],
    passing: Callable[[Pass | None], Pass | None],
) -> Mapped:
    return Mapped(
        spark, around(inner.stored), around(inner.plain), passing(inner.load), passing(inner.dump)
    )


def _map_type(values: pa.DataType) -> pa.DataType:
    return pa.map_(pa.string(), values)


def _list_pass(inner: Pass | None) -> Pass | None:
    if inner is None:
        return None
    return lambda value: None if value is None else [inner(one) for one in value]


def _dict_pass(inner: Pass | None) -> Pass | None:
    if inner is None:
        return None
    return lambda value: None if value is None else {k: inner(one) for k, one in value.items()}


def _fields_pass(fields: list[tuple[str, Pass | None]]) -> Pass | None:
    changed = [(name, one) for name, one in fields if one is not None]
    if not changed:
        return None

    def change(value: Any) -> Any:
        if value is None:
            return None
        return {**value, **{name: one(value[name]) for name, one in changed}}

    return change


def _untagged(inner: Pass | None) -> Pass:
    """A named type inside a union comes with its name."""

    def change(value: Any) -> Any:
        value = value[1] if isinstance(value, tuple) else value
        return value if inner is None else inner(value)

    return change


def _into_member(branches: list[Schema], members: list[tuple[str, Mapped]]) -> Pass:
    types = [(_type_name(branch), _python_types(branch)) for branch in branches]

    def change(value: Any) -> Any:
        if value is None:
            return None
        tag = None
        if isinstance(value, tuple):
            tag, value = value
        for (kind, classes), (name, one) in zip(types, members, strict=True):
            if kind == tag or (tag is None and type(value) in classes):
                return {name: value if one.load is None else one.load(value)}
        raise SchemaError(f"no member of the union takes {value!r}")

    return change


def _out_of_member(kinds: list[str], members: list[tuple[str, Mapped]]) -> Pass:
    def change(value: Any) -> Any:
        if value is None:
            return None
        there = [n for n, (name, _) in enumerate(members) if value.get(name) is not None]
        if len(there) > 1:
            raise EncodeError(f"more than one member of a union is set: {sorted(value)}")
        if not there:
            return None
        name, one = members[there[0]]
        inner = value[name] if one.dump is None else one.dump(value[name])
        return kinds[there[0]], inner

    return change


def _type_name(schema: Schema) -> str:
    if isinstance(schema, str):
        return schema
    kind = schema["type"]
    return str(schema["name"] if kind in NAMED else kind)


_CLASSES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (float,),
    "double": (float,),
    "bytes": (bytes,),
    "fixed": (bytes,),
    "string": (str,),
    "enum": (str,),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
    "error": (dict,),
}


def _python_types(schema: Schema) -> tuple[type, ...]:
    if isinstance(schema, dict) and schema.get("logicalType") == "decimal":
        return (Decimal,)
    return _CLASSES[schema if isinstance(schema, str) else schema["type"]]


def avro_schema(spark_type: t.DataType, name: str = "Value", namespace: str = "") -> Schema:
    """The Avro schema of a column; every value in it may be null, as in Spark."""
    full = f"{namespace}.{name}" if namespace else name
    if isinstance(spark_type, t.StructType):
        fields = [
            {
                "name": field.name,
                "type": ["null", avro_schema(field.dataType, f"{full}_{field.name}")],
                "default": None,
            }
            for field in spark_type.fields
        ]
        return {"type": "record", "name": full, "fields": fields}
    if isinstance(spark_type, t.ArrayType):
        return {"type": "array", "items": ["null", avro_schema(spark_type.elementType, full)]}
    if isinstance(spark_type, t.MapType):
        if not isinstance(spark_type.keyType, t.StringType):
            raise SchemaError(f"the keys of an Avro map are strings; {full} wants others")
        return {"type": "map", "values": ["null", avro_schema(spark_type.valueType, full)]}
    if isinstance(spark_type, t.DecimalType):
        digits = {"precision": spark_type.precision, "scale": spark_type.scale}
        return {"type": "bytes", "logicalType": "decimal", **digits}
    for (kind, logical), one in reversed(_LOGICAL.items()):
        if one.spark == spark_type:
            return {"type": kind, "logicalType": logical}
    if isinstance(spark_type, (t.ByteType, t.ShortType)):
        return "int"
    for kind, one in _PRIMITIVES.items():
        if one.spark == spark_type and kind != "null":
            return kind
    raise SchemaError(f"Avro has no form for {spark_type.simpleString()}")


def target_of(one: Mapped) -> pa.DataType:
    """The Arrow type in which Spark wants the column."""
    return arrow_type(one.spark)
