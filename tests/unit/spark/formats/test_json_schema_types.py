"""The JSON Schema of a Spark type: what Spark writes for it passes."""

import json
from typing import Any

import jsonschema_rs
import pytest
from pyspark.sql import types as t

from penstock.schemas.errors import SchemaError
from penstock.spark.formats.json_schema_types import json_schema_of

ROW = t.StructType(
    [
        t.StructField("id", t.LongType(), nullable=False),
        t.StructField("name", t.StringType()),
        t.StructField("price", t.DecimalType(9, 2)),
        t.StructField("day", t.DateType()),
        t.StructField("at", t.TimestampType()),
        t.StructField("mark", t.BinaryType()),
        t.StructField("tags", t.ArrayType(t.StringType())),
        t.StructField("counts", t.MapType(t.StringType(), t.IntegerType())),
        t.StructField("inner", t.StructType([t.StructField("x", t.DoubleType(), nullable=False)])),
    ]
)
DOCUMENT = {
    "id": 7,
    "name": "ann",
    "price": 12.5,
    "day": "2026-01-02",
    "at": "2026-01-02T03:04:05.000000+00:00",
    "mark": "AP8=",
    "tags": ["a", None],
    "counts": {"x": 1, "y": None},
    "inner": {"x": 0.5},
}


def is_valid(schema: dict[str, Any], document: object) -> bool:
    return bool(jsonschema_rs.validator_for(json.loads(json.dumps(schema))).is_valid(document))


def test_a_row_passes_and_fields_that_are_null_may_be_missing() -> None:
    schema = json_schema_of(ROW)
    assert is_valid(schema, DOCUMENT)
    assert is_valid(schema, {"id": 7})
    for wrong in ({}, {"id": None}, {"id": "7"}, {"id": 7, "more": 1}, {"id": 7, "name": None}):
        assert not is_valid(schema, wrong)
    assert is_valid(json_schema_of(ROW, null_fields=True), {"id": 7, "name": None})


def test_a_column_can_be_added_later() -> None:
    from penstock.schemas.definitions.json_schema import JsonDefinition

    old = JsonDefinition.parse(json.dumps(json_schema_of(t.StructType(ROW.fields[:1]))))
    new = JsonDefinition.parse(json.dumps(json_schema_of(t.StructType(ROW.fields[:2]))))
    assert new.differences(old) == []
    assert old.differences(new) != []


def test_a_type_without_a_form_is_refused() -> None:
    with pytest.raises(SchemaError, match="no form for void"):
        json_schema_of(t.StructType([t.StructField("a", t.NullType())]))
