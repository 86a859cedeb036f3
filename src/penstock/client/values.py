"""What clients hand over and get back: records, partitions, nodes, offsets, metrics.

Plain immutable values with Kafka's names, so a reader of Kafka's documentation knows them. They
know nothing of librdkafka or of the wire.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias

from penstock.client.headers import NO_HEADERS, Headers, RecordHeaders, record_headers
from penstock.records.topic_partition import TopicPartition as TopicPartition

# Without a serializer text and bytes are sent, and bytes are read. Python takes such defaults from
# 3.13 on; who checks types knows them already.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
    SentK = TypeVar("SentK", default=str | bytes, contravariant=True)
    SentV = TypeVar("SentV", default=str | bytes, contravariant=True)
    RecordK = TypeVar("RecordK", default=str | bytes, covariant=True)
    RecordV = TypeVar("RecordV", default=str | bytes, covariant=True)
else:
    from typing import TypeVar

    K, V = TypeVar("K"), TypeVar("V")
    SentK, SentV = TypeVar("SentK", contravariant=True), TypeVar("SentV", contravariant=True)
    RecordK, RecordV = TypeVar("RecordK", covariant=True), TypeVar("RecordV", covariant=True)

NO_OFFSET = -1  # What acks=0 leaves the producer with: the broker never said.


class Node(NamedTuple):
    """A broker and where it listens."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id: {self.id} rack: {self.rack or 'null'})"


class PartitionInfo(NamedTuple):
    """Where a partition lives."""

    topic: str
    partition: int
    leader: Node | None  # None: no broker leads it now.
    replicas: tuple[Node, ...]
    in_sync_replicas: tuple[Node, ...]
    offline_replicas: tuple[Node, ...] = ()


class OffsetAndMetadata(NamedTuple):
    """A position to commit: the offset of the next record to read, and a note."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp_ms: int
    leader_epoch: int | None = None

    @property
    def timestamp(self) -> int:
        """Kafka's name for timestamp_ms."""
        return self.timestamp_ms


class RecordMetadata(NamedTuple):
    """Where a record was stored."""

    topic: str
    partition: int
    offset: int  # NO_OFFSET with acks=0.
    timestamp_ms: int  # The record's own, or the broker's where the topic is set so.
    serialized_key_size: int = -1  # -1: there was no key.
    serialized_value_size: int = -1

    @property
    def timestamp(self) -> int:
        """Kafka's name for timestamp_ms."""
        return self.timestamp_ms

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class ProducerRecord(Generic[RecordK, RecordV]):
    """A record to send; without a partition, the partitioner chooses.

    `headers` may be given as a mapping, `timestamp` in place of timestamp_ms.
    """

    topic: str
    value: RecordV | None
    key: RecordK | None
    partition: int | None
    timestamp_ms: int | None  # None: the time of sending.
    headers: RecordHeaders

    def __init__(
        self,
        *,
        topic: str,
        value: RecordV | None = None,
        key: RecordK | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> None:
        if timestamp is not None:
            if timestamp_ms is not None:
                raise TypeError("timestamp and timestamp_ms are the same: give one of them")
            timestamp_ms = timestamp
        set_field = object.__setattr__
        set_field(self, "topic", topic)
        set_field(self, "value", value)
        set_field(self, "key", key)
        set_field(self, "partition", partition)
        set_field(self, "timestamp_ms", timestamp_ms)
        set_field(self, "headers", record_headers(headers) if headers else NO_HEADERS)

    @property
    def timestamp(self) -> int | None:
        """Kafka's name for timestamp_ms."""
        return self.timestamp_ms


class ConsumerRecord(NamedTuple, Generic[K, V]):
    """A record as it was read."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: str  # "CreateTime", "LogAppendTime" or "NoTimestampType".
    key: K | None
    value: V | None
    headers: RecordHeaders = NO_HEADERS
    leader_epoch: int | None = None
    serialized_key_size: int = -1
    serialized_value_size: int = -1

    @property
    def timestamp(self) -> int:
        """Kafka's name for timestamp_ms."""
        return self.timestamp_ms


class ConsumerRecords(Generic[K, V]):
    """What one poll returned: records of one or several partitions."""

    __slots__ = ("_records",)

    def __init__(self, records: Sequence[ConsumerRecord[K, V]] = ()) -> None:
        self._records = records

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def count(self) -> int:
        """How many records there are."""
        return len(self._records)

    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions they come from."""
        return frozenset(TopicPartition(r.topic, r.partition) for r in self._records)

    def records(self, source: TopicPartition | str) -> list[ConsumerRecord[K, V]]:
        """Those of one partition or one topic, in order."""
        if isinstance(source, str):
            return [r for r in self._records if r.topic == source]
        return [r for r in self._records if (r.topic, r.partition) == source]

    def __repr__(self) -> str:
        return (
            f"ConsumerRecords({len(self._records)} records of {len(self.partitions())} partitions)"
        )


@dataclass(frozen=True, slots=True)
class MetricName:
    """A metric as Kafka names it: what it is, of which group, of which client, node or topic."""

    name: str
    group: str
    description: str
    tags: tuple[tuple[str, str], ...] = ()

    def tag(self, key: str) -> str | None:
        """The value of a tag, None where the metric has no such tag."""
        return dict(self.tags).get(key)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric and its value at the moment it was asked for; nan: nothing was measured yet."""

    metric_name: MetricName
    value: float


Metrics: TypeAlias = Mapping[MetricName, Metric]
