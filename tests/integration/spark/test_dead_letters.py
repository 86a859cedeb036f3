"""Dead letters: written with the results in one transaction, listed, and replayed."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from tests.support import batches
from tests.support.broker import BrokerProcess
from tests.support.spark_topics import FIRST_MS, Topic
from tests.support.wire import RawConnection

from penstock.pipelines import declaration as pipelines
from penstock.pipelines.queries import dead_letters_of, topic_frame
from penstock.schemas.dead_letters import cause_of, own_headers
from penstock.spark import formats

ORDERS = formats.Json("id long, cents long")


class Found(NamedTuple):
    """A record as librdkafka read it."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def read_all(broker: BrokerProcess, topic: str) -> list[Found]:
    """All committed records of a topic with one partition, to its very end."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "test-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    found: list[Found] = []
    try:
        beginning = confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)
        consumer.assign([beginning])
        while True:
            message = consumer.poll(30)
            assert message is not None, f"the end of {topic} did not come"
            if message.error() is not None:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                return found
            found.append(Found(message.key(), message.value(), message.headers() or []))
    finally:
        consumer.close()


def stream(spark: SparkSession, broker: BrokerProcess, topic: str, **options: str) -> DataFrame:
    reader = spark.readStream.format("penstock").option("subscribe", topic)
    reader = reader.option("kafka.bootstrap.servers", broker.address)
    return reader.options(startingOffsets="earliest", includeHeaders="true", **options).load()


def decoded(source: DataFrame, topic: str) -> DataFrame:
    letter = formats.DeadLetter(topic, pipeline="revenue")
    return formats.decode(source, ORDERS, on_error="dead-letter", dead_letter=letter)


def run(frame: DataFrame, broker: BrokerProcess, checkpoint: Path) -> None:
    writer = frame.writeStream.format("penstock").option("checkpointLocation", str(checkpoint))
    writer = writer.option("kafka.bootstrap.servers", broker.address)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(300)


def values(count: int) -> list[bytes]:
    """Every third one is broken."""
    return [
        b"broken %d" % n if n % 3 == 2 else json.dumps({"id": n, "cents": 10 * n}).encode()
        for n in range(count)
    ]


def test_a_dead_letter_is_the_record_with_the_reason_in_its_headers(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    for name in ("told", "told.out", "told.dead"):
        Topic(shared_broker.port, name)
    topic = Topic(shared_broker.port, "told.in")
    own = [("trace", b"\x00\xff"), ("empty", None)]
    topic.put([b'{"id": 1}', b"\xff{", None], key=b"k1", headers=own)
    split = decoded(stream(spark, shared_broker, "told.in"), "told.dead")
    run(formats.encode(split, ORDERS, topic="told.out"), shared_broker, tmp_path)
    (letter,) = read_all(shared_broker, "told.dead")
    assert (letter.key, letter.value) == (b"k1", b"\xff{")
    assert own_headers(letter.headers) == own
    cause = cause_of(letter.headers)
    assert (cause.topic, cause.partition, cause.offset) == ("told.in", 0, 1)
    assert (cause.pipeline, cause.stage) == ("revenue", "VALUE_CONVERTER")
    assert cause.error_class == "penstock.schemas.errors.DecodeError"
    assert cause.message == "the JSON is not UTF-8: invalid start byte at byte 0"
    assert cause.timestamp_ms == FIRST_MS + 1
    good = read_all(shared_broker, "told.out")
    assert [(r.key, r.value) for r in good] == [(b"k1", b'{"id":1}'), (b"k1", None)]
    assert all(record.headers == own for record in good)


def test_a_query_with_state_keeps_its_dead_letters_beside_its_results(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    for name in ("sums.out", "sums.dead"):
        Topic(shared_broker.port, name)
    Topic(shared_broker.port, "sums.in").put(values(30) * 2)
    split = decoded(stream(spark, shared_broker, "sums.in"), "sums.dead")
    once = formats.good(split).select("value.*").dropDuplicates(["id"])
    records = formats.encode(once, formats.Json())
    run(formats.with_dead_letters(records, split, topic="sums.out"), shared_broker, tmp_path)
    found = [json.loads(r.value or b"")["id"] for r in read_all(shared_broker, "sums.out")]
    assert sorted(found) == [n for n in range(30) if n % 3 != 2]
    dead = [cause_of(r.headers).offset for r in read_all(shared_broker, "sums.dead")]
    assert sorted(n for n in dead if n is not None) == [n for n in range(60) if n % 30 % 3 == 2]


def test_a_batch_that_fails_after_dead_letters_were_written_leaves_none_and_doubles_none(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    """One task dies after another has written; the batch is run again by a new query."""
    for name in ("torn.out", "torn.dead"):
        Topic(shared_broker.port, name)
    source = Topic(shared_broker.port, "torn.in", 2)
    source.put(values(30))
    source.put(values(30), partition=1)
    checkpoint = tmp_path / "checkpoint"
    fuse = tmp_path / "fuse"
    fuse.touch()
    path = str(fuse)

    def explode_late(batches: Any) -> Any:
        for batch in batches:
            yield batch
            if 1 in batch["partition"].to_pylist() and Path(path).exists():
                raise RuntimeError("the fuse is lit")

    frame = stream(spark, shared_broker, "torn.in", maxOffsetsPerTrigger="40")
    split = decoded(frame.mapInArrow(explode_late, frame.schema), "torn.dead")
    records = formats.encode(split, ORDERS, topic="torn.out")
    with pytest.raises(StreamingQueryException, match="the fuse is lit"):
        run(records, shared_broker, checkpoint)
    assert read_all(shared_broker, "torn.dead") == read_all(shared_broker, "torn.out") == []
    fuse.unlink()
    run(records, shared_broker, checkpoint)
    dead = sorted((cause_of(r.headers).origin) for r in read_all(shared_broker, "torn.dead"))
    assert dead == sorted(f"torn.in-{p}@{n}" for p in (0, 1) for n in range(2, 30, 3))
    ids = sorted(json.loads(r.value or b"")["id"] for r in read_all(shared_broker, "torn.out"))
    assert ids == sorted([n for n in range(30) if n % 3 != 2] * 2)


def test_a_batch_that_cannot_be_read_costs_a_pipeline_only_its_own_records(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    """As the queries of `penstock pipeline run` read it: one for the rows, one for the rest."""
    for name in ("unread.out", "unread.dead"):
        Topic(shared_broker.port, name)
    topic = Topic(shared_broker.port, "unread.in")
    topic.put([b'{"id": 0}'])
    damaged = batches.batch([b"", b""], attributes=1, records=b"\x1f\x8bno gzip")
    with RawConnection(shared_broker.port) as connection:
        connection.produce_one("unread.in", damaged)
    topic.put([b"broken", b'{"id": 4}'])
    source = pipelines.Topic("unread.in", value="id long", dead_letter="unread.dead")
    settings = {"bootstrap.servers": shared_broker.address}
    places = [{"group": name, "checkpoint": tmp_path / name} for name in ("rows", "dead")]
    rows = topic_frame(spark, source, settings=settings, **places[0]).select("id")
    output = formats.encode(rows.selectExpr("struct(id) AS value"), formats.Json())
    run(output.selectExpr("'unread.out' AS topic", "value"), shared_broker, tmp_path / "rows")
    output = pipelines.DeadLetters("unread.dead", source)
    letters = dead_letters_of(spark, output, settings=settings, **places[1])
    run(letters, shared_broker, tmp_path / "dead")
    found = [json.loads(r.value or b"")["id"] for r in read_all(shared_broker, "unread.out")]
    assert found == [0, 4]
    dead = read_all(shared_broker, "unread.dead")
    assert [(r.value, cause_of(r.headers).origin) for r in dead] == [
        (None, "unread.in-0@1..2"),
        (b"broken", "unread.in-0@3"),
    ]
    reader = spark.read.format("penstock").option("subscribe", "unread.in")
    reader = reader.option("kafka.bootstrap.servers", shared_broker.address)
    nulls = reader.option("onUnreadableBatch", "null").load().select("offset", "value").collect()
    assert [(row.offset, row.value is None) for row in nulls] == [
        (0, False),
        (1, True),
        (3, False),
        (4, False),
    ]
    with pytest.raises(Exception, match=r"unread.in-0 with the offsets 1 to 2 cannot be read"):
        reader.option("onUnreadableBatch", "fail").load().collect()


def test_key_and_value_decoded_together_leave_both_unchanged_in_a_dead_letter(
    spark: SparkSession, shared_broker: BrokerProcess
) -> None:
    topic = Topic(shared_broker.port, "pairs")
    topic.put([b'{"id": 1}'], key=b"\x00" * 8)
    topic.put([b'{"id": 2}'], key=b"short")
    topic.put([b"broken"], key=b"\x00" * 7 + b"\x05")
    reader = spark.read.format("penstock").option("subscribe", "pairs")
    source = reader.option("kafka.bootstrap.servers", shared_broker.address).load()
    split = formats.decode(
        source,
        ORDERS,
        key=formats.Raw("long"),
        on_error="dead-letter",
        dead_letter=formats.DeadLetter("pairs.dead"),
    )
    assert [(row.key, row.value.id) for row in formats.good(split).collect()] == [(0, 1)]
    letters = formats.dead_letters(split).collect()
    assert [(row.topic, bytes(row.key), bytes(row.value)) for row in letters] == [
        ("pairs.dead", b"short", b'{"id": 2}'),
        ("pairs.dead", b"\x00" * 7 + b"\x05", b"broken"),
    ]
    stages = [cause_of((h.key, bytes(h.value)) for h in row.headers).stage for row in letters]
    assert stages == ["KEY_CONVERTER", "VALUE_CONVERTER"]
    nulls = [(row.key, row.value) for row in split.where("dead_letter is not null").collect()]
    assert nulls == [(None, None), (None, None)]
