"""What was found of a cluster at one moment: its brokers, their disks, and the partitions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.client.values import Node, TopicPartition

if TYPE_CHECKING:
    from penstock.client.operations.reassignments import PartitionReassignment

_FULL_BELOW_BYTES = 1 << 20  # About the largest batch that brokers take by default.
_NEARLY_FULL_SHARE = 0.05
_NEARLY_FULL_BELOW_BYTES = 10 << 30  # More is plenty on the largest disk.


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
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
class DirectoryState:
    """A data directory, and the room that its disk has for records."""

    path: str
    total_bytes: int
    usable_bytes: int

    @property
    def is_full(self) -> bool:
        return self.usable_bytes < min(_FULL_BELOW_BYTES, self.total_bytes)

    @property
    def is_nearly_full(self) -> bool:
        share = self.total_bytes * _NEARLY_FULL_SHARE
        return not self.is_full and self.usable_bytes < min(share, _NEARLY_FULL_BELOW_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """What one broker said, or that it said nothing."""

    node: Node
    is_fenced: bool
    ends: Mapping[TopicPartition, int]  # Of the replicas it holds.
    size_bytes: int | None = None
    failures: Sequence[str] = ()
    directories: Sequence[DirectoryState] = ()  # As far as they work and tell their size.


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """A cluster at one moment."""

    cluster_id: str
    controller_id: int | None
    brokers: tuple[BrokerState, ...]
    topic_count: int
    partitions: tuple[PartitionStatus, ...]
    moves: "Mapping[TopicPartition, PartitionReassignment]" = field(default_factory=dict)

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
