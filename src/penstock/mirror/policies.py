"""What a topic is called on the other side, and where a topic came from: Kafka's two policies.

With the default policy `orders` of cluster A is `A.orders` on the target, so a topic's name tells
its way, and no record goes in a circle. With the identity policy names stay as they are; then only
the flows themselves can be without circles, which `config` looks after.
"""

from dataclasses import dataclass
from typing import Protocol

HEARTBEATS = "heartbeats"
_INTERNAL_ENDS = ("-internal", ".internal")
_INTERNAL_BEGINNINGS = ("__", ".")


class ReplicationPolicy(Protocol):
    """Names of topics on both sides."""

    @property
    def separator(self) -> str: ...
    def remote(self, source: str, topic: str) -> str: ...
    def source_of(self, topic: str) -> str | None: ...
    def upstream(self, topic: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class PrefixPolicy:
    """Kafka's DefaultReplicationPolicy: the source's alias stands before the name."""

    separator: str = "."

    def remote(self, source: str, topic: str) -> str:
        """The name on the target."""
        return f"{source}{self.separator}{topic}"

    def source_of(self, topic: str) -> str | None:
        """The cluster that a topic was copied from; None: it was written here."""
        alias, found, _ = topic.partition(self.separator)
        return alias if found else None

    def upstream(self, topic: str) -> str | None:
        """What the topic is called where it came from."""
        _, found, name = topic.partition(self.separator)
        return name if found else None


@dataclass(frozen=True, slots=True)
class IdentityPolicy:
    """Kafka's IdentityReplicationPolicy: only heartbeats tell where they come from."""

    separator: str = "."

    def remote(self, source: str, topic: str) -> str:
        """The name on the target."""
        if self._is_heartbeats(topic):
            return f"{source}{self.separator}{topic}"
        return topic

    def source_of(self, topic: str) -> str | None:
        """The cluster that a topic was copied from; None: nobody can say."""
        if topic != HEARTBEATS and self._is_heartbeats(topic):
            return topic.partition(self.separator)[0]
        return None

    def upstream(self, topic: str) -> str | None:
        """What the topic is called where it came from."""
        if topic != HEARTBEATS and self._is_heartbeats(topic):
            return topic.partition(self.separator)[2]
        return topic

    def _is_heartbeats(self, topic: str) -> bool:
        return topic == HEARTBEATS or topic.endswith(f"{self.separator}{HEARTBEATS}")


def is_heartbeats(policy: ReplicationPolicy, topic: str) -> bool:
    """Whether a topic is that of heartbeats, of this cluster or of one further up."""
    return topic == HEARTBEATS or topic.endswith(f"{policy.separator}{HEARTBEATS}")


def is_internal(topic: str) -> bool:
    """Whether a topic belongs to Kafka, Connect or a mirror itself."""
    return topic.startswith(_INTERNAL_BEGINNINGS) or topic.endswith(_INTERNAL_ENDS)


def would_circle(policy: ReplicationPolicy, topic: str, target: str) -> bool:
    """Whether the topic has been on the target already, as far as its name can tell."""
    name: str | None = topic
    while name is not None:
        source = policy.source_of(name)
        if source is None:
            return False
        if source == target:
            return True
        name = policy.upstream(name)
    return False


def checkpoints_topic(source: str, separator: str) -> str:
    """Where translated offsets of groups are told, on the target."""
    return f"{source}{separator}checkpoints{separator}internal"


def syncs_topic(other: str, separator: str) -> str:
    """Where pairs of offsets are told, on the cluster that is not the other one."""
    return f"mm2-offset-syncs{separator}{other}{separator}internal"


def runs_topic(source: str, separator: str) -> str:
    """Where the exact map of offsets is kept, on the target."""
    return f"mm2-offset-runs{separator}{source}{separator}internal"
