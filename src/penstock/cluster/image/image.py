"""The cluster as one immutable value, and the small changes that lead from one to the next.

Everything that answers a request reads an image; only the controller makes new ones. Nothing in
here is ever modified after it was published, so a reader may keep an image across an `await`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from penstock.security.acls.index import Entries
from penstock.security.acls.rules import ResourcePattern
from penstock.security.delegation import TokenInformation

K = TypeVar("K")
V = TypeVar("V")

NO_LEADER = -1
CLUSTER_WIDE = "<default>"  # The name under which settings for all brokers are kept.

# (kind, name): kind is "topics", "brokers", "groups", or one with sanitized names: "clients",
# "users" (among them clients of users, as "user/clients/client") or "ips".
ConfigKey = tuple[str, str]
PartitionKey = tuple[str, int]


class PartitionState(NamedTuple):
    """What changes with elections and with the in-sync set; one node of the store.

    A named tuple and not a dataclass, because a controller makes tens of thousands at once.
    """

    leader: int  # NO_LEADER while nobody may lead.
    leader_epoch: int
    isr: tuple[int, ...]
    min_isr: int  # min(min.insync.replicas, replicas): the high watermark moves only with as many.
    elr: tuple[int, ...] = ()  # Out of the in-sync set, yet certain to hold all committed records.
    lke: tuple[int, ...] = ()  # Were eligible until they lost data in a power cut.
    leader_recovery_state: int = 0  # 1: elected without certainty that nothing is missing.
    controller_epoch: int = 0
    partition_epoch: int = 0  # The version of the node this was read from.


class PartitionImage(NamedTuple):
    replicas: tuple[int, ...]  # The first is the preferred leader.
    state: PartitionState
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicImage:
    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionImage]


class Endpoint(NamedTuple):
    """Where clients of one listener find a broker."""

    listener: str
    host: str
    port: int
    security_protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerImage:
    broker_id: int
    epoch: int  # Which registration this is; a restart gets a higher one.
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    is_active: bool  # Only an active broker may lead or join an in-sync set.
    fence_version: int = 0  # Checked by whoever lets it lead or be in sync.


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDelta:
    """What one accepted change did. In each mapping, None means: it is gone."""

    brokers: Mapping[int, BrokerImage | None] = field(default_factory=dict)
    topics: Mapping[str, TopicImage | None] = field(default_factory=dict)
    partitions: Mapping[PartitionKey, PartitionImage] = field(default_factory=dict)
    configs: Mapping[ConfigKey, Mapping[str, str] | None] = field(default_factory=dict)
    acls: Mapping[ResourcePattern, Entries | None] = field(default_factory=dict)
    tokens: Mapping[str, TokenInformation | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(
            self.brokers
            or self.topics
            or self.partitions
            or self.configs
            or self.acls
            or self.tokens
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterImage:
    """All of it, as of one change; `seq` counts changes within a controller epoch."""

    cluster_id: str
    controller_id: int = -1
    controller_epoch: int = 0
    seq: int = 0
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names_by_id: Mapping[bytes, str] = field(default_factory=dict)
    configs: Mapping[ConfigKey, Mapping[str, str]] = field(default_factory=dict)
    acls: Mapping[ResourcePattern, Entries] = field(default_factory=dict)
    tokens: Mapping[str, TokenInformation] = field(default_factory=dict)  # By id.

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        found = self.topics.get(topic)
        return found.partitions.get(partition) if found else None

    def config(self, kind: str, name: str) -> Mapping[str, str]:
        """The overrides set for this entity; empty when there are none."""
        return self.configs.get((kind, name), {})

    def active_brokers(self) -> frozenset[int]:
        return frozenset(b.broker_id for b in self.brokers.values() if b.is_active)

    def all_partitions(self) -> Iterator[tuple[PartitionKey, PartitionImage]]:
        for name, topic in self.topics.items():
            for number, partition in topic.partitions.items():
                yield (name, number), partition

    def apply(self, delta: ImageDelta) -> "ClusterImage":
        """The next image. Copies the outer mappings that change; what they hold is shared."""
        topics, names = self.topics, self.topic_names_by_id
        if delta.topics:
            names = _names_after(names, self.topics, delta.topics)
            topics = _updated(topics, delta.topics)
        if delta.partitions:
            topics = _with_partitions(topics, delta.partitions)
        return replace(
            self,
            seq=self.seq + 1,
            brokers=_updated(self.brokers, delta.brokers),
            topics=topics,
            topic_names_by_id=names,
            configs=_updated(self.configs, delta.configs),
            acls=_updated(self.acls, delta.acls),
            tokens=_updated(self.tokens, delta.tokens),
        )


def sharing(known: ClusterImage, image: ClusterImage) -> ClusterImage:
    """The same image, with the very values that are known already wherever they are equal.

    Comparing by identity then shows which of thousands of partitions have changed.
    """
    return replace(
        image,
        brokers=known.brokers if known.brokers == image.brokers else image.brokers,
        topics={n: _shared(known.topics.get(n), topic) for n, topic in image.topics.items()},
        configs=known.configs if known.configs == image.configs else image.configs,
        acls=known.acls if known.acls == image.acls else image.acls,
        tokens=known.tokens if known.tokens == image.tokens else image.tokens,
    )


def _shared(known: TopicImage | None, topic: TopicImage) -> TopicImage:
    if known is None or known.topic_id != topic.topic_id:
        return topic
    before = known.partitions
    after = {n: before[n] if before.get(n) == p else p for n, p in topic.partitions.items()}
    if len(after) == len(before) and all(before.get(n) is p for n, p in after.items()):
        return known
    return replace(topic, partitions=after)


def _updated(before: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    if not changes:
        return before
    after = dict(before)
    for key, value in changes.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    return after


def _names_after(
    names: Mapping[bytes, str],
    before: Mapping[str, TopicImage],
    changes: Mapping[str, TopicImage | None],
) -> Mapping[bytes, str]:
    """A topic re-created under its old name has a new id, so the old id goes first."""
    after = dict(names)
    for name, topic in changes.items():
        if name in before:
            after.pop(before[name].topic_id, None)
        if topic is not None:
            after[topic.topic_id] = name
    return after


def _with_partitions(
    topics: Mapping[str, TopicImage], changes: Mapping[PartitionKey, PartitionImage]
) -> Mapping[str, TopicImage]:
    by_topic: dict[str, dict[int, PartitionImage]] = {}
    for (name, number), partition in changes.items():
        by_topic.setdefault(name, {})[number] = partition
    return {
        **topics,
        **{
            name: replace(topics[name], partitions={**topics[name].partitions, **partitions})
            for name, partitions in by_topic.items()
        },
    }
