"""The first half of compaction: which records of the dirty section are the newest of their key.

Every key of the section goes through the map of offsets, and beside it each offset has one byte
that tells its fate. So the second half need not look at keys again: it counts bytes to see that a
batch stays whole or goes whole, and a segment that loses nothing is not even read a second time.
"""

import os
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import Final

from penstock.records.batch import (
    CONTROL,
    DELETE_HORIZON,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    read_payload,
)
from penstock.records.compression import DECOMPRESSED_BYTES_MAX
from penstock.storage.compaction.aborted import AbortedTransactions
from penstock.storage.compaction.job import CleanJob, SegmentFacts
from penstock.storage.compaction.legacy import legacy_keys
from penstock.storage.compaction.offset_map import ENTRY_BYTES, offset_map
from penstock.storage.compaction.scan import Keys, scan_keys
from penstock.storage.compaction.transactions import CleanedTransactions
from penstock.storage.segments.batch_scan import verified_batches
from penstock.storage.segments.file_slice import OPEN_FILES, LogFile
from penstock.storage.segments.segment import CorruptIndex, Segment

GONE: Final = 0
NEWEST: Final = 1
TOMBSTONE: Final = 2  # The newest of its key, and without a value.

# One byte for each offset of a round, so this bounds the memory beside the map.
_FATES_MAX: Final = 16 << 20
_GATHERED_MAX: Final = 1_000  # Keys; each call to the map has its price.
_NOT_PLAIN: Final = TRANSACTIONAL | CONTROL | DELETE_HORIZON

Spend = Callable[[int], None]  # Told of bytes that were read or written; may sleep, may stop us.


class Survey:
    """What is known of the dirty section from `first_dirty` up to before `end_offset`.

    `end_offset` stays below the job's where the map was full: the rest is for another round.
    """

    def __init__(self, job: CleanJob) -> None:
        self.first_dirty = self.end_offset = self._reached = job.first_dirty
        offset_count = job.end_offset - job.first_dirty
        # There cannot be more keys than offsets.
        needed_bytes = int(offset_count / job.load_factor + 1) * ENTRY_BYTES * 2
        self.offsets = offset_map(
            buffer_bytes=min(job.map_bytes, needed_bytes), load_factor=job.load_factor
        )
        self.fates = bytearray(min(offset_count, _FATES_MAX))
        self.fates_start = job.first_dirty
        self.record_count = 0
        self._gathered = Keys([], [], [])
        # Of segments whose batches all are plain ones: how many records each has.
        self.plain_counts: dict[int, int] = {}

    def fate_counts(self, header: BatchHeader) -> tuple[int, int]:
        """How many newest records and newest tombstones a batch of the section has."""
        start = max(header.base_offset - self.fates_start, 0)
        end = header.next_offset - self.fates_start
        return self.fates.count(NEWEST, start, end), self.fates.count(TOMBSTONE, start, end)

    def kept_offsets(self, header: BatchHeader, *, keeps_tombstones: bool) -> set[int]:
        """The offsets of a batch of the section whose records stay."""
        start = max(header.base_offset - self.fates_start, 0)
        fates = self.fates[start : header.next_offset - self.fates_start]
        stays = (False, True, keeps_tombstones)  # By fate.
        first_offset = self.fates_start + start
        return {first_offset + at for at, fate in enumerate(fates) if stays[fate]}

    def is_untouched(self, facts: SegmentFacts) -> bool:
        """Whether all of a segment stays as it is; no means: look."""
        record_count = self.plain_counts.get(facts.base_offset)
        if record_count is None:
            return False
        start = max(facts.base_offset - self.fates_start, 0)
        end = facts.end_offset - self.fates_start
        return self.fates.count(NEWEST, start, end) == record_count

    def pass_over(self, header: BatchHeader) -> None:
        """A batch without keys."""
        self._reached = max(self._reached, header.next_offset)

    def take(self, header: BatchHeader, keys: Keys) -> bool:
        """Take in the keys of a batch; False: there is no room, for all or the last of them."""
        gathered = self._gathered
        gathered.keys.extend(keys.keys)
        gathered.offsets.extend(keys.offsets)
        gathered.tombstones.extend(keys.tombstones)
        self.pass_over(header)
        return len(gathered.keys) < _GATHERED_MAX or self.settle()

    def settle(self) -> bool:
        """Put what was gathered into the map."""
        gathered, self._gathered = self._gathered, Keys([], [], [])
        if self._put_what_fits(gathered):
            self.end_offset = max(self.end_offset, self._reached)
            return True
        return False

    def _put_what_fits(self, keys: Keys) -> bool:
        offsets = keys.offsets
        at = bisect_left(offsets, self.first_dirty)
        if at < len(offsets) and not self.record_count:
            self.fates_start = offsets[at]
        while at < len(offsets):
            end = min(at + self.offsets.room, bisect_left(offsets, self._fates_end))
            if end <= at:
                return False
            self._put(keys.keys[at:end], offsets[at:end], keys.tombstones)
            at = end
        return True

    @property
    def _fates_end(self) -> int:
        return self.fates_start + len(self.fates)

    def _put(self, keys: list[bytes], offsets: list[int], tombstones: list[int]) -> None:
        fates, start = self.fates, self.fates_start
        replaced = self.offsets.put(keys, offsets)
        first, last = offsets[0], offsets[-1]
        if last - first == len(offsets) - 1:
            fates[first - start : last + 1 - start] = bytes((NEWEST,)) * len(offsets)
        else:
            for offset in offsets:
                fates[offset - start] = NEWEST
        for offset in tombstones:
            if first <= offset <= last:
                fates[offset - start] = TOMBSTONE
        for offset in replaced:
            fates[offset - start] = GONE
        self.record_count += len(keys)
        self.end_offset = last + 1


def survey(job: CleanJob, spend: Spend) -> Survey:
    """Go through the dirty section, as far as the map of keys has room."""
    found = Survey(job)
    transactions, aborted = CleanedTransactions(), AbortedTransactions(job)
    for facts in job.segments:
        if facts.end_offset <= job.first_dirty:
            continue
        if facts.base_offset <= job.first_dirty:
            transactions.expect(aborted.going_on_in(facts, job.first_dirty))
        else:
            transactions.expect(aborted.beginning_in(facts))
        if not _survey_segment(job, facts, found, transactions, spend):
            break
        found.end_offset = facts.end_offset  # Over offsets that nothing is left of.
    return found


def _survey_segment(
    job: CleanJob,
    facts: SegmentFacts,
    found: Survey,
    transactions: CleanedTransactions,
    spend: Spend,
) -> bool:
    """Whether all of the segment found room."""
    start = _position_of(job, facts, job.first_dirty)
    plain_count: int | None = 0 if facts.base_offset >= job.first_dirty else None
    file = LogFile(job.log_path(facts), os.O_RDONLY)
    for _, header, batch in verified_batches(file, start, facts.size, buffer_bytes=job.io_bytes):
        spend(len(batch))
        if header.magic >= MAGIC and header.is_control:
            transactions.is_spent(header, batch)
            plain_count = None
        elif header.magic >= MAGIC and transactions.is_aborted(header):
            plain_count = None
        elif header.last_offset >= job.first_dirty:
            keys = _keys(header, batch)
            if plain_count is not None:
                plain_count = plain_count + len(keys.keys) if _is_plain(header, keys) else None
            if not found.take(header, keys):
                return False
            continue
        found.pass_over(header)
    if not found.settle():
        return False
    if plain_count is not None:
        found.plain_counts[facts.base_offset] = plain_count
    return True


def _keys(header: BatchHeader, batch: memoryview) -> Keys:
    if header.magic < MAGIC:
        return legacy_keys(batch)
    payload = read_payload(header, batch, bytes_max=DECOMPRESSED_BYTES_MAX)
    return scan_keys(payload, record_count=header.record_count, base_offset=header.base_offset)


def _is_plain(header: BatchHeader, keys: Keys) -> bool:
    """Whether a batch stays as it is if all its records are the newest of their keys."""
    return (
        header.magic >= MAGIC
        and not header.attributes & _NOT_PLAIN
        and 0 < header.record_count == len(keys.keys)
        and not keys.tombstones
    )


def _position_of(job: CleanJob, facts: SegmentFacts, offset: int) -> int:
    """Where to begin reading a segment for an offset; an index that is wrong costs time only."""
    if offset <= facts.base_offset:
        return 0
    segment = Segment(
        Path(job.directory),
        facts.base_offset,
        job.log_config,
        created_ms=0,
        sizes=(facts.size, facts.index_bytes, facts.time_index_bytes, 0),
    )
    try:
        OPEN_FILES.forget(job.log_path(facts))  # The name may have meant another file.
        return segment.position_of(offset)
    except CorruptIndex:
        return 0
    finally:
        OPEN_FILES.forget(job.log_path(facts))
