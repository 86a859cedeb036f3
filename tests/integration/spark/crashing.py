"""A streaming write played through without Spark, so that it can die at every request it makes.

`Driver` calls a StreamWriter as Spark does: each task's write, then one commit. `Plug` lets it die
in front of or behind any request to a broker; from then on the dead one sends nothing more.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.client.operations.transactions import list_transactions
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.connection import BrokerConnection
from penstock.spark.options import write_options
from penstock.spark.sink import sink
from penstock.spark.sink import task as sink_task

SCHEMA = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])
QUERY_ID = "6c9ee3c6-9a0c-4a87-b6ad-a1a4d52a3c5e"
ROWS = 30


class Dead(BaseException):
    """The process is gone. Not an Exception, so that nothing tidies up after it."""


@dataclass
class Plug:
    """Counts requests, and pulls the plug at one of them."""

    at: int | None = None  # None: never.
    is_sent_first: bool = False  # Whether the fatal request still reaches the broker.
    count: int = 0
    is_out: bool = False
    seen: list[str] = field(default_factory=list)

    def wrap(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def request(connection: BrokerConnection, message: Any, *rest: Any, **named: Any) -> Any:
            if self.is_out:
                raise Dead
            self.seen.append(type(message).__name__)
            number, self.count = self.count, self.count + 1
            if number != self.at:
                return send(connection, message, *rest, **named)
            self.is_out = True
            if self.is_sent_first:
                send(connection, message, *rest, **named)
            raise Dead

        return request


@dataclass(frozen=True)
class Context:
    """What a task asks of Spark."""

    task: int
    batch_id: int

    def partitionId(self) -> int:  # noqa: N802
        return self.task

    def getLocalProperty(self, name: str) -> str:  # noqa: N802
        return {sink._QUERY_ID: QUERY_ID, sink._BATCH_ID: str(self.batch_id)}[name]


class Driver:
    """One process that runs a query; a new one is another life."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, address: str, topic: str, plug: Plug, **options: str
    ) -> None:
        raw = {"kafka.bootstrap.servers": address, "topic": topic, **options}
        self.monkeypatch = monkeypatch
        self.writer = sink.stream_writer(write_options(raw), SCHEMA, False)
        monkeypatch.undo()
        monkeypatch.setattr(sink, "_tidied", set())
        monkeypatch.setattr(sink_task, "_clusters", {})
        monkeypatch.setattr(BrokerConnection, "request", plug.wrap(BrokerConnection.request))

    def write(self, batch_id: int, task: int, rows: Sequence[int]) -> Any:
        self.monkeypatch.setattr(sink, "_task_context", lambda: Context(task, batch_id))
        return self.writer.write(batches(batch_id, rows))

    def run(self, batch_id: int, task_count: int) -> None:
        """One batch, up to where Spark would note in its checkpoint that it is done."""
        messages = [
            self.write(batch_id, task, range(task, ROWS, task_count)) for task in range(task_count)
        ]
        self.writer.commit(messages, batch_id)


def batches(batch_id: int, rows: Sequence[int]) -> Iterator[Any]:
    """The rows of a task in two Arrow batches."""
    for part in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
        yield pa.record_batch(
            [
                pa.array([b"%d" % row for row in part], pa.binary()),
                pa.array([row_value(batch_id, row) for row in part], pa.binary()),
            ],
            names=["key", "value"],
        )


def row_value(batch_id: int, row: int) -> bytes:
    return b"%d:%d" % (batch_id, row)


def expected(batch_count: int) -> Counter[bytes]:
    """Every row once."""
    return Counter(row_value(batch, row) for batch in range(batch_count) for row in range(ROWS))


def committed(address: str, topic: str) -> Counter[bytes]:
    """The values that a reader of committed records sees, and how often."""
    return Counter(message.value() for message in consumed(address, topic))


def consumed(address: str, topic: str) -> list[confluent_kafka.Message]:
    """The committed records of a topic, by partition in their order."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=120).topics[topic].partitions
        beginning = confluent_kafka.OFFSET_BEGINNING
        consumer.assign([confluent_kafka.TopicPartition(topic, p, beginning) for p in partitions])
        found: list[confluent_kafka.Message] = []
        ended: set[int] = set()
        while len(ended) < len(partitions):
            message = consumer.poll(60)
            assert message is not None, "the topic could not be read to its end"
            if message.error() is None:
                found.append(message)
            else:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                ended.add(message.partition())
        return found
    finally:
        consumer.close()


def until_stored(address: str, topic: str, count: int) -> None:
    """Wait until so many records are in the topic's only partition, committed or not."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "watcher",
            "isolation.level": "read_uncommitted",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 100,
            "allow.auto.create.topics": True,
        }
    )
    try:
        beginning = confluent_kafka.OFFSET_BEGINNING
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, beginning)])
        left, deadline_s = count, time.monotonic() + 180
        while left and time.monotonic() < deadline_s:
            message = consumer.poll(1)
            left -= message is not None and message.error() is None
        assert not left, f"{topic} has {count - left} of {count} records"
    finally:
        consumer.close()


def left_open(address: str) -> list[str]:
    """The transactional ids that still have an open transaction."""
    with ClusterClient(address) as cluster:
        return [t.transactional_id for t in list_transactions(cluster) if t.state == "Ongoing"]
