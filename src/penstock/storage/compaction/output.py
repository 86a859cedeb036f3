"""The segments that compaction writes, under names that a restart drops.

Batches gather in memory and are written some at a time; what was written is brought to the disk in
pieces, because a gigabyte flushed at once would hold up everybody else who uses the disk.
"""

import os
from pathlib import Path
from typing import Final

from penstock.records.batch import BatchHeader
from penstock.storage.compaction.job import CleanJob
from penstock.storage.segments.file_slice import OPEN_FILES
from penstock.storage.segments.files import CLEANED
from penstock.storage.segments.segment import INT_MAX, Placed, Segment
from penstock.storage.segments.transaction_index import AbortedTransaction

_SYNC_BYTES: Final = 32 << 20


class CleanedSegment:
    """One segment in the making."""

    def __init__(self, job: CleanJob, base_offset: int) -> None:
        self.base_offset = base_offset
        self._segment = Segment.create(
            Path(job.directory), base_offset, job.log_config, now_ms=job.now_ms, suffix=CLEANED
        )
        self._segment.transactions.reset()  # An earlier attempt may have left one.
        self._io_bytes = job.io_bytes
        self._gathered = bytearray()
        self._placed: list[Placed] = []
        self._synced_bytes = 0

    @property
    def size(self) -> int:
        return self._segment.size + len(self._gathered)

    def has_room(self, header: BatchHeader) -> bool:
        """Whether positions and offsets still fit the indexes."""
        return (
            self.size + header.size_bytes <= INT_MAX
            and header.last_offset - self.base_offset <= INT_MAX
        )

    def add(self, header: BatchHeader, batch: memoryview | bytearray) -> None:
        self._gathered += batch
        self._placed.append(Placed(len(batch), header.last_offset, header.max_timestamp))
        if len(self._gathered) >= self._io_bytes:
            self._write()

    def _write(self) -> None:
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, bytearray()
        placed, self._placed = self._placed, []
        self._segment.append([memoryview(gathered)], len(gathered), placed)
        if self._segment.size - self._synced_bytes >= _SYNC_BYTES:
            os.fdatasync(self._segment.file.fd)
            self._synced_bytes = self._segment.size

    def finish(self, aborted: list[AbortedTransaction], *, modified_ms: int) -> None:
        """Bring all of it to the disk, as old as the segments it was made from."""
        self._write()
        if aborted:
            self._segment.transactions.append(aborted)
        self._segment.close_for_append()
        modified_ns = modified_ms * 1_000_000
        os.utime(self._segment.log_path, ns=(modified_ns, modified_ns))
        self._segment.sync()
        OPEN_FILES.forget(str(self._segment.log_path))  # Held open, it would never leave the disk.

    def drop(self) -> None:
        self._segment.delete()
