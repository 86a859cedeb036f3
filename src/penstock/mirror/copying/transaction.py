"""The target's side of a copy: batches, the runs they begin and the source's position, all or none.

One transaction after the other. Whoever takes the transactional id over later fences this one, so
of two attempts at the same task only the later one's records ever count.
"""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.raw_produce import OutgoingBatch, ProduceSettings, RawProducer
from penstock.client.wire.transaction_control import (
    add_partitions,
    begin,
    commit_and_go_on,
    note_offsets,
)
from penstock.errors import PenstockError
from penstock.mirror.copying.kept import Piece, reissued
from penstock.mirror.runs import Run, new_runs, paired
from penstock.mirror.syncs import KeyValue, encode_runs
from penstock.records.batch import build_batch, read_header
from penstock.records.record import Record
from penstock.records.topic_partition import TopicPartition

_SEQUENCE_MASK = 0x7FFFFFFF


class OffsetNotTold(PenstockError):
    """A leader has a batch but does not say where, so its transaction cannot be committed."""


class Copied(NamedTuple):
    """A partition after a commit: its last copied record's two offsets, and what was copied."""

    last_source: int
    last_target: int
    records: int


class TargetTransaction:
    """The transactions of one task, one open at a time. Not for several threads."""

    def __init__(
        self,
        cluster: ClusterClient,
        transactional_id: str,
        *,
        runs_at: TopicPartition,
        group: str,
        settings: ProduceSettings,
        timeout_ms: int,
    ) -> None:
        self._cluster = cluster
        self._runs_at = runs_at
        self._group = group
        self._open = begin(cluster, transactional_id, timeout_ms=timeout_ms)
        self._producer = RawProducer(
            cluster,
            settings,
            transactional_id=transactional_id,
            add_partitions=None if self._open.has_own_epoch else self._add,
            on_stored=self._note_stored,
        )
        self._sequences: dict[TopicPartition, int] = {}
        self._distances: dict[TopicPartition, int | None] = {}
        self._sent: dict[TopicPartition, list[tuple[int, int]]] = {}
        self._stored: dict[TopicPartition, list[tuple[int, int]]] = {}
        self.bytes_sent = 0  # Since the last commit.

    def send(self, at: TopicPartition, pieces: Sequence[Piece]) -> list[OutgoingBatch]:
        """The pieces as batches of this transaction, to be handed to `submit` in this order."""
        batches = []
        for piece in pieces:
            self._sent.setdefault(at, []).extend(piece.spans)
            batches.append(OutgoingBatch(at, self._reissued(at, piece)))
            self.bytes_sent += len(batches[-1].data)
        return batches

    def submit(self, batches: Sequence[OutgoingBatch]) -> None:
        """Send in the background; waits for what was submitted before."""
        if batches:
            self._producer.submit(batches)

    def forget(self, at: TopicPartition) -> None:
        """The source's offsets are others now: what follows begins a run in any case."""
        self._distances.pop(at, None)

    def commit(
        self,
        names: Mapping[TopicPartition, TopicPartition],
        positions: Mapping[TopicPartition, int],
        ends: dict[TopicPartition, int],
        extra: Sequence[KeyValue] = (),
    ) -> dict[TopicPartition, Copied]:
        """Commit all that was sent, by target partition.

        `names` has the source's partition for each; `positions` is where the source is read on,
        and `ends` where the last copied record of each ends, which is brought up to date here.
        """
        self._producer.flush()
        copied, notes = self._settle(names)
        ends.update({at: one.last_target + 1 for at, one in copied.items()})
        self._write_runs([*extra, *notes])
        note_offsets(
            self._cluster,
            self._open,
            group_id=self._group,
            offsets={at: (offset, str(ends.get(at, ""))) for at, offset in positions.items()},
        )
        before, self._open = self._open, commit_and_go_on(self._cluster, self._open)
        if before.identity != self._open.identity:
            self._sequences.clear()  # Each epoch counts from zero.
        self._producer.begin_transaction()
        self.bytes_sent = 0
        return copied

    def close(self) -> None:
        """End the sending thread; an open transaction is aborted by whoever begins next."""
        self._producer.close()

    def _settle(
        self, names: Mapping[TopicPartition, TopicPartition]
    ) -> tuple[dict[TopicPartition, Copied], list[KeyValue]]:
        copied: dict[TopicPartition, Copied] = {}
        notes: list[KeyValue] = []
        for at, sources in self._sent.items():
            stretches = list(paired(sources, self._stored.get(at, [])))
            runs, self._distances[at] = new_runs(self._distances.get(at), stretches)
            if runs:
                notes.append(_note(names[at], runs))
            last = stretches[-1]
            copied[at] = Copied(
                last.source + last.length - 1,
                last.target + last.length - 1,
                sum(one.length for one in stretches),
            )
        self._sent.clear()
        self._stored.clear()
        return copied, notes

    def _write_runs(self, notes: Sequence[KeyValue]) -> None:
        if not notes:
            return
        now_ms = time.time_ns() // 1_000_000
        records = [Record(n, now_ms, one.key, one.value, ()) for n, one in enumerate(notes)]
        data = build_batch(
            records,
            producer_id=self._open.producer_id,
            producer_epoch=self._open.producer_epoch,
            base_sequence=self._next_sequence(self._runs_at, len(records)),
            is_transactional=True,
        )
        self._producer.submit([OutgoingBatch(self._runs_at, data)])
        self._producer.flush()
        self._stored.pop(self._runs_at, None)

    def _reissued(self, at: TopicPartition, piece: Piece) -> bytearray:
        return reissued(
            piece.data,
            producer_id=self._open.producer_id,
            producer_epoch=self._open.producer_epoch,
            base_sequence=self._next_sequence(at, piece.record_count),
        )

    def _next_sequence(self, at: TopicPartition, count: int) -> int:
        sequence = self._sequences.get(at, 0)
        self._sequences[at] = sequence + count & _SEQUENCE_MASK
        return sequence

    def _note_stored(self, batch: OutgoingBatch, offset: int) -> None:
        if offset < 0:
            raise OffsetNotTold(f"{batch.at} has a batch already but does not say at which offset")
        count = read_header(batch.data).record_count
        self._stored.setdefault(batch.at, []).append((offset, count))

    def _add(self, partitions: Sequence[TopicPartition]) -> None:
        add_partitions(self._cluster, self._open, partitions)


def _note(source: TopicPartition, runs: Sequence[Run]) -> KeyValue:
    return encode_runs(source.topic, source.partition, runs)
