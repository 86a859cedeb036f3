"""Which record of a log is as new as a time, or the newest of all.

The indexes lead to a batch, and its records decide. The batch is copied under the log's lock, but
unpacked without it, because a few kilobytes can unpack to a hundred megabytes: whoever appends
meanwhile does not wait. Whoever cannot wait itself is told so, and asks again in a thread.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import CorruptRecord
from penstock.records.batch import MAGIC, BatchHeader, read_records
from penstock.records.compression import DECOMPRESSED_BYTES_MAX
from penstock.records.record import Record

if TYPE_CHECKING:
    from penstock.storage.log.log import Log

# So much is unpacked and looked at in a few milliseconds.
_AT_ONCE_BYTES_MAX: Final = 64 * 1024
_AT_ONCE_BATCHES_MAX: Final = 8


class UnpacksMuch(Exception):
    """The records are too many to be looked at while others wait."""


class TimestampOffset(NamedTuple):
    """A record found by its time."""

    timestamp: int
    offset: int
    leader_epoch: int


class TimedBatch(NamedTuple):
    """A batch that may hold what is searched."""

    header: BatchHeader
    data: bytes


class TimedSegment(NamedTuple):
    """Where a segment begins and ends, and how new it says to be."""

    base_offset: int
    end_offset: int
    timestamp: int


class TimeSearch:
    """One search in one log; with `at_once` it raises UnpacksMuch instead of taking long."""

    def __init__(self, log: "Log", *, at_once: bool = False) -> None:
        self._log = log
        self._at_once = at_once
        self._batches_left = _AT_ONCE_BATCHES_MAX

    def first(self, timestamp: int) -> TimestampOffset | None:
        """The first record as new as a timestamp; None: all are older."""
        return self._first(timestamp, self._log.log_start_offset, None)

    def newest(self) -> TimestampOffset | None:
        """The newest record, the first of several; None: no record has a timestamp."""
        best: TimestampOffset | None = None
        at = start = self._log.log_start_offset
        end = self._log.log_end_offset  # What is appended meanwhile would keep this going.
        while at < end and (segment := self._log.segment_newer_than(_time_of(best), at)):
            found = None
            if start <= segment.base_offset:
                found = self._first(segment.timestamp, segment.base_offset, segment.end_offset)
            # It may be that of a batch whose records compaction took: look at all the others.
            found = found or self._newest_in(segment, max(start, segment.base_offset), best)
            best = max(best or found, found or best, key=_time_of)
            at = segment.end_offset
        return best

    def _first(
        self, timestamp: int, from_offset: int, end_offset: int | None
    ) -> TimestampOffset | None:
        at = from_offset
        while batch := self._log.batch_as_new_as(timestamp, at):
            if end_offset is not None and batch.header.base_offset >= end_offset:
                return None
            for found in self._records(batch, from_offset):
                if found.timestamp >= timestamp:
                    return found
            at = batch.header.last_offset + 1
        return None

    def _newest_in(
        self, segment: TimedSegment, from_offset: int, best: TimestampOffset | None
    ) -> TimestampOffset | None:
        at = from_offset
        while batch := self._log.batch_as_new_as(_time_of(best) + 1, at):
            if batch.header.base_offset >= segment.end_offset:
                break
            for found in self._records(batch, from_offset):
                if found.timestamp > _time_of(best):
                    best = found
            at = batch.header.last_offset + 1
        return best

    def _records(self, batch: TimedBatch, from_offset: int) -> Iterator[TimestampOffset]:
        """The times and offsets in a batch, leaving out records before an offset."""
        header = batch.header
        epoch = header.leader_epoch
        if header.magic < MAGIC:
            yield TimestampOffset(header.max_timestamp, header.last_offset, epoch)
            return
        for record in self._unpacked(batch):
            if record.offset >= from_offset:
                yield TimestampOffset(record.timestamp, record.offset, epoch)

    def _unpacked(self, batch: TimedBatch) -> Iterator[Record]:
        if not self._at_once:
            return read_records(batch.data, bytes_max=DECOMPRESSED_BYTES_MAX, are_views=True)
        self._batches_left -= 1
        if len(batch.data) > _AT_ONCE_BYTES_MAX or not self._batches_left:
            raise UnpacksMuch
        try:
            return read_records(batch.data, bytes_max=_AT_ONCE_BYTES_MAX, are_views=True)
        except CorruptRecord:
            raise UnpacksMuch from None  # Damaged, or only too large for now: a thread tells.


def _time_of(found: TimestampOffset | None) -> int:
    return -1 if found is None else found.timestamp
