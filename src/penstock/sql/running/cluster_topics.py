"""The topics of a cluster, and a producer, as the engine needs them."""

from collections.abc import Iterable, Mapping, Sequence

from penstock.client.operations.groups import (
    GroupDescription,
    describe_consumer_groups,
    list_groups,
)
from penstock.client.operations.topics import (
    NewTopic,
    TopicDescription,
    create_topics,
    delete_topics,
    describe_topics,
    list_topics,
)
from penstock.client.producer.producer import Producer
from penstock.client.wire.raw_cluster import cluster_for
from penstock.errors import TopicExists, UnknownTopicOrPartition
from penstock.sql.running.ports import TopicReaders, TopicShape, WrittenRecord

_TIMEOUT_MS = 30_000
_WRITE_S = 30.0


class ClusterTopics:
    """Asks the cluster each time: topics come and go without us."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = client

    def find(self, name: str) -> TopicShape | None:
        """A topic; None: there is none of that name."""
        with cluster_for(self._client) as cluster:
            try:
                return _shape(describe_topics(cluster, [name])[name])
            except UnknownTopicOrPartition:
                return None

    def all(self) -> Sequence[TopicShape]:
        """Every topic that is not internal to brokers, by name."""
        with cluster_for(self._client) as cluster:
            names = [one.name for one in list_topics(cluster) if not one.is_internal]
            found = describe_topics(cluster, names)
        return [_shape(found[name]) for name in sorted(found)]

    def readers(self) -> Mapping[str, TopicReaders]:
        """The members of consumer groups that have partitions of a topic."""
        with cluster_for(self._client) as cluster:
            names = [one.group_id for one in list_groups(cluster) if one.is_consumer_group]
            found = describe_consumer_groups(cluster, names) if names else {}
        groups = [one for one in found.values() if isinstance(one, GroupDescription)]
        return count_readers(
            [[{at.topic for at in member.assignment} for member in one.members] for one in groups]
        )

    def create(
        self, name: str, *, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        """Create one; one that came into being meanwhile is as good."""
        new = NewTopic(
            name=name, partitions=partitions, replication_factor=replicas, configs=configs
        )
        with cluster_for(self._client) as cluster:
            try:
                create_topics(cluster, [new], timeout_ms=_TIMEOUT_MS)
            except TopicExists:
                return

    def delete(self, names: Iterable[str]) -> None:
        """Delete those that are there."""
        with cluster_for(self._client) as cluster:
            there = {one.name for one in list_topics(cluster)}
            chosen = [name for name in names if name in there]
            if chosen:
                delete_topics(cluster, chosen, timeout_ms=_TIMEOUT_MS)


def count_readers(groups: Iterable[Iterable[set[str]]]) -> dict[str, TopicReaders]:
    """From the topics of each member of each group."""
    counts: dict[str, TopicReaders] = {}
    for members in groups:
        listed = list(members)
        for topic in set().union(*listed):
            known = counts.get(topic, TopicReaders(0, 0))
            more = sum(topic in member for member in listed)
            counts[topic] = TopicReaders(known.consumers + more, known.groups + 1)
    return counts


def _shape(topic: TopicDescription) -> TopicShape:
    return TopicShape(name=topic.name, replicas=tuple(len(p.replicas) for p in topic.partitions))


class ClusterWriter:
    """One idempotent producer for all INSERTs; any thread may write."""

    def __init__(self, client: Mapping[str, str]) -> None:
        own = {"enable.idempotence": "true", "acks": "all", "linger.ms": "0"}
        self._producer: Producer[bytes, bytes] = Producer({**client, **own})

    def write(self, records: Sequence[WrittenRecord]) -> None:
        """Store them all; the first failure is raised."""
        sent = [
            self._producer.send(one.topic, one.value, key=one.key, timestamp_ms=one.time_ms)
            for one in records
        ]
        for future in sent:
            future.result(_WRITE_S)

    def close(self) -> None:
        """Leave; what is under way has a few seconds."""
        self._producer.close(5.0)
