"""Ask a cluster how it is: first as a whole, then each broker; one may be silent."""

from collections.abc import Iterable, Mapping, Sequence

from penstock.client.admin import Admin
from penstock.client.errors import ClientError
from penstock.client.operations.brokers import BrokerDescription
from penstock.client.operations.configs import ConfigResource, ResourceType
from penstock.client.operations.reassignments import PartitionReassignment
from penstock.client.operations.replica_ends import replica_ends
from penstock.client.operations.topics import TopicDescription
from penstock.client.values import TopicPartition
from penstock.errors import ProtocolError, UnsupportedVersion
from penstock.status.values import BrokerState, ClusterState, DirectoryState, PartitionStatus


def gather(admin: Admin) -> ClusterState:
    """Ask the cluster, then each broker; a broker that does not answer is part of the answer."""
    cluster = admin.describe_cluster()
    topics = admin.describe_topics([listing.name for listing in admin.list_topics()])
    isr_min = _isr_min(admin, list(topics))
    partitions = tuple(_partitions(topics.values(), isr_min))
    return ClusterState(
        cluster_id=cluster.cluster_id or "",
        controller_id=None if cluster.controller is None else cluster.controller.id,
        brokers=tuple(_broker(admin, broker, partitions) for broker in cluster.brokers),
        topic_count=len(topics),
        partitions=partitions,
        moves=_moves(admin),
    )


def _partitions(
    topics: Iterable[TopicDescription], isr_min: Mapping[str, int]
) -> Iterable[PartitionStatus]:
    for topic in topics:
        for part in topic.partitions:
            replicas = tuple(node.id for node in part.replicas)
            yield PartitionStatus(
                at=TopicPartition(topic.name, part.partition),
                leader=None if part.leader is None else part.leader.id,
                leader_epoch=part.leader_epoch,
                replicas=replicas,
                isr=tuple(node.id for node in part.isr),
                elr=part.elr or (),
                # A topic cannot have more in sync than it has.
                isr_min=min(isr_min.get(topic.name, 1), len(replicas)),
            )


def _isr_min(admin: Admin, topics: Sequence[str]) -> dict[str, int]:
    if not topics:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    found = admin.describe_configs(resources, synonyms=False)
    return {
        resource.name: int(entry.value or 1)
        for resource, entries in found.items()
        for entry in entries
        if entry.name == "min.insync.replicas"
    }


def _broker(
    admin: Admin, described: BrokerDescription, partitions: Sequence[PartitionStatus]
) -> BrokerState:
    node = described.node
    try:
        directories = admin.describe_log_dirs([node.id])[node.id]
        mine = [p.at for p in partitions if node.id in p.replicas]
        ends = replica_ends(admin.cluster, node.id, mine)
    except (ClientError, ProtocolError) as error:
        return BrokerState(
            node=node, is_fenced=described.is_fenced, ends={}, failures=(str(error),)
        )
    failures = [f"directory {d.path}: {d.error}" for d in directories if d.error is not None]
    return BrokerState(
        node=node,
        is_fenced=described.is_fenced,
        ends=ends,
        size_bytes=sum(r.size_bytes for d in directories for r in d.replicas),
        failures=tuple(failures),
        directories=tuple(
            DirectoryState(path=d.path, total_bytes=d.total_bytes, usable_bytes=d.usable_bytes)
            for d in directories
            if d.error is None and d.total_bytes is not None and d.usable_bytes is not None
        ),
    )


def _moves(admin: Admin) -> dict[TopicPartition, PartitionReassignment]:
    try:
        return admin.list_partition_reassignments()
    except UnsupportedVersion:
        return {}  # A broker alone may not serve this request: there is nowhere to move to.
