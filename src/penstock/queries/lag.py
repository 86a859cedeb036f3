"""How many records a query is behind, as every other tool sees it.

A query commits its progress as a consumer group after each batch; the lag is what the log holds
beyond that. The cluster is asked, not Spark, so the number is true while a query is down as well.
"""

from collections.abc import Iterable, Mapping

from penstock.client.operations.group_offsets import group_offsets
from penstock.client.operations.offsets import OffsetSpec, list_offsets
from penstock.client.operations.topics import describe_topics
from penstock.client.values import OffsetAndTimestamp, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import PenstockError

_TIMEOUT_MS = 5_000


def lag_of(
    ends: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
) -> int:
    """Records after the committed offsets; of a partition never read, all it still holds."""
    return sum(
        max(0, end - max(committed.get(at, 0), starts.get(at, 0))) for at, end in ends.items()
    )


class LagReader:
    """Asks one cluster. Not for several threads."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster

    def lag(self, group: str, topics: Iterable[str]) -> int | None:
        """The lag of a group on these topics; None while the cluster cannot tell."""
        try:
            partitions = self._partitions(topics)
            ends = self._positions(partitions, OffsetSpec.LATEST)
            starts = self._positions(partitions, OffsetSpec.EARLIEST)
            committed = group_offsets(self._cluster, group)
        except PenstockError:
            return None
        return lag_of(ends, starts, {at: value.offset for at, value in committed.items()})

    def close(self) -> None:
        """Close the connections."""
        self._cluster.close()

    def _partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        described = describe_topics(self._cluster, list(topics))
        return [
            TopicPartition(name, part.partition)
            for name, topic in described.items()
            for part in topic.partitions
        ]

    def _positions(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec
    ) -> dict[TopicPartition, int]:
        found = list_offsets(
            self._cluster,
            dict.fromkeys(partitions, int(spec)),
            timeout_ms=_TIMEOUT_MS,
            read_committed=True,
        )
        return {at: one.offset for at, one in found.items() if isinstance(one, OffsetAndTimestamp)}
