"""`format("penstock")` as a sink, in Spark, on a real broker."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.spark.crashing import committed, consumed, left_open, until_stored
from tests.support.broker import BrokerProcess

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def topics(shared_broker: BrokerProcess) -> Iterator[Any]:
    """Names of topics that no other test uses."""
    yield (f"sink{number}" for number in range(1_000))


def save(frame: "DataFrame", broker: BrokerProcess, **options: str) -> None:
    frame.write.format("penstock").mode("append").options(
        **{"kafka.bootstrap.servers": broker.address, **options}
    ).save()


def test_all_columns_of_a_record_are_written(
    spark: "SparkSession", shared_broker: BrokerProcess, topics: Iterator[str]
) -> None:
    first, second = next(topics), next(topics)
    frame = spark.sql(
        f"""
        SELECT * FROM VALUES
            ('{first}', 'k', CAST('v' AS BINARY), 0,
                array(named_struct('key', 'h', 'value', X'01'))),
            ('{second}', NULL, CAST('w' AS BINARY), NULL, array()),
            ('{second}', 'k', NULL, 0, NULL)
        AS rows(topic, key, value, partition, headers)
        """
    )
    save(frame, shared_broker)
    (record,) = consumed(shared_broker.address, first)
    assert (record.key(), record.value()) == (b"k", b"v")
    assert record.headers() == [("h", b"\1")]
    others = {(r.key(), r.value()) for r in consumed(shared_broker.address, second)}
    assert others == {(None, b"w"), (b"k", None)}
    assert not left_open(shared_broker.address)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_every_row_of_a_larger_frame_arrives_compressed(
    spark: "SparkSession", shared_broker: BrokerProcess, topics: Iterator[str], delivery: str
) -> None:
    topic = next(topics)
    frame = spark.range(30_000).selectExpr("'k' || id % 50 AS key", "CAST(id AS STRING) AS value")
    options = {"kafka.compression.type": "zstd", "kafka.batch.size": "20000"}
    save(frame, shared_broker, topic=topic, delivery=delivery, **options)
    found = committed(shared_broker.address, topic)
    assert found == {b"%d" % number: 1 for number in range(30_000)}


def test_a_failed_batch_write_leaves_nothing_for_readers_of_committed_records(
    spark: "SparkSession", shared_broker: BrokerProcess, topics: Iterator[str]
) -> None:
    topic, address = next(topics), shared_broker.address

    def fail_last(batches: Iterable["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        """The task of the bad row goes on once all of the other's are stored.

        Failed any sooner, it would have Spark kill the other before that one had done anything,
        or after the driver had cleared up behind it; its transaction ends by its timeout then.
        """
        for batch in batches:
            if 99 in batch.column("id").to_pylist():
                until_stored(address, topic, 50)
            yield batch

    frame = (
        spark.range(0, 100, 1, 2)
        .mapInArrow(fail_last, "id long")
        .selectExpr(
            "CAST(id AS STRING) AS value",
            f"IF(id = 99, CAST(NULL AS STRING), '{topic}') AS topic",
        )
    )
    said = "null topic present in the data. Use the topic option for setting a default topic."
    with pytest.raises(Exception, match=said):
        save(frame, shared_broker)
    assert not committed(shared_broker.address, topic)
    assert not left_open(shared_broker.address)


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        (["CAST(id AS STRING) AS key"], {"topic": "t"}, "Required attribute 'value' not found"),
        (["CAST(id AS STRING) AS value"], {}, "topic option required when no 'topic' attribute"),
        (
            ["CAST(id AS STRING) AS value"],
            {"topic": "t", "kafka.send.buffer.bytes": "1"},
            "kafka.send.buffer.bytes' is not honoured",
        ),
    ],
)
def test_a_frame_or_option_that_does_not_fit_is_refused_before_anything_runs(
    spark: "SparkSession",
    shared_broker: BrokerProcess,
    columns: list[str],
    options: dict[str, str],
    said: str,
) -> None:
    with pytest.raises(Exception, match=said):
        save(spark.range(1).selectExpr(*columns), shared_broker, **options)


def test_a_topic_is_not_overwritten(spark: "SparkSession", shared_broker: BrokerProcess) -> None:
    frame = spark.range(1).selectExpr("CAST(id AS STRING) AS value")
    options = {"kafka.bootstrap.servers": shared_broker.address, "topic": "t"}
    with pytest.raises(Exception, match="Save mode Overwrite not allowed"):
        frame.write.format("penstock").mode("overwrite").options(**options).save()


def test_a_stream_writes_each_row_once_over_several_runs(
    spark: "SparkSession", shared_broker: BrokerProcess, topics: Iterator[str], tmp_path: Path
) -> None:
    source, topic = next(topics), next(topics)
    for run in range(2):
        numbers = spark.range(run * 500, run * 500 + 500, 1, 1)
        save(numbers.selectExpr("CAST(id AS STRING) AS value"), shared_broker, topic=source)
        rows = (
            spark.readStream.format("penstock")
            .option("kafka.bootstrap.servers", shared_broker.address)
            .option("kafka.isolation.level", "read_committed")
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", 200)
            .load()
        )
        query = (
            rows.selectExpr("key", "value")
            .writeStream.format("penstock")
            .option("kafka.bootstrap.servers", shared_broker.address)
            .option("topic", topic)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert committed(shared_broker.address, topic) == {b"%d" % n: 1 for n in range(1000)}
    assert not left_open(shared_broker.address)
