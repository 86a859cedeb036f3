"""How a cluster is: gathered from its brokers, then judged.

Gathering asks and may find a broker silent; judging is a pure function of what was found, so that
every kind of trouble can be tested without making it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.client.admin import Admin
from penstock.client.errors import ClientError
from penstock.client.operations.brokers import BrokerDescription
from penstock.client.operations.configs import ConfigResource, ResourceType
from penstock.client.operations.reassignments import PartitionReassignment
from penstock.client.operations.replica_ends import replica_ends
from penstock.client.operations.topics import TopicDescription
from penstock.client.values import Node, TopicPartition
from penstock.errors import ProtocolError, UnsupportedVersion

_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """Who should and who does look after a partition."""

    at: TopicPartition
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    isr_min: int

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def is_under_min_isr(self) -> bool:
        return len(self.isr) < self.isr_min

    @property
    def is_at_min_isr(self) -> bool:
        """One more loss and acks=all is refused; not where nothing else was wanted."""
        return len(self.isr) == self.isr_min and self.is_under_replicated


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """What one broker said, or that it said nothing."""

    node: Node
    is_fenced: bool
    ends: Mapping[TopicPartition, int]  # Of the replicas it holds.
    size_bytes: int | None = None
    failures: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """A cluster at one moment."""

    cluster_id: str
    controller_id: int | None
    brokers: tuple[BrokerState, ...]
    topic_count: int
    partitions: tuple[PartitionState, ...]
    moves: Mapping[TopicPartition, PartitionReassignment] = field(default_factory=dict)

    def leaders(self) -> Counter[int]:
        """How many partitions each broker leads."""
        return Counter(p.leader for p in self.partitions if p.leader is not None)

    def preferred(self) -> Counter[int]:
        """How many it would lead if every partition had its first replica as leader."""
        return Counter(p.replicas[0] for p in self.partitions if p.replicas)

    def replicas(self) -> Counter[int]:
        """How many partitions each broker holds a copy of."""
        return Counter(broker for p in self.partitions for broker in p.replicas)

    def out_of_sync(self) -> Counter[int]:
        """How many of its copies are not in sync."""
        return Counter(b for p in self.partitions for b in p.replicas if b not in p.isr)

    def lag(self, broker: BrokerState) -> int | None:
        """Records its followers are behind their leaders; None: it, or a leader, did not tell."""
        if broker.failures:
            return None
        ends = {one.node.id: one.ends for one in self.brokers}
        behind = 0
        for partition in self.partitions:
            leader, mine = partition.leader, broker.node.id
            if leader is None or leader == mine or mine not in partition.replicas:
                continue
            there = ends.get(leader, {}).get(partition.at)
            if there is not None:
                behind += max(0, there - broker.ends.get(partition.at, 0))
        return behind


def problems(state: ClusterState) -> list[str]:
    """What is wrong, the worst first; empty: nothing is."""
    return [
        *_about_partitions(state.partitions),
        *_about_brokers(state),
    ]


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


def _about_partitions(partitions: Sequence[PartitionState]) -> list[str]:
    offline = [p.at for p in partitions if p.leader is None]
    under_min = [p.at for p in partitions if p.is_under_min_isr and p.leader is not None]
    at_min = [p.at for p in partitions if p.is_at_min_isr and p.leader is not None]
    counted = {*offline, *under_min, *at_min}
    under = [p.at for p in partitions if p.is_under_replicated and p.at not in counted]
    told = [
        (offline, "no leader, so nobody can read or write them"),
        (under_min, "fewer replicas in sync than min.insync.replicas: acks=all is refused"),
        (at_min, "just min.insync.replicas in sync: one more loss and acks=all is refused"),
        (under, "replicas that are not in sync"),
    ]
    return [f"{_counted(ats)} with {what}: {_named(ats)}" for ats, what in told if ats]


def _about_brokers(state: ClusterState) -> list[str]:
    known = {broker.node.id for broker in state.brokers}
    held = state.replicas()
    told = []
    for broker_id in sorted(set(held) - known):
        count = f"{held[broker_id]} partition{_s(held[broker_id])}"
        told.append(f"broker {broker_id} is gone; {count} had a replica there")
    for broker in state.brokers:
        if broker.is_fenced:
            told.append(f"broker {broker.node.id} is fenced: it is registered but may not lead")
        told += [f"broker {broker.node.id}: {failure}" for failure in broker.failures]
    if state.controller_id is None:
        told.append("there is no controller, so nobody elects leaders or creates topics")
    return told


def _named(partitions: Sequence[TopicPartition]) -> str:
    shown = ", ".join(str(at) for at in partitions[:_NAMES_SHOWN])
    more = len(partitions) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _counted(partitions: Sequence[TopicPartition]) -> str:
    return f"{len(partitions)} partition{_s(len(partitions))}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _partitions(
    topics: Iterable[TopicDescription], isr_min: Mapping[str, int]
) -> Iterable[PartitionState]:
    for topic in topics:
        for part in topic.partitions:
            replicas = tuple(node.id for node in part.replicas)
            yield PartitionState(
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
    admin: Admin, described: BrokerDescription, partitions: Sequence[PartitionState]
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
    )


def _moves(admin: Admin) -> dict[TopicPartition, PartitionReassignment]:
    try:
        return admin.list_partition_reassignments()
    except UnsupportedVersion:
        return {}  # A broker alone may not serve this request: there is nowhere to move to.
