"""`spark.readStream.format("penstock")`: what each micro-batch takes, and how it goes on."""

from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from tests.support.broker import BrokerProcess
from tests.support.spark_queries import Seen, run_available, running, stream
from tests.support.spark_topics import Topic
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

from penstock.client.admin import Admin, NewPartitions
from penstock.client.values import TopicPartition


def offsets(topic: str, partition: int, *numbers: range) -> list[tuple[str, int, int]]:
    return [(topic, partition, n) for span in numbers for n in span]


def test_a_query_of_what_is_available_reads_it_once_and_goes_on_where_it_ended(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, seen = Topic(shared_broker.port, "available", 2), Seen()
    topic.put([b"a"] * 50)
    topic.put([b"b"] * 30, partition=1)
    frame = stream(spark, shared_broker, subscribe="available", maxOffsetsPerTrigger="25")
    run_available(frame, tmp_path, seen)
    everything = offsets("available", 0, range(50)) + offsets("available", 1, range(30))
    assert seen.rows == everything
    assert sorted(len(batch) for batch in seen.batches.values()) == [5, 25, 25, 25]
    topic.put([b"c"] * 3, partition=1)
    run_available(frame, tmp_path, seen)
    assert seen.rows == everything + offsets("available", 1, range(30, 33))


def test_the_checkpoint_holds_offsets_as_sparks_own_kafka_source_writes_them(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, seen = Topic(shared_broker.port, "noted", 2), Seen()
    topic.put([b"a"] * 5)
    query = run_available(stream(spark, shared_broker, subscribe="noted"), tmp_path, seen)
    noted = (tmp_path / "offsets" / "0").read_text().splitlines()[-1]
    assert noted.replace(" ", "") == '{"noted":{"0":5,"1":0}}'
    (source,) = query.lastProgress["sources"]
    assert source["latestOffset"].replace(" ", "") == '{"noted":{"0":5,"1":0}}'


def test_partitions_and_topics_that_appear_are_read_from_their_beginning(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    first, seen = Topic(shared_broker.port, "grows.one"), Seen()
    first.put([b"a"] * 3)
    frame = stream(spark, shared_broker, subscribePattern="grows[.].*", startingOffsets="latest")
    with running(frame, tmp_path, seen) as query:
        eventually(lambda: (tmp_path / "metadata").exists() and query.lastProgress, timeout_s=120)
        Topic(shared_broker.port, "grows.two").put([b"b"] * 2)
        with Admin({"bootstrap.servers": shared_broker.address}) as admin:
            admin.create_partitions({"grows.one": NewPartitions(total_count=2)})
        first.put([b"c"] * 4, partition=1)
        wanted = offsets("grows.one", 1, range(4)) + offsets("grows.two", 0, range(2))
        eventually(lambda: seen.rows == wanted, timeout_s=120, what="the new partitions")


def test_a_batch_waits_for_enough_offsets_unless_the_delay_is_over(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, seen = Topic(shared_broker.port, "patient"), Seen()
    topic.put([b"a"])
    frame = stream(
        spark,
        shared_broker,
        subscribe="patient",
        minOffsetsPerTrigger="10",
        maxTriggerDelay="1h",
    )
    with running(frame, tmp_path, seen):
        eventually(lambda: len(seen.rows) == 1, timeout_s=120, what="the first batch")
        for _ in range(9):
            topic.put([b"b"])
        topic.put([b"c"] * 2)
        eventually(lambda: len(seen.rows) == 12, timeout_s=120, what="enough offsets")
    assert sorted(len(batch) for batch in seen.batches.values())[-1] >= 10


def failure(frame: DataFrame, checkpoint: Path) -> str:
    seen = Seen()
    with pytest.raises(StreamingQueryException) as raised:
        run_available(frame, checkpoint, seen)
    return str(raised.value)


def recreate(topic: Topic, **put: Any) -> None:
    """Delete the topic and create it with the same name, as soon as the broker allows."""
    topic.delete()

    def created() -> bool:
        with RawConnection(topic.port) as connection:
            return connection.create_topic(topic.name) == 0

    eventually(created, what="the name to be free again")
    topic.put(**put)


def test_a_topic_created_anew_under_a_running_query_is_noticed_even_when_it_is_longer(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, started, replaced = Topic(shared_broker.port, "anew"), Event(), Event()
    topic.put([b"a"] * 5)

    def hold(rows: DataFrame, batch_id: int) -> None:
        started.set()
        assert replaced.wait(60)

    frame = stream(spark, shared_broker, subscribe="anew")
    writer = frame.writeStream.option("checkpointLocation", str(tmp_path))
    query = writer.foreachBatch(hold).start()
    assert started.wait(60)
    recreate(topic, values=[b"b"] * 9)
    replaced.set()
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination(60)
    text = str(raised.value)
    assert "'anew' was deleted and created anew" in text and "failOnDataLoss" in text


def test_a_topic_created_anew_and_longer_while_the_query_was_down_is_noticed(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, seen = Topic(shared_broker.port, "meanwhile"), Seen()
    topic.put([b"a"] * 5)
    options = {"subscribe": "meanwhile", "checkpointLocation": str(tmp_path)}
    frame = stream(spark, shared_broker, **options)
    run_available(frame, tmp_path, seen)
    recreate(topic, values=[b"b"] * 9)
    text = failure(frame, tmp_path)
    assert "'meanwhile' was deleted and created anew" in text and "failOnDataLoss" in text
    seen = Seen()
    careless = stream(spark, shared_broker, failOnDataLoss="false", **options)
    run_available(careless, tmp_path, seen)
    assert seen.rows == offsets("meanwhile", 0, range(9))  # None of them was read before.
    topic.put([b"c"])
    seen = Seen()
    run_available(frame, tmp_path, seen)
    assert seen.rows == offsets("meanwhile", 0, range(9, 10))


def test_a_topic_that_is_shorter_than_what_was_read_of_it_fails_or_is_read_again(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, seen = Topic(shared_broker.port, "short"), Seen()
    topic.put([b"a"] * 5)
    quick = {"fetchOffset.numRetries": "1", "fetchOffset.retryIntervalMs": "10"}
    options = {"subscribe": "short", "commitProgress": "false", **quick}
    frame = stream(spark, shared_broker, **options)
    run_available(frame, tmp_path / "query", seen)
    recreate(topic, values=[b"b"] * 2)
    text = failure(frame, tmp_path / "query")
    assert "Topic 'short', partition 0 ends at offset 2, before offset 5" in text
    seen = Seen()
    careless = stream(spark, shared_broker, failOnDataLoss="false", **options)
    run_available(careless, tmp_path / "query", seen)
    assert seen.rows == offsets("short", 0, range(2))


def test_offsets_that_aged_out_fail_the_query_or_are_skipped(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, seen = Topic(shared_broker.port, "aged"), Seen()
    topic.put([b"a"] * 5)
    frame = stream(spark, shared_broker, subscribe="aged")
    run_available(frame, tmp_path / "query", seen)
    topic.put([b"b"] * 5)
    with Admin({"bootstrap.servers": shared_broker.address}) as admin:
        admin.delete_records({TopicPartition("aged", 0): 8})
    text = failure(frame, tmp_path / "query")
    assert "Topic 'aged', partition 0 has only offsets 8 to 10" in text
    assert "5 to 10 (exclusive) should be read" in text
    seen = Seen()
    careless = stream(spark, shared_broker, subscribe="aged", failOnDataLoss="false")
    run_available(careless, tmp_path / "query", seen)
    assert seen.rows == offsets("aged", 0, range(8, 10))


def test_a_deleted_topic_is_named(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, seen = Topic(shared_broker.port, "dropped"), Seen()
    topic.put([b"a"] * 5)
    options = {"subscribe": "dropped", "kafka.group.id": "dropper"}
    frame = stream(spark, shared_broker, **options)
    run_available(frame, tmp_path / "query", seen)
    topic.delete()
    text = failure(frame, tmp_path / "query")
    assert "Partitions are gone: Topic 'dropped', partition 0 (read up to offset 5)" in text


def test_a_query_lives_through_a_broker_that_is_killed_and_comes_back(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, seen = Topic(broker.port, "survivor"), Seen()
    topic.put([b"a"] * 5)
    with running(stream(spark, broker, subscribe="survivor"), tmp_path / "query", seen):
        eventually(lambda: len(seen.rows) == 5, timeout_s=120)
        broker.kill()
        broker.start()
        topic.put([b"b"] * 5)
        eventually(lambda: len(seen.rows) >= 10, timeout_s=120)
    assert seen.rows == offsets("survivor", 0, range(10))
