"""The records of a topic: those that are there, and those that come, committed ones alone."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from penstock.client.consumer.consumer import Consumer
from penstock.client.operations.offsets import OffsetSpec, list_offsets
from penstock.client.operations.topics import describe_topics
from penstock.client.values import OffsetAndTimestamp, TopicPartition
from penstock.client.wire.raw_cluster import cluster_for
from penstock.errors import PenstockError

_TIMEOUT_MS = 30_000
_COLUMNS = "key,value,partition,offset,timestamp,headers"


class TopicRecord(NamedTuple):
    """A record as it lies in its topic."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def committed_records(
    client: Mapping[str, str], at: TopicPartition, begin: int, end: int
) -> Iterator[TopicRecord]:
    """Those of one partition between two offsets; what is gone is passed over."""
    from penstock.spark.options import read_options
    from penstock.spark.source.offsets import OffsetRange
    from penstock.spark.source.range_reader import read_range

    if end <= begin:
        return
    options = read_options(
        {
            **{f"kafka.{name}": value for name, value in client.items()},
            "subscribe": at.topic,
            "kafka.isolation.level": "read_committed",
            "failOnDataLoss": "false",
            "includeHeaders": "true",
            "columns": _COLUMNS,
        },
        streaming=False,
    )
    for batch in read_range(options, OffsetRange(partition=at, start=begin, end=end)):
        times = batch.column("timestamp").cast("int64").to_pylist()
        columns = [batch.column(name).to_pylist() for name in ("offset", "key", "value", "headers")]
        for micros, offset, key, value, headers in zip(times, *columns, strict=True):
            named = tuple((one["key"], one["value"]) for one in headers or ())
            yield TopicRecord(at.partition, offset, micros // 1000, key, value, named)


def edges(client: Mapping[str, str], topic: str, edge: OffsetSpec) -> dict[int, int]:
    """The first or the last offset of each partition, as who reads committed records sees it."""
    with cluster_for(client) as cluster:
        described = describe_topics(cluster, [topic])[topic]
        wanted = [TopicPartition(topic, part.partition) for part in described.partitions]
        found = list_offsets(
            cluster,
            dict.fromkeys(wanted, int(edge)),
            timeout_ms=_TIMEOUT_MS,
            read_committed=True,
        )
    made = {}
    for at, one in found.items():
        if not isinstance(one, OffsetAndTimestamp):
            raise one or PenstockError(f"{at.topic}-{at.partition} has no offsets.")
        made[at.partition] = one.offset
    return made


def present_records(client: Mapping[str, str], topic: str) -> Iterator[TopicRecord]:
    """All records of a topic up to its present end, partition by partition."""
    begins = edges(client, topic, OffsetSpec.EARLIEST)
    for partition, end in edges(client, topic, OffsetSpec.LATEST).items():
        at = TopicPartition(topic, partition)
        yield from committed_records(client, at, begins[partition], end)


class TopicTail:
    """The records of a topic as they come, from given offsets on. For one thread."""

    def __init__(self, client: Mapping[str, str], topic: str, begins: Mapping[int, int]) -> None:
        own = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        self._consumer: Consumer[bytes, bytes] = Consumer({**client, **own})
        places = [TopicPartition(topic, partition) for partition in begins]
        self._consumer.assign(places)
        for at in places:
            self._consumer.seek(at, begins[at.partition])

    def poll(self, timeout_s: float) -> list[TopicRecord]:
        """What came; empty when the time is over."""
        return [
            TopicRecord(
                one.partition, one.offset, one.timestamp, one.key, one.value, tuple(one.headers)
            )
            for one in self._consumer.poll(timeout_s)
        ]

    def close(self) -> None:
        """Leave."""
        self._consumer.close()
