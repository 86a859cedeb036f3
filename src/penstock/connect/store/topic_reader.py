"""A topic of Connect's read by hand: committed records, and a position that passes markers.

A consumer's position stops at the last record it gave out; what a transaction leaves behind it
would then look like records still to come. Here the position is the end of the last batch, so
"everything up to here" can be waited for.
"""

import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

from penstock.client.errors import KafkaTimeoutError
from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.fetched_records import committed_records
from penstock.client.wire.raw_cluster import cluster_for
from penstock.client.wire.raw_fetch import OffsetGone, PartitionFetcher
from penstock.errors import error_for

Take: TypeAlias = Callable[[bytes | None, bytes | None], None]
_WAIT_MS = 500
_FETCH_BYTES = 2 << 20


class TopicReader:
    """All partitions of a topic, from their beginnings on; for one thread."""

    def __init__(self, topic: str, client: Mapping[str, str]) -> None:
        self._topic = topic
        self._cluster = cluster_for(client)
        self._fetchers: dict[int, PartitionFetcher] = {}
        self.positions: dict[int, int] = {}  # What is read next, by partition.
        self.record_ends: dict[int, int] = {}  # Behind the last record, markers not counted.

    def open(self) -> None:
        """Find the partitions; those that are known already keep their positions."""
        count = _partition_count(self._cluster, self._topic)
        for number in range(count):
            if number in self._fetchers:
                continue
            at = TopicPartition(self._topic, number)
            fetcher = PartitionFetcher(
                self._cluster,
                at,
                read_committed=True,
                fetch_bytes=_FETCH_BYTES,
                max_wait_ms=max(20, _WAIT_MS // count),
            )
            self.positions.setdefault(number, fetcher.bounds()[0])
            self._fetchers[number] = fetcher

    def ends(self) -> dict[int, int]:
        """Where each partition ends now, transactions that are still open included."""
        return {number: one.bounds()[1] for number, one in self._fetchers.items()}

    def read(self, take: Take) -> int:
        """One fetch of each partition; how many batches came."""
        return sum(self._read_one(number, take) for number in self._fetchers)

    def read_to_end(self, take: Take, *, timeout_s: float) -> None:
        """Everything that was written before now; waits for transactions that are open."""
        deadline_s = time.monotonic() + timeout_s
        ends = self.ends()
        while True:
            behind = [one for one, end in ends.items() if self.positions[one] < end]
            if not behind:
                return
            if time.monotonic() > deadline_s:
                raise KafkaTimeoutError(
                    f"The topic {self._topic} could not be read to its end within {timeout_s:g} s."
                )
            for number in behind:
                self._read_one(number, take)

    def close(self) -> None:
        """Leave the brokers."""
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._cluster.close()

    def _read_one(self, number: int, take: Take) -> int:
        fetcher, count = self._fetchers[number], 0
        try:
            fetched = fetcher.fetch(self.positions[number])
        except OffsetGone as error:
            if error.start is None or error.start <= self.positions[number]:
                raise
            self.positions[number] = error.start  # What lay before was compacted or deleted.
            return 0
        for header, records in committed_records(fetched):
            for record in records:
                if record.offset >= self.positions[number]:
                    self.record_ends[number] = record.offset + 1
                    take(record.key, record.value)
            self.positions[number] = max(self.positions[number], header.last_offset + 1)
            count += 1
        return count


def _partition_count(cluster: ClusterClient, topic: str) -> int:
    (found,) = cluster.metadata([topic]).topics
    if found.error_code:
        raise error_for(found.error_code, f"topic {topic!r}")
    return len(found.partitions)
