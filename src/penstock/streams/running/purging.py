"""Repartition topics are cut off behind what was read: they hold only what is on its way.

An offset is committed to the application's group once the batch that read up to it is decided and
in the checkpoint. So nobody asks for what lies before it again, not even after a crash.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from penstock.client.operations.group_offsets import group_offsets
from penstock.client.operations.offsets import delete_records
from penstock.client.values import OffsetAndMetadata, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import PenstockError

_TIMEOUT_MS = 10_000


def to_purge(
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    topics: Collection[str],
    done: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Where each repartition topic may begin, as far as that is news."""
    return {
        at: found.offset
        for at, found in committed.items()
        if at.topic in topics and found.offset > done.get(at, 0)
    }


@dataclass(slots=True, kw_only=True)
class RepartitionPurge:
    """Cuts an application's repartition topics off, again and again."""

    application_id: str
    topics: frozenset[str]  # As named on the brokers.
    connect: Callable[[], ClusterClient]
    every_s: float
    _done: dict[TopicPartition, int] = field(default_factory=dict)
    _next_s: float = 0.0

    def look(self, now_s: float) -> None:
        """Purge if it is time; what cannot be purged now is tried again at the next time."""
        if not self.topics or now_s < self._next_s:
            return
        self._next_s = now_s + self.every_s
        try:
            self.purge()
        except PenstockError:
            return  # It saves room, no more; the queries tell what is wrong with the cluster.

    def purge(self) -> None:
        """Delete the records before what was committed."""
        with self.connect() as cluster:
            committed = group_offsets(cluster, self.application_id)
            wanted = to_purge(committed, self.topics, self._done)
            purged = delete_records(cluster, wanted, timeout_ms=_TIMEOUT_MS) if wanted else {}
        self._done |= {at: wanted[at] for at, now in purged.items() if isinstance(now, int)}
