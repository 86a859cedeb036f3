"""Moves replicas between the log directories of one broker, while they go on serving.

A copy grows beside the log, under a name that says so, until it has everything; then, within one
step of the event loop, it takes the log's place. Whatever ends a move early leaves the log as it
was, and a copy that a crash left behind is removed at the next start.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from penstock.errors import CorruptRecord, KafkaStorage, OffsetOutOfRange
from penstock.records.batch import split_batches
from penstock.replica.partition import Partition
from penstock.replica.throttle import ReplicationRate
from penstock.storage.directories.log_dirs import LogDirs
from penstock.storage.log.log import Log

log = logging.getLogger("kafka.server.ReplicaAlterLogDirsThread")

_PIECE_BYTES: Final = 1 << 20
_PAUSE_S: Final = 0.05


class ReplicaMove:
    """One replica on its way."""

    def __init__(self, partition: Partition, copy: Log) -> None:
        self.partition = partition
        self.source = partition.log
        self.copy = copy
        # How often the source was truncated when the copy began. Another count: begin again.
        self.cut_count = -1
        self.task: asyncio.Task[None] | None = None

    @property
    def target(self) -> Path:
        return self.copy.dir.parent

    @property
    def lag(self) -> int:
        return max(self.source.log_end_offset - self.copy.log_end_offset, 0)


class LogMoves:
    """All moves under way; a partition has one at most."""

    def __init__(
        self,
        log_dirs: LogDirs,
        *,
        rate: ReplicationRate,
        at_once_max: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        self._log_dirs = log_dirs
        self._rate = rate
        self._at_once_max = at_once_max
        self._now_ms = now_ms
        self._moves: dict[Partition, ReplicaMove] = {}
        self._busy_count = 0
        log_dirs.before_close.append(self.stop)

    def of(self, partition: Partition) -> ReplicaMove | None:
        return self._moves.get(partition)

    def all(self) -> tuple[ReplicaMove, ...]:
        return tuple(self._moves.values())

    def begin(self, partition: Partition, target: Path) -> None:
        """Move a replica; a move to elsewhere is given up, and so is one back to where it is."""
        known = self._moves.get(partition)
        if known is not None and known.target == target:
            return
        self.cancel(partition)
        if partition.log.dir.parent == target:
            return
        copy = self._log_dirs.new_copy(partition.log, target, now_ms=self._now_ms())
        move = self._moves[partition] = ReplicaMove(partition, copy)
        move.task = asyncio.create_task(self._run(move), name=f"move {partition.log!r}")

    def cancel(self, partition: Partition) -> None:
        move = self._moves.pop(partition, None)
        if move is not None and move.task is not None:
            move.task.cancel()
            self._log_dirs.drop_copy(move.copy, now_ms=self._now_ms())

    def stop(self) -> None:
        for partition in tuple(self._moves):
            self.cancel(partition)

    async def _run(self, move: ReplicaMove) -> None:
        while self._busy_count >= max(self._at_once_max(), 1):
            await asyncio.sleep(_PAUSE_S)
        self._busy_count += 1
        try:
            await self._copy_all(move)
        except (KafkaStorage, CorruptRecord, OSError) as error:
            log.error("%r is not moved to %s: %s", move.partition, move.target, error)
            self._log_dirs.drop_copy(move.copy, now_ms=self._now_ms())
        finally:
            self._busy_count -= 1
            if self._moves.get(move.partition) is move:
                del self._moves[move.partition]

    async def _copy_all(self, move: ReplicaMove) -> None:
        is_flushed = False
        while True:
            while self._rate.is_exceeded:
                await asyncio.sleep(_PAUSE_S)
            try:
                has_all = self._copy_piece(move)
            except OffsetOutOfRange:
                move.cut_count = -1  # Retention was faster.
                continue
            if has_all and is_flushed:
                self._take_place(move)
                return
            if has_all:
                await asyncio.to_thread(move.copy.flush)
                is_flushed = True
            await asyncio.sleep(0)

    def _copy_piece(self, move: ReplicaMove) -> bool:
        """Copy some more; whether that was all there is."""
        source, copy = move.source, move.copy
        if move.cut_count != source.cut_count:
            copy.truncate_fully_and_start_at(source.log_start_offset)
            move.cut_count = source.cut_count
        if copy.log_end_offset >= source.log_end_offset:
            return True
        offset = copy.log_end_offset
        end = source.log_end_offset
        read = source.read(offset, bytes_max=_PIECE_BYTES, end_offset=end, min_one=True)
        data = read.records if isinstance(read.records, bytes) else read.records.read()
        records = memoryview(data)
        batches = split_batches(records)
        if batches and batches[0][0].base_offset < offset:  # The log begins within a batch.
            copy.truncate_fully_and_start_at(batches[0][0].base_offset)
        copy.append_as_follower(batches, now_ms=self._now_ms(), together=records)
        self._rate.note(len(data))
        return copy.log_end_offset >= source.log_end_offset

    def _take_place(self, move: ReplicaMove) -> None:
        """Nothing else runs meanwhile: the copy has all, and is the log from here on."""
        source, copy, partition = move.source, move.copy, move.partition
        copy.high_watermark = source.high_watermark
        if source.log_start_offset > copy.log_start_offset:
            copy.delete_records_before(source.log_start_offset)
        for epoch, start_offset in source.epochs:  # Also one that nothing was written in yet.
            copy.assign_epoch_start(epoch, start_offset, is_synced=False)
        copy.cleaned_offset = source.cleaned_offset
        copy.reconfigure(source.config)
        self._log_dirs.take_copy(source, copy, now_ms=self._now_ms())
        partition.log = copy
        log.info("%r was moved to %s", partition, copy.dir.parent)
