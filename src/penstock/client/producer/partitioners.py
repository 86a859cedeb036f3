"""Which partition a record goes to.

librdkafka has Kafka's own ways built in (murmur2 of the key; without a key, one partition at a time
for a while), and those run at its speed. A custom partitioner and the round-robin one run here,
with a view of the cluster, as Kafka gives it to them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.client.plugins import configure, load
from penstock.client.values import PartitionInfo
from penstock.errors import ConfigError


class Cluster(Protocol):
    """What a partitioner may ask about the cluster."""

    def partitions_for_topic(self, topic: str, /) -> Sequence[PartitionInfo]:
        """All partitions of a topic, in order."""

    def available_partitions_for_topic(self, topic: str, /) -> Sequence[PartitionInfo]:
        """Those that have a leader now."""


class Partitioner(Protocol):
    """Chooses a partition. May also have `configure(settings)` and `close()`."""

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
        /,
    ) -> int:
        """The number of the partition."""


class RoundRobinPartitioner:
    """Every record to the next partition in turn, whatever its key."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
        /,
    ) -> int:
        turn = self._next.get(topic, 0)
        self._next[topic] = turn + 1
        choices = cluster.available_partitions_for_topic(topic) or cluster.partitions_for_topic(
            topic
        )
        return choices[turn % len(choices)].partition


_JAVA_PACKAGE = "org.apache.kafka.clients.producer."
# Names of Kafka and short words for what librdkafka does itself: its settings.
_BUILT_IN: dict[str, dict[str, object]] = {
    "DefaultPartitioner": {"partitioner": "murmur2_random"},
    "UniformStickyPartitioner": {"partitioner": "random"},
    "default": {"partitioner": "murmur2_random"},
    "sticky": {"partitioner": "murmur2_random"},
    "random": {"partitioner": "murmur2_random", "sticky.partitioning.linger.ms": 0},
}
_ROUND_ROBIN = ("RoundRobinPartitioner", "round-robin", "roundrobin")


def choose(
    given: object, *, ignore_keys: bool, settings: Mapping[str, object]
) -> tuple[Partitioner | None, dict[str, object]]:
    """A partitioner to call for each record, or None and librdkafka's settings instead."""
    if given is None:
        return None, {"partitioner": "random" if ignore_keys else "murmur2_random"}
    if isinstance(given, str):
        simple = given.removeprefix(_JAVA_PACKAGE).removeprefix("internals.")
        if simple in _BUILT_IN:
            return None, dict(_BUILT_IN[simple])
        if simple in _ROUND_ROBIN:
            return RoundRobinPartitioner(), {}
        given = load(given)
    if isinstance(given, type):
        given = given()
    if not hasattr(given, "partition"):
        raise ConfigError(f"partitioner.class={given!r} has no method partition")
    configure(given, settings)
    return given, {}
