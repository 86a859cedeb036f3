"""The columns of a write: the rules and the sentences of Spark's Kafka sink."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from penstock.spark.options import OptionError, write_options
from penstock.spark.sink.schema import RecordColumns, columns_of

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
TYPES: dict[str, DataType] = {
    "string": StringType(),
    "binary": BinaryType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "array<string>": ArrayType(StringType()),
    "headers": ArrayType(HEADER),
}


def found(columns: str, **options: str) -> RecordColumns:
    """`columns` is written as `name type, name type`."""
    raw = {"kafka.bootstrap.servers": "h:1", **options}
    pairs = (column.split() for column in columns.split(","))
    schema = StructType([StructField(name, TYPES[kind]) for name, kind in pairs])
    return columns_of(schema, write_options(raw))


def test_columns_are_found_by_name_and_others_are_left_alone() -> None:
    columns = "extra int, headers headers, value string, partition int, topic string, key binary"
    assert found(columns) == RecordColumns(value=2, key=5, headers=1, partition=3, topic=4)


def test_the_option_wins_over_the_column() -> None:
    assert found("value string, topic string", topic="t").topic is None


def test_a_record_has_its_own_time_only_if_asked_for() -> None:
    columns = "value string, timestamp bigint"
    assert found(columns, topic="t").timestamp is None
    assert found(columns, topic="t", includeTimestamp="true").timestamp == 1
    with pytest.raises(OptionError, match="required attribute 'timestamp' not found"):
        found("value string", topic="t", includeTimestamp="true")


def test_headers_can_be_left_out() -> None:
    assert found("value string, headers headers", topic="t", includeHeaders="false").headers is None


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            "value string",
            "topic option required when no 'topic' attribute is present. "
            "Use the topic option for setting a topic.",
        ),
        ("topic string, key string", "Required attribute 'value' not found"),
        (
            "topic int, value string",
            "topic attribute unsupported type int. topic must be a(n) string",
        ),
        (
            "topic string, value bigint",
            "value attribute unsupported type bigint. value must be a(n) string or binary",
        ),
        (
            "topic string, value string, key int",
            "key attribute unsupported type int. key must be a(n) string or binary",
        ),
        (
            "topic string, value string, partition bigint",
            "partition attribute unsupported type bigint. partition must be a(n) int",
        ),
        (
            "topic string, value string, headers array<string>",
            "headers attribute unsupported type array<string>. headers must be a(n) "
            "array<struct<key:string,value:binary>>",
        ),
    ],
)
def test_the_sentences_are_sparks(columns: str, said: str) -> None:
    with pytest.raises(OptionError) as refused:
        found(columns)
    assert str(refused.value) == said
