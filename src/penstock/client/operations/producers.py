"""The producers that partitions remember, of many partitions at once or on one broker."""

from collections.abc import Iterator, Sequence

from penstock.client.operations.brokers import ProducerDescription
from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import ProtocolError, error_for
from penstock.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)

PARTITIONS_MAX = 500  # In one request: a broker of thousands must not stall over one answer.


def partition_producers(
    cluster: ClusterClient, partitions: Sequence[TopicPartition], *, broker_id: int | None = None
) -> Iterator[dict[TopicPartition, list[ProducerDescription] | ProtocolError]]:
    """The producers of partitions, as their leaders or one broker know them, answer by answer."""
    if broker_id is None:
        by_node: dict[int, list[TopicPartition]] = {}
        for at, node in cluster.leaders(partitions).items():
            by_node.setdefault(node, []).append(at)
    else:
        by_node = {broker_id: list(partitions)}
    for node, its in by_node.items():
        for start in range(0, len(its), PARTITIONS_MAX):
            yield _ask(cluster, node, its[start : start + PARTITIONS_MAX])


def describe_producers(
    cluster: ClusterClient, partitions: Sequence[TopicPartition], *, broker_id: int | None = None
) -> dict[TopicPartition, list[ProducerDescription]]:
    """The producers of all these partitions; the first that cannot be asked is raised."""
    described: dict[TopicPartition, list[ProducerDescription]] = {}
    for found in partition_producers(cluster, partitions, broker_id=broker_id):
        for at, result in found.items():
            if isinstance(result, ProtocolError):
                raise result
            described[at] = result
    return described


def _ask(
    cluster: ClusterClient, node_id: int, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, list[ProducerDescription] | ProtocolError]:
    topics: dict[str, list[int]] = {}
    for at in partitions:
        topics.setdefault(at.topic, []).append(at.partition)
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=its) for name, its in topics.items()]
    )
    answer = cluster.ask_node(node_id, request, DescribeProducersResponse)
    return {
        TopicPartition(topic.name, part.partition_index): _described(part)
        for topic in answer.topics
        for part in topic.partitions
    }


def _described(part: PartitionResponse) -> list[ProducerDescription] | ProtocolError:
    if part.error_code:
        return error_for(part.error_code, part.error_message or "")
    return [
        ProducerDescription(
            producer_id=p.producer_id,
            producer_epoch=p.producer_epoch,
            coordinator_epoch=p.coordinator_epoch,
            last_sequence=p.last_sequence,
            last_timestamp_ms=p.last_timestamp,
            transaction_start_offset=(
                p.current_txn_start_offset if p.current_txn_start_offset >= 0 else None
            ),
        )
        for p in part.active_producers
    ]
