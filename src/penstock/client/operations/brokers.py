"""The cluster itself: its brokers, what they speak, their disks, the producers they remember."""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.client.errors import ClientError
from penstock.client.values import Node, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import ProtocolError, error_for
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.api_versions import ApiVersionsResponse
from penstock.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from penstock.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDescription:
    """A broker; a fenced one is registered but may not lead."""

    node: Node
    is_fenced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """A cluster and its brokers."""

    cluster_id: str | None
    controller: Node | None
    brokers: tuple[BrokerDescription, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSize:
    """A partition in a data directory."""

    partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirDescription:
    """A data directory of a broker."""

    path: str
    error: ProtocolError | None
    replicas: tuple[ReplicaSize, ...]
    total_bytes: int | None
    usable_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerDescription:
    """An idempotent producer that a partition remembers."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    transaction_start_offset: int | None


def describe_cluster(cluster: ClusterClient) -> ClusterDescription:
    """The cluster id, the controller and the brokers."""
    if not cluster.any_connection().versions(ApiKey.DESCRIBE_CLUSTER):
        return _described_by_metadata(cluster)
    answer = cluster.ask_any(DescribeClusterRequest(), DescribeClusterResponse)
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message or "")
    brokers = tuple(
        BrokerDescription(node=Node(b.broker_id, b.host, b.port, b.rack), is_fenced=b.is_fenced)
        for b in sorted(answer.brokers, key=lambda b: b.broker_id)
    )
    nodes = {broker.node.id: broker.node for broker in brokers}
    return ClusterDescription(
        cluster_id=answer.cluster_id, controller=nodes.get(answer.controller_id), brokers=brokers
    )


def api_versions(cluster: ClusterClient) -> dict[Node, ApiVersionsResponse | ClientError]:
    """What each broker speaks; an error stands for one that does not answer."""
    spoken: dict[Node, ApiVersionsResponse | ClientError] = {}
    for broker in describe_cluster(cluster).brokers:
        try:
            spoken[broker.node] = cluster.node_connection(broker.node.id).api_versions
        except ClientError as error:
            spoken[broker.node] = error
    return spoken


def describe_log_dirs(
    cluster: ClusterClient, broker_ids: Iterable[int] | None = None
) -> dict[int, list[LogDirDescription]]:
    """The data directories of brokers, or of all."""
    cluster.metadata([])
    wanted = sorted(cluster.nodes if broker_ids is None else broker_ids)
    return {broker_id: _log_dirs_of(cluster, broker_id) for broker_id in wanted}


def _described_by_metadata(cluster: ClusterClient) -> ClusterDescription:
    answer = cluster.metadata([])
    nodes = sorted(cluster.nodes.values())
    controller = None if cluster.controller_id is None else cluster.nodes.get(cluster.controller_id)
    return ClusterDescription(
        cluster_id=answer.cluster_id,
        controller=controller,
        brokers=tuple(BrokerDescription(node=node) for node in nodes),
    )


def _log_dirs_of(cluster: ClusterClient, broker_id: int) -> list[LogDirDescription]:
    request = DescribeLogDirsRequest(topics=None)
    answer = cluster.ask_node(broker_id, request, DescribeLogDirsResponse)
    if answer.error_code:
        raise error_for(answer.error_code)
    return [_log_dir(result) for result in answer.results]


def _log_dir(result: DescribeLogDirsResult) -> LogDirDescription:
    return LogDirDescription(
        path=result.log_dir,
        error=error_for(result.error_code) if result.error_code else None,
        replicas=tuple(
            ReplicaSize(
                partition=TopicPartition(topic.name, part.partition_index),
                size_bytes=part.partition_size,
                offset_lag=part.offset_lag,
                is_future=part.is_future_key,
            )
            for topic in result.topics
            for part in topic.partitions
        ),
        total_bytes=_or_none(result.total_bytes),
        usable_bytes=_or_none(result.usable_bytes),
    )


def _or_none(value: int) -> int | None:
    return value if value >= 0 else None
