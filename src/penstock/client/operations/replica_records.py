"""Record batches as single replicas hold them, followers included: for comparing replicas.

A consumer reads from the leader and up to the high watermark. The debugging consumer of the
protocol (replica id -2) may ask any replica, and gets all that it has.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.client.errors import BrokerUnreachableError, KafkaTimeoutError
from penstock.client.operations.reassignments import by_topic
from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.connection import BrokerConnection, Posted
from penstock.errors import ErrorCode, ProtocolError, UnsupportedVersion, error_for
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

_DEBUGGING_CONSUMER = -2
_BY_NAME_UNTIL = 12  # Later versions of Fetch name topics by id.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRecords:
    """What one replica has from an offset on."""

    records: memoryview
    high_watermark: int  # As this replica knows it.
    error: ProtocolError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaReads:
    """How much to ask for at once, and how long a broker may wait for new records."""

    fetch_bytes: int = 1024 * 1024  # Of each partition.
    max_wait_ms: int = 1000


def read_replicas(
    cluster: ClusterClient,
    wanted: Mapping[int, Mapping[TopicPartition, int]],
    reads: ReplicaReads,
) -> dict[int, dict[TopicPartition, ReplicaRecords]]:
    """Records of partitions from offsets on, by broker; a broker that is gone is left out.

    All brokers are asked before the first answer is taken, so they wait side by side.
    """
    posted: dict[int, tuple[BrokerConnection, Posted]] = {}
    for broker_id, connection in _connections(cluster, wanted).items():
        try:
            posted[broker_id] = (connection, _post(connection, wanted[broker_id], reads))
        except (BrokerUnreachableError, KafkaTimeoutError):
            _forget(cluster, broker_id, connection)
    found: dict[int, dict[TopicPartition, ReplicaRecords]] = {}
    for broker_id, (connection, question) in posted.items():
        try:
            found[broker_id] = _take(connection, question, reads)
        except (BrokerUnreachableError, KafkaTimeoutError):
            _forget(cluster, broker_id, connection)
    return found


def _connections(cluster: ClusterClient, broker_ids: Iterable[int]) -> dict[int, BrokerConnection]:
    """All before the first question: looking for a broker asks on these same connections."""
    found: dict[int, BrokerConnection] = {}
    for broker_id in broker_ids:
        try:
            found[broker_id] = cluster.node_connection(broker_id)
        except (BrokerUnreachableError, KafkaTimeoutError):
            cluster.nodes.pop(broker_id, None)
    return found


def _forget(cluster: ClusterClient, broker_id: int, connection: BrokerConnection) -> None:
    """It may come back at another address."""
    cluster.drop(connection)
    cluster.nodes.pop(broker_id, None)


def _post(
    connection: BrokerConnection, offsets: Mapping[TopicPartition, int], reads: ReplicaReads
) -> Posted:
    spoken = [v for v in connection.versions(ApiKey.FETCH) if v <= _BY_NAME_UNTIL]
    if not spoken:
        raise UnsupportedVersion(f"The broker {connection.address} serves no Fetch by topic name.")
    topics = [
        FetchTopic(
            topic=topic,
            partitions=[
                FetchPartition(
                    partition=index,
                    fetch_offset=offsets[TopicPartition(topic, index)],
                    partition_max_bytes=reads.fetch_bytes,
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(offsets).items()
    ]
    request = FetchRequest(
        replica_id=_DEBUGGING_CONSUMER,
        max_wait_ms=reads.max_wait_ms,
        min_bytes=1,
        topics=topics,
    )
    return connection.post(request, spoken[-1])


def _take(
    connection: BrokerConnection, question: Posted, reads: ReplicaReads
) -> dict[TopicPartition, ReplicaRecords]:
    timeout_s = connection.timeout_s + reads.max_wait_ms / 1000
    answer = connection.take(question, timeout_s=timeout_s)
    assert isinstance(answer, FetchResponse)
    if answer.error_code:
        raise error_for(answer.error_code, f"{connection.address} refused to be compared.")
    return {
        TopicPartition(topic.topic, part.partition_index): _records(part)
        for topic in answer.responses
        for part in topic.partitions
    }


def _records(part: PartitionData) -> ReplicaRecords:
    records = part.records
    return ReplicaRecords(
        records=records if isinstance(records, memoryview) else memoryview(b""),
        high_watermark=part.high_watermark,
        error=None if part.error_code == ErrorCode.NONE else error_for(part.error_code),
    )
