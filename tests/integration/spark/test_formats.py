"""Values of topics as columns of frames, and back, through a real session and broker."""

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException, StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from tests.support.broker import BrokerProcess
from tests.support.spark_topics import Topic
from tests.unit.schemas.protos import shop_set

from penstock.schemas.avro import AvroWriter, parse
from penstock.schemas.errors import SchemaError
from penstock.schemas.wire_header import write_header
from penstock.spark import formats

ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "cents", "type": {
            "type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "clock", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "who", "type": ["null", "string", "long"], "default": None},
    ],
}  # fmt: skip
ROW = Row(
    id=7,
    cents=Decimal("12.50"),
    at=datetime(2026, 1, 2, 3, 4, 5, 678000),
    day=date(2026, 1, 2),
    clock=time(3, 4, 5),
    tags=["a", "b"],
    counts={"x": 1},
    who=Row(member0="ann", member1=None),
)


def frame_of(spark: SparkSession, rows: list[Any], kind: t.DataType) -> DataFrame:
    assert isinstance(kind, t.StructType)
    return spark.createDataFrame(rows, kind)


def batch(spark: SparkSession, broker: BrokerProcess, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("penstock").option("kafka.bootstrap.servers", broker.address)
    return reader.option("subscribe", topic).options(**options).load()


def test_avro_goes_to_a_topic_and_comes_back(
    spark: SparkSession, shared_broker: BrokerProcess
) -> None:
    Topic(shared_broker.port, "avro")
    avro = formats.Avro(ORDER)
    orders = frame_of(spark, [ROW], avro.spark_type())
    records = formats.encode(orders, avro, key="id", key_format=formats.Raw("long"), topic="avro")
    assert records.columns == ["key", "value", "topic"]
    writer = records.write.format("penstock").mode("append")
    writer.option("kafka.bootstrap.servers", shared_broker.address).save()
    source = batch(spark, shared_broker, "avro")
    decoded = formats.decode(source, avro, key=formats.Raw("long"))
    assert decoded.columns == source.columns
    (row,) = decoded.select("key", "offset", "value.*").collect()
    assert (row.key, row.offset) == (7, 0)
    assert row.asDict(recursive=True) == {"key": 7, "offset": 0, **ROW.asDict(recursive=True)}


def test_avro_by_the_id_in_its_header_is_resolved_to_the_columns_wanted(
    spark: SparkSession, tmp_path: Path
) -> None:
    old = {"type": "record", "name": "P", "fields": [{"name": "id", "type": "int"}]}
    new = {"type": "record", "name": "P", "fields": [
        {"name": "id", "type": "long"}, {"name": "age", "type": "int", "default": 18}]}  # fmt: skip
    (tmp_path / "1.avsc").write_text(json.dumps(old))
    (tmp_path / "2.avsc").write_text(json.dumps(new))
    values = [
        AvroWriter.of(parse(old)).encode({"id": 1}, write_header(1)),
        AvroWriter.of(parse(new)).encode({"id": 2, "age": 5}, write_header(2)),
    ]
    frame = spark.createDataFrame([(value,) for value in values], "value binary")
    avro = formats.Avro(lookup=formats.SchemaDirectory(tmp_path), schema_id=2)
    rows = formats.decode(frame, avro).select("value.*").collect()
    assert rows == [Row(id=1, age=18), Row(id=2, age=5)]
    encoded = formats.encode(formats.decode(frame, avro), avro).collect()
    assert bytes(encoded[1].value) == values[1]


def test_protobuf_goes_both_ways(spark: SparkSession) -> None:
    order = formats.Protobuf(shop_set(), "shop.Order", framed=True, schema_id=5)
    rows = [
        {
            "id": 1,
            "units": -2,
            "big": Decimal(2**64 - 1),
            "signed": -5,
            "paid": True,
            "ratio": 0.5,
            "small": 0.25,
            "shop": "corner",
            "mark": bytearray(b"\x00\xff"),
            "state": "PAID",
            "first": {"sku": "a", "count": 2**32 - 1},
            "ordered_at": datetime(2026, 1, 2, 3, 4, 5, 678901),
            "took": timedelta(seconds=-1.5),
            "discount": None,
            "extra": '{"a": 1.0}',
            "lines": [{"sku": "b", "count": 1}],
            "tags": ["x"],
            "counts": {"k": 1},
            "named": {"n": {"sku": "c", "count": 3}},
            "note": "",
        }
    ]
    frame = frame_of(spark, rows, order.spark_type())
    decoded = formats.decode(formats.encode(frame, order), order).select("value.*")
    assert [row.asDict(recursive=True) for row in decoded.collect()] == rows


JSON_TYPE = (
    "id long, name string, ratio double, cents decimal(12,2), at timestamp, local timestamp_ntz, "
    "day date, mark binary, tags array<string>, counts map<string, long>, "
    "line struct<sku: string, count: int>, yes boolean"
)
JSON_ROW = {
    "id": 2**62,
    "name": 'quo"te\n',
    "ratio": 0.1,
    "cents": Decimal("-0.05"),
    "at": datetime(2026, 1, 2, 3, 4, 5, 678901),
    "local": datetime(2026, 1, 2, 3, 4, 5, 678901),
    "day": date(2026, 1, 2),
    "mark": bytearray(b"\x00\xff"),
    "tags": ["a", None],
    "counts": {"x": 1},
    "line": {"sku": "s", "count": None},
    "yes": False,
}


@pytest.mark.parametrize("json_format", [
    formats.Json(JSON_TYPE),
    formats.Json(JSON_TYPE, null_fields=True),
    formats.Json(JSON_TYPE, framed=True, schema_id=3),
], ids=["plain", "with nulls", "framed"])  # fmt: skip
def test_json_goes_both_ways(spark: SparkSession, json_format: formats.Json) -> None:
    rows = [JSON_ROW, dict.fromkeys(JSON_ROW)]
    frame = spark.createDataFrame([tuple(row.values()) for row in rows], JSON_TYPE)
    encoded = formats.encode(frame, json_format)
    assert encoded.columns == ["value"]
    decoded = formats.decode(encoded, json_format).select("value.*").collect()
    assert [row.asDict(recursive=True) for row in decoded] == rows


def test_times_are_the_same_moments_in_any_time_zone_of_the_session(spark: SparkSession) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    value = b'{"at": "2026-07-02T03:04:05+00:00"}'
    frame = spark.createDataFrame([(value,)], "value binary")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        decoded = formats.decode(frame, formats.Json("at timestamp"))
        seconds = decoded.select(f.unix_timestamp("value.at").alias("s")).first()
        again = formats.encode(decoded, formats.Json()).first()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone or "UTC")
    moment = datetime(2026, 7, 2, 3, 4, 5, tzinfo=UTC)
    assert seconds is not None and seconds.s == moment.timestamp()
    assert again is not None
    written = datetime.fromisoformat(json.loads(bytes(again.value))["at"])
    assert written == moment


def test_the_schema_of_json_is_found_in_a_batch_frame(
    spark: SparkSession, shared_broker: BrokerProcess
) -> None:
    topic = Topic(shared_broker.port, "inferred")
    topic.put([b'{"id": 1, "tags": ["a"]}', b"not json", None, b'{"id": 2.5, "more": {"x": null}}'])
    frame = batch(spark, shared_broker, "inferred")
    decoded = formats.decode(frame, formats.Json(), on_error="null")
    kind = decoded.schema["value"].dataType.simpleString()
    assert kind == "struct<id:double,tags:array<string>,more:struct<x:string>>"
    assert [row.value and row.value.id for row in decoded.orderBy("offset").collect()] == [
        1.0,
        None,
        None,
        2.5,
    ]


def test_csv_goes_both_ways(spark: SparkSession) -> None:
    kind = "name string, other string, n long, ratio double, day date, at timestamp, ok boolean"
    rows = [
        ('a,"b"', "", -5, 0.5, date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 6), True),
        (" x ", None, None, None, None, None, None),
    ]
    frame = spark.createDataFrame(rows, kind)
    encoded = formats.encode(frame, formats.Csv(kind))
    lines = [bytes(row.value).decode() for row in encoded.collect()]
    assert lines[0].startswith('"a,""b""","",-5,0.5,2026-01-02,2026-01-02T03:04:05.000006')
    decoded = formats.decode(encoded, formats.Csv(kind)).select("value.*")
    assert [tuple(row) for row in decoded.collect()] == rows


def test_a_bad_record_ends_a_batch_with_a_sentence_that_names_it(
    spark: SparkSession, shared_broker: BrokerProcess
) -> None:
    Topic(shared_broker.port, "poison", 2).put([b'{"id": 1}', b'{"id": "x"}'], partition=1)
    decoded = formats.decode(batch(spark, shared_broker, "poison"), formats.Json("id long"))
    with pytest.raises(PythonException) as caught:
        decoded.collect()
    assert (
        "the value of record poison-1@1 cannot be decoded as JSON: id is not a 64-bit integer: x"
    ) in str(caught.value)


def test_a_bad_record_ends_a_stream_with_a_sentence_that_names_it(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    Topic(shared_broker.port, "poisoned").put([b"{}"] * 3 + [b"\xff"])
    reader = spark.readStream.format("penstock").option("subscribe", "poisoned")
    reader.option("kafka.bootstrap.servers", shared_broker.address)
    stream = reader.option("startingOffsets", "earliest").load()
    decoded = formats.decode(stream, formats.Json("id long"))
    writer = decoded.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination(60)
    assert "the value of record poisoned-0@3 cannot be decoded as JSON" in str(caught.value)


def test_a_frame_without_a_place_says_which_row(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("{}",), ("x",)], "text string").coalesce(1)
    decoded = formats.decode(frame, formats.Json("id long"), column="text")
    with pytest.raises(PythonException, match="the text of row 1 of a batch cannot be decoded"):
        decoded.collect()


def test_a_value_that_cannot_be_encoded_ends_the_query(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(None,)], "id long")
    avro = formats.Avro('{"type":"record","name":"A","fields":[{"name":"id","type":"long"}]}')
    with pytest.raises(PythonException, match="a value cannot be encoded as Avro"):
        formats.encode(frame, avro).collect()


def test_a_frame_straight_from_a_topic_is_not_written_back_to_where_it_was_read(
    spark: SparkSession, shared_broker: BrokerProcess
) -> None:
    Topic(shared_broker.port, "place").put([b'{"id": 1}'], key=b"k")
    source = batch(spark, shared_broker, "place", includeHeaders="true")
    decoded = formats.decode(source, formats.Json("id long"))
    encoded = formats.encode(decoded, formats.Json())
    assert encoded.columns == ["key", "value", "headers"]
    (row,) = encoded.collect()
    assert (bytes(row.key), bytes(row.value)) == (b"k", b'{"id":1}')


def test_mistakes_are_told_before_anything_runs(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, b"{}")], "key int, value binary")
    json_format = formats.Json("id long")
    for mistake, call in {
        "is none|one of fail": lambda: formats.decode(frame, json_format, on_error="skip"),  # type: ignore[arg-type]
        "belong together": lambda: formats.decode(frame, json_format, on_error="dead-letter"),
        "there is no column body": lambda: formats.decode(frame, json_format, column="body"),
        "key is int, not binary": lambda: formats.decode(
            frame, json_format, on_error="dead-letter", dead_letter=formats.DeadLetter("dead")
        ),
        "not bytes; choose a format": lambda: formats.encode(frame, formats.Raw("string")),
        "decode with on_error": lambda: formats.good(frame),
        "struct, array or map column": lambda: formats.encode(frame.select("key"), json_format,
                                                              value="key"),
        "is not a schema": lambda: formats.Json("id lonk").spark_type(),
    }.items():  # fmt: skip
        with pytest.raises(SchemaError, match=mistake):
            call()
