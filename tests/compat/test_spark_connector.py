"""Spark's own Kafka connector against the broker, and beside ours on the same topics."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from tests.support.outside import needs
from tests.support.processes import ServerProcess
from tests.support.spark_connector import CONNECTOR
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.kafka
FIRST_MS = 1_750_000_000_000


class Bench:
    """A server, a session and the words that both need."""

    def __init__(self, spark: "SparkSession", server: ServerProcess) -> None:
        self.spark = spark
        self.server = server

    def topic(self, partitions: int = 2) -> str:
        name = f"connector-{uuid4().hex[:8]}"
        with RawConnection(self.server.port) as connection:
            assert connection.create_topic(name, partitions=partitions) == 0
        return name

    def options(self, **more: object) -> dict[str, Any]:
        return {"kafka.bootstrap.servers": self.server.address, **more}

    def read(self, topic: str, *, source: str = "kafka", **more: object) -> "DataFrame":
        options = self.options(subscribe=topic, **more)
        return self.spark.read.format(source).options(**options).load()

    def stream(self, topic: str, **more: object) -> "DataFrame":
        options = self.options(subscribe=topic, startingOffsets="earliest", **more)
        return self.spark.readStream.format("kafka").options(**options).load()

    def values(self, topic: str, **more: object) -> list[str]:
        rows = self.read(topic, **more).selectExpr("cast(value as string) value").collect()
        return sorted(row.value for row in rows)

    def put(self, topic: str, count: int, *, first: int = 0, partitions: int = 2) -> None:
        """Numbers as values, one a second, round robin."""
        producer = Producer({"bootstrap.servers": self.server.address})
        for number in range(first, first + count):
            producer.produce(
                topic,
                f"{number:04d}",
                key=f"k{number}",
                partition=number % partitions,
                timestamp=FIRST_MS + number * 1000,
                headers=[("n", str(number).encode())],
            )
        assert producer.flush(120) == 0


@pytest.fixture(scope="module")
def bench(server: ServerProcess, request: pytest.FixtureRequest) -> Bench:
    needs(CONNECTOR)  # Before a session is started for nothing.
    return Bench(request.getfixturevalue("spark"), server)


def numbers(*ranges: range) -> list[str]:
    return sorted(f"{number:04d}" for one in ranges for number in one)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_that_it_writes_it_reads_back(bench: Bench, codec: str) -> None:
    topic = bench.topic()
    rows = bench.spark.range(500).selectExpr(
        "cast(id as string) key",
        "case when id = 7 then null else concat('value ', id) end value",
        "array(named_struct('key', 'h', 'value', encode(string(id), 'utf-8'))) headers",
        "cast(id % 2 as int) partition",
    )
    sink = bench.options(topic=topic, includeHeaders=True)
    rows.write.format("kafka").options(**sink, **{"kafka.compression.type": codec}).save()
    found = bench.read(topic, includeHeaders=True).collect()
    assert len(found) == 500
    for row in found:
        number = int(row.key)
        assert row.value == (None if number == 7 else f"value {number}".encode())
        assert row.partition == number % 2
        assert [(h.key, bytes(h.value)) for h in row.headers] == [("h", str(number).encode())]
    assert sorted(row.offset for row in found if row.partition == 0) == list(range(250))


def test_ours_and_it_read_the_same_rows(bench: Bench) -> None:
    topic = bench.topic()
    bench.put(topic, 300)
    both = [bench.read(topic, source=name, includeHeaders=True) for name in ("kafka", "penstock")]
    assert both[0].schema == both[1].schema
    rows = [sorted(frame.collect(), key=lambda r: (r.partition, r.offset)) for frame in both]
    assert len(rows[0]) == 300
    assert rows[0] == rows[1]


def test_what_ours_writes_it_reads(bench: Bench) -> None:
    topic = bench.topic()
    rows = bench.spark.range(200).selectExpr("string(id) key", "lpad(string(id), 4, '0') value")
    sink = rows.write.format("penstock").mode("append")
    sink.options(**bench.options(topic=topic)).save()
    assert bench.values(topic) == numbers(range(200))


def test_offsets_bound_a_batch(bench: Bench) -> None:
    topic = bench.topic()
    bench.put(topic, 100)
    found = bench.values(
        topic,
        startingOffsets=json.dumps({topic: {"0": 10, "1": -2}}),
        endingOffsets=json.dumps({topic: {"0": 20, "1": -1}}),
        minPartitions=6,
    )
    assert found == numbers(range(20, 40, 2), range(1, 100, 2))


def test_times_bound_a_batch(bench: Bench) -> None:
    topic = bench.topic()
    bench.put(topic, 100)
    whole = bench.values(topic, startingTimestamp=FIRST_MS + 40_000)
    assert whole == numbers(range(40, 100))
    each = bench.values(
        topic,
        startingOffsetsByTimestamp=json.dumps(
            {topic: {"0": FIRST_MS + 10_000, "1": FIRST_MS + 50_500}}
        ),
        endingOffsetsByTimestamp=json.dumps(
            {topic: {"0": FIRST_MS + 20_000, "1": FIRST_MS + 60_000}}
        ),
    )
    assert each == numbers(range(10, 20, 2), range(51, 60, 2))


def test_a_stream_from_topic_to_topic_goes_on_where_it_was(bench: Bench, tmp_path: Path) -> None:
    source, target = bench.topic(), bench.topic()

    def run() -> None:
        sink = bench.options(topic=target, checkpointLocation=str(tmp_path / "checkpoint"))
        stream = bench.stream(source, maxOffsetsPerTrigger=40).select("key", "value")
        query = stream.writeStream.format("kafka").options(**sink).trigger(availableNow=True)
        query.start().awaitTermination()

    bench.put(source, 100)
    run()
    assert bench.values(target) == numbers(range(100))
    bench.put(source, 50, first=100)
    run()
    assert bench.values(target) == numbers(range(150))


def test_a_running_stream_sees_records_as_they_come(bench: Bench) -> None:
    topic, table = bench.topic(), f"seen_{uuid4().hex[:8]}"
    stream = bench.stream(topic).selectExpr("cast(value as string) value")
    query = stream.writeStream.format("memory").queryName(table).outputMode("append").start()
    try:
        for step in range(3):
            bench.put(topic, 10, first=step * 10)
            eventually(
                lambda end=step * 10 + 10: (  # type: ignore[misc]
                    sorted(row.value for row in bench.spark.table(table).collect())
                    == numbers(range(end))
                ),
                timeout_s=120,
                what="the records of the stream",
            )
    finally:
        query.stop()


def test_read_committed_leaves_out_what_was_aborted_or_is_open(bench: Bench) -> None:
    topic = bench.topic(1)
    producers = []
    for place, end in enumerate(["commit", "abort", "commit", "open"]):
        producer = Producer(
            {"bootstrap.servers": bench.server.address, "transactional.id": f"{topic}-{place}"}
        )
        producer.init_transactions(120)
        producer.begin_transaction()
        for number in range(10):
            producer.produce(topic, f"{place * 10 + number:04d}", partition=0)
        producer.flush(120)
        if end == "commit":
            producer.commit_transaction(120)
        elif end == "abort":
            producer.abort_transaction(120)
        producers.append(producer)
    level = "kafka.isolation.level"
    committed = numbers(range(10), range(20, 30))
    assert bench.values(topic) == numbers(range(40))
    assert bench.values(topic, **{level: "read_committed"}) == committed
    options = bench.options(subscribe=topic, startingOffsets="earliest")
    options[level] = "read_committed"
    table = f"committed_{uuid4().hex[:8]}"
    stream = bench.spark.readStream.format("kafka").options(**options).load()
    query = stream.selectExpr("cast(value as string) value").writeStream.format("memory")
    query.queryName(table).trigger(availableNow=True).start().awaitTermination()
    assert sorted(row.value for row in bench.spark.table(table).collect()) == committed
    producers[-1].abort_transaction(120)
