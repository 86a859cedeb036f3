"""`spark.read.format("penstock")` against a real broker."""

import json
from typing import Any

import confluent_kafka
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.support.broker import BrokerProcess
from tests.support.spark_topics import FIRST_MS, Topic

from penstock.client.admin import Admin
from penstock.client.values import TopicPartition
from penstock.records.compression import Codec


def read(spark: SparkSession, broker: BrokerProcess, **options: str) -> DataFrame:
    reader = spark.read.format("penstock").option("kafka.bootstrap.servers", broker.address)
    return reader.options(**options).load()


def offsets(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted(
        (row.partition, row.offset) for row in frame.select("partition", "offset").collect()
    )


def times(first: int, second: int) -> str:
    return json.dumps({"numbers": {"0": first, "1": second}})


@pytest.fixture(scope="module")
def numbers(shared_broker: BrokerProcess) -> Topic:
    """Ten records in partition 0 and five in partition 1, a millisecond apart."""
    topic = Topic(shared_broker.port, "numbers", 2)
    topic.put([b"%d" % n for n in range(10)], key=b"k")
    topic.put([b"%d" % n for n in range(5)], partition=1)
    return topic


def test_all_records_of_a_topic_are_read_once_with_all_their_fields(
    spark: SparkSession, shared_broker: BrokerProcess, numbers: Topic
) -> None:
    frame = read(spark, shared_broker, subscribe="numbers")
    rows = sorted(
        frame.withColumn("ms", F.unix_millis("timestamp")).collect(), key=lambda r: r[3:5]
    )
    found = [
        (r.partition, r.offset, r.key and bytes(r.key), bytes(r.value), r.ms, r.timestampType)
        for r in rows
    ]
    first = [(0, n, b"k", b"%d" % n, FIRST_MS + n, 0) for n in range(10)]
    assert found == first + [(1, n, None, b"%d" % n, FIRST_MS + n, 0) for n in range(5)]
    assert {row.topic for row in rows} == {"numbers"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": '{"numbers":{"0":8,"1":-2}}'}, [range(8, 10), range(5)]),
        ({"endingOffsets": '{"numbers":{"0":3,"1":-1}}'}, [range(3), range(5)]),
        ({"startingTimestamp": str(FIRST_MS + 3)}, [range(3, 10), range(3, 5)]),
        ({"endingTimestamp": str(FIRST_MS + 2)}, [range(2), range(2)]),
        ({"endingTimestamp": str(FIRST_MS + 7)}, [range(7), range(5)]),
        (
            {
                "startingTimestamp": str(FIRST_MS + 8),
                "startingOffsetsByTimestampStrategy": "latest",
            },
            [range(8, 10), range(0)],
        ),
        (
            {
                "startingOffsetsByTimestamp": times(FIRST_MS + 9, 0),
                "endingOffsetsByTimestamp": times(FIRST_MS + 99, FIRST_MS + 1),
            },
            [range(9, 10), range(1)],
        ),
    ],
)
def test_bounds_by_offset_and_by_time(
    spark: SparkSession,
    shared_broker: BrokerProcess,
    numbers: Topic,
    options: dict[str, str],
    expected: list[range],
) -> None:
    found = offsets(read(spark, shared_broker, subscribe="numbers", **options))
    assert found == [(p, n) for p, span in enumerate(expected) for n in span]


def test_chosen_partitions_and_patterns(
    spark: SparkSession, shared_broker: BrokerProcess, numbers: Topic
) -> None:
    assert offsets(read(spark, shared_broker, assign='{"numbers":[1]}')) == [
        (1, n) for n in range(5)
    ]
    assert len(offsets(read(spark, shared_broker, subscribePattern="num.*s"))) == 15
    assert offsets(read(spark, shared_broker, subscribePattern="num")) == []


def test_only_the_columns_that_are_wanted_are_made(
    spark: SparkSession, shared_broker: BrokerProcess, numbers: Topic
) -> None:
    frame = read(spark, shared_broker, subscribe="numbers", columns="offset,value")
    assert frame.columns == ["value", "offset"]
    assert frame.agg(F.sum("offset")).collect()[0][0] == 55


def test_partitions_are_cut_into_as_many_tasks_as_asked_for(
    spark: SparkSession, shared_broker: BrokerProcess, numbers: Topic
) -> None:
    def tasks(**options: str) -> list[int]:
        frame = read(spark, shared_broker, subscribe="numbers", **options)
        assert len(offsets(frame)) == 15
        counts = frame.groupBy(F.spark_partition_id()).count().collect()
        return sorted(row["count"] for row in counts)

    assert tasks() == [5, 10]
    assert tasks(minPartitions="6") == [2, 2, 2, 3, 3, 3]
    assert tasks(maxRecordsPerPartition="4") == [2, 3, 3, 3, 4]


@pytest.mark.parametrize("codec", Codec)
def test_every_compression_is_read(
    spark: SparkSession, shared_broker: BrokerProcess, codec: Codec
) -> None:
    topic = Topic(shared_broker.port, f"packed-{codec.name.lower()}")
    values = [b"%d" % n * 50 for n in range(300)]
    topic.put(values, codec=codec)
    rows = read(spark, shared_broker, subscribe=topic.name).orderBy("offset").collect()
    assert [bytes(row.value) for row in rows] == values


def test_headers_come_as_an_array_that_is_never_null(
    spark: SparkSession, shared_broker: BrokerProcess
) -> None:
    topic = Topic(shared_broker.port, "headed")
    topic.put([b"a"], headers=[("trace", b"1"), ("empty", None), ("trace", b"2")])
    topic.put([None])
    frame = read(spark, shared_broker, subscribe="headed", includeHeaders="true")
    first, second = frame.orderBy("offset").collect()
    found = [(h.key, h.value and bytes(h.value)) for h in first.headers]
    assert found == [("trace", b"1"), ("empty", None), ("trace", b"2")]
    assert (second.headers, second.value) == ([], None)


def test_a_row_more_tells_where_a_range_ends(
    spark: SparkSession, shared_broker: BrokerProcess
) -> None:
    Topic(shared_broker.port, "ended").put([b"a", b"b"])
    frame = read(spark, shared_broker, subscribe="ended", includeRangeEnds="true")
    found = [(row.offset, row.timestampType, row.value) for row in frame.collect()]
    assert found == [(0, 0, b"a"), (1, 0, b"b"), (2, -1, None)]


def test_more_than_one_fetch_is_needed_for_large_partitions(
    spark: SparkSession, shared_broker: BrokerProcess
) -> None:
    topic = Topic(shared_broker.port, "large")
    for _ in range(30):
        topic.put([b"x" * 1000] * 100)
    small = {"kafka.max.partition.fetch.bytes": "300000"}
    frame = read(spark, shared_broker, subscribe="large", **small)
    assert offsets(frame) == [(0, n) for n in range(3000)]


def test_committed_reads_skip_aborted_and_open_transactions(
    spark: SparkSession, shared_broker: BrokerProcess
) -> None:
    Topic(shared_broker.port, "deals")
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": shared_broker.address, "transactional.id": "deals"}
    )
    producer.init_transactions(120)
    for word, end in ((b"no", producer.abort_transaction), (b"yes", producer.commit_transaction)):
        producer.begin_transaction()
        for _ in range(3):
            producer.produce("deals", word)
        producer.flush(120)
        end(30)
    producer.begin_transaction()
    producer.produce("deals", b"maybe")
    producer.flush(120)

    def values(level: str) -> list[bytes]:
        options = {"subscribe": "deals", "kafka.isolation.level": level}
        rows = read(spark, shared_broker, **options).orderBy("offset").collect()
        return [bytes(row.value) for row in rows]

    assert values("read_committed") == [b"yes"] * 3
    assert values("read_uncommitted") == [b"no"] * 3 + [b"yes"] * 3 + [b"maybe"]
    producer.abort_transaction(120)


def test_offsets_that_are_gone_are_named_or_left_out(
    spark: SparkSession, shared_broker: BrokerProcess
) -> None:
    topic = Topic(shared_broker.port, "cut")
    topic.put([b"a"] * 10)
    with Admin({"bootstrap.servers": shared_broker.address}) as admin:
        admin.delete_records({TopicPartition("cut", 0): 4})
    options = {"subscribe": "cut", "startingOffsets": '{"cut":{"0":2}}'}
    with pytest.raises(PySparkException, match=r"asks for offset 2 of topic 'cut', partition 0"):
        read(spark, shared_broker, **options).collect()
    found = offsets(read(spark, shared_broker, failOnDataLoss="false", **options))
    assert found == [(0, n) for n in range(4, 10)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "nowhere"}, "Topic 'nowhere' of the option 'subscribe' does not exist"),
        ({"assign": '{"numbers":[7]}'}, "Topic 'numbers', partition 7 of the option 'assign'"),
        ({"subscribe": "numbers", "startingOffset": "earliest"}, "did you mean 'startingOffsets'"),
        (
            {"subscribe": "numbers", "startingOffsets": '{"numbers":{"0":1}}'},
            "Not named: numbers-1",
        ),
        (
            {"subscribe": "numbers", "startingTimestamp": str(FIRST_MS + 100)},
            "topic 'numbers', partition 0 has no record at or after",
        ),
        ({"subscribe": "numbers", "endingOffsets": '{"numbers":{"0":99,"1":1}}'}, "offset 99"),
    ],
)
def test_mistakes_are_named(
    spark: SparkSession,
    shared_broker: BrokerProcess,
    numbers: Topic,
    options: dict[str, str],
    message: str,
) -> None:
    with pytest.raises(PySparkException, match=message):
        read(spark, shared_broker, **options).collect()


def test_a_schema_of_ones_own_is_refused(
    spark: SparkSession, shared_broker: BrokerProcess, numbers: Topic
) -> None:
    reader = spark.read.format("penstock").option("kafka.bootstrap.servers", shared_broker.address)
    with pytest.raises(PySparkException, match="has a fixed schema"):
        reader.option("subscribe", "numbers").schema("value string").load().collect()


def test_any_session_finds_the_format_by_itself(spark: SparkSession) -> None:
    import pyspark_penstock

    source: Any = pyspark_penstock.DefaultSource
    assert source.name() == "penstock"
