"""One task that copies: fetch, sort out, send on, commit; for as long as nobody says stop.

It knows neither Spark nor threads, so it runs in both. A start takes the transactional id over,
which ends whatever an earlier attempt left open, and only then reads how far the source was copied.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.client.operations.group_offsets import group_offsets
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.raw_cluster import persistently
from penstock.client.wire.raw_produce import ProduceSettings
from penstock.errors import PenstockError
from penstock.mirror.copying.kept import kept_batches
from penstock.mirror.copying.reading import (
    Displaced,
    ReadSettings,
    SourceBatches,
    SourceReader,
    bounds_of,
)
from penstock.mirror.copying.run_records import RunRecords
from penstock.mirror.copying.transaction import Copied, TargetTransaction
from penstock.mirror.record_writer import InternalTopicWriter
from penstock.mirror.syncs import KeyValue, OffsetSync
from penstock.records.topic_partition import TopicPartition

_LOG = logging.getLogger("penstock.mirror")
_BYTES_MAX = 64 * 1024 * 1024  # A transaction is committed once it has so much.
_QUIET_S = 5.0  # A position that moved without records is noted after so long.
_REFRESH_S = 3600.0  # A position is noted again after so long, or its broker would forget it.

Stop = Callable[[], bool]


class PositionLost(PenstockError):
    """Records were copied, and nobody knows how far: going on would copy some twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOrder:
    """What one task copies, and how."""

    flow: str
    partitions: tuple[tuple[TopicPartition, TopicPartition], ...]  # Source and target.
    transactional_id: str
    group: str
    runs_topic: str
    syncs_topic: str | None  # None: no syncs are to be written.
    are_syncs_on_source: bool
    begins_at_end: bool = False
    transaction_ms: int = 500
    transaction_timeout_ms: int = 60_000
    reading: ReadSettings = field(default_factory=ReadSettings)
    producing: ProduceSettings = field(
        default_factory=lambda: ProduceSettings(request_bytes_max=8 * 1024 * 1024)
    )


def copy(order: CopyOrder, source: ClusterClient, target: ClusterClient, stop: Stop) -> None:
    """Copy until told to stop; what was fetched by then is committed."""
    runs_at = TopicPartition(order.runs_topic, 0)
    transaction = TargetTransaction(
        target,
        order.transactional_id,
        runs_at=runs_at,
        group=order.group,
        settings=order.producing,
        timeout_ms=order.transaction_timeout_ms,
    )
    syncs = InternalTopicWriter(source if order.are_syncs_on_source else target)
    try:
        copier = _Copier(order, source, target, transaction, syncs)
        copier.begin()
        while not stop():
            copier.step()
        copier.commit()
    finally:
        transaction.close()
        syncs.close()


class _Copier:
    def __init__(
        self,
        order: CopyOrder,
        source: ClusterClient,
        target: ClusterClient,
        transaction: TargetTransaction,
        syncs: InternalTopicWriter,
    ) -> None:
        self._order = order
        self._source = source
        self._target = target
        self._transaction = transaction
        self._syncs = syncs
        self._to = dict(order.partitions)
        self._from = {there: here for here, there in order.partitions}
        self._reader = SourceReader(source, {}, order.reading)
        self._noted: dict[TopicPartition, int] = {}  # By target: the positions that are committed.
        self._ends: dict[TopicPartition, int] = {}
        self._taken_back: list[KeyValue] = []
        self._begun_s = self._committed_s = self._refreshed_s = time.monotonic()

    def begin(self) -> None:
        """Read how far the source was copied; partitions that are new begin where they start."""
        known = persistently(
            self._target,
            lambda: group_offsets(self._target, self._order.group, require_stable=True),
        )
        new = []
        for here, there in self._order.partitions:
            if there in known:
                self._reader.positions[here] = self._noted[there] = known[there].offset
                if known[there].metadata:
                    self._ends[there] = int(known[there].metadata)
            else:
                new.append(here)
        if new:
            self._begin_new(new)

    def step(self) -> None:
        """One fetch of everything, sent on; and a commit where it is due."""
        if not self._transaction.bytes_sent:
            self._begun_s = time.monotonic()
        for found in self._reader.poll():
            if isinstance(found, Displaced):
                self._displace(found)
            else:
                self._send(found)
        now_s = time.monotonic()
        if self._transaction.bytes_sent:
            waited_ms = (now_s - self._begun_s) * 1000
            if waited_ms >= self._order.transaction_ms or (
                self._transaction.bytes_sent >= _BYTES_MAX
            ):
                self.commit()
        elif self._moved() and now_s - self._committed_s > _QUIET_S:
            self.commit()
        elif now_s - self._refreshed_s > _REFRESH_S:
            self._refreshed_s = now_s
            self._noted.clear()
            self.commit()

    def commit(self) -> None:
        """Commit what was sent, together with the positions that moved."""
        moved = self._moved()
        if not moved:
            return
        copied = self._transaction.commit(self._from, moved, self._ends, self._taken_back)
        self._noted.update(moved)
        self._taken_back.clear()
        self._committed_s = time.monotonic()
        self._tell_syncs(copied)

    def _moved(self) -> dict[TopicPartition, int]:
        positions = self._reader.positions
        return {
            there: positions[here]
            for here, there in self._order.partitions
            if positions[here] != self._noted.get(there)
        }

    def _send(self, found: SourceBatches) -> None:
        offset = self._reader.positions[found.at]
        kept = kept_batches(found.records, found.aborted, offset=offset)
        batches = self._transaction.send(self._to[found.at], kept.pieces)
        self._transaction.submit(batches)
        self._reader.positions[found.at] = kept.next_offset

    def _begin_new(self, new: list[TopicPartition]) -> None:
        """Partitions without a position; one that has runs all the same had one, and lost it."""
        records = RunRecords(self._target, TopicPartition(self._order.runs_topic, 0))
        records.catch_up()
        edges = bounds_of(self._source, new)
        there_edges = bounds_of(self._target, [self._to[here] for here in new])
        for here in new:
            if records.map_of(here) is not None:
                raise PositionLost(
                    f"{self._order.flow}: the group {self._order.group} of the target no longer "
                    f"knows how far {here} was copied. Set its offset of {self._to[here]} to the "
                    f"offset of {here} to go on from, or delete the topic "
                    f"{self._order.runs_topic} to copy all of it again."
                )
            first, last = edges[here]
            self._reader.positions[here] = last if self._order.begins_at_end else first
            self._ends[self._to[here]] = there_edges[self._to[here]][1]
        self.commit()

    def _displace(self, found: Displaced) -> None:
        """The source's log begins later than where it was read to, or was made anew."""
        wanted = self._reader.positions[found.at]
        if wanted < found.start:
            _LOG.error(
                "%s: records %d to %d of %s were deleted on the source before they were copied",
                self._order.flow,
                wanted,
                found.start - 1,
                found.at,
            )
        else:
            _LOG.error(
                "%s: %s ends at %d, but was read up to %d: it was made anew, and is copied from "
                "its beginning",
                self._order.flow,
                found.at,
                found.end,
                wanted,
            )
            self._take_back(found.at)
        self._reader.positions[found.at] = found.start

    def _take_back(self, at: TopicPartition) -> None:
        """The runs of a log that is no more would mislead whoever asks about the new one."""
        self.commit()
        records = RunRecords(self._target, TopicPartition(self._order.runs_topic, 0))
        records.catch_up()
        self._taken_back += records.all_keys(at)
        self._transaction.forget(self._to[at])

    def _tell_syncs(self, copied: Mapping[TopicPartition, Copied]) -> None:
        if self._order.syncs_topic is None or not copied:
            return
        syncs = [
            OffsetSync(*self._from[there], one.last_source, one.last_target).encoded()
            for there, one in copied.items()
        ]
        self._syncs.write(self._order.syncs_topic, syncs)
