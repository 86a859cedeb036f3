"""The segments of a log in order, and what is found by going along them.

A lookup names an offset or a timestamp; the row knows which segment to ask, and goes on to the
next where compaction or an early roll left a segment without an answer.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from penstock.storage.log.time_search import TimedBatch, TimedSegment
from penstock.storage.segments.file_slice import EMPTY
from penstock.storage.segments.segment import ReadResult, Segment
from penstock.storage.segments.transaction_index import AbortedTransaction


class SegmentRow:
    """Never empty; the last segment is the active one."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._set(segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.segments)

    def __len__(self) -> int:
        return len(self.segments)

    @property
    def first(self) -> Segment:
        return self.segments[0]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    def add(self, segment: Segment) -> None:
        self._set([*self.segments, segment])

    def replace(self, old: Sequence[Segment], new: Sequence[Segment]) -> None:
        """Put segments in the place of others; readers never see neither or both."""
        gone = set(old)
        kept = [segment for segment in self.segments if segment not in gone]
        self._set(sorted([*kept, *new], key=lambda segment: segment.base_offset))

    def _set(self, segments: Sequence[Segment]) -> None:
        self.segments = tuple(segments)
        self.bases = [segment.base_offset for segment in segments]
        self.active = self.segments[-1]

    def number_of(self, offset: int) -> int:
        """Which segment an offset belongs to."""
        return max(bisect_right(self.bases, offset) - 1, 0)

    def end_of(self, number: int, log_end_offset: int) -> int:
        """Where a segment ends: where the next begins."""
        return self.bases[number + 1] if number + 1 < len(self.bases) else log_end_offset

    def read(
        self, offset: int, *, bytes_max: int, end_offset: int, log_end_offset: int, min_one: bool
    ) -> ReadResult:
        """Batches of one segment, from `offset` up to `end_offset`."""
        active = self.active
        number = len(self.bases) - 1 if offset >= active.base_offset else self.number_of(offset)
        while number < len(self.bases) and self.bases[number] < end_offset:
            found = self.segments[number].read(
                offset,
                bytes_max=bytes_max,
                end_offset=end_offset,
                next_base=self.end_of(number, log_end_offset),
                min_one=min_one,
            )
            if found is not None:
                return found
            number += 1
        return ReadResult(EMPTY, offset)

    def batch_as_new_as(self, timestamp: int, from_offset: int) -> TimedBatch | None:
        """The first batch from an offset on that says to be as new as a timestamp."""
        for segment in self.segments[self.number_of(from_offset) :]:
            if segment.size and segment.largest.timestamp >= timestamp:
                found = segment.batch_as_new_as(timestamp, from_offset)
                if found is not None:
                    return found
        return None

    def segment_newer_than(
        self, timestamp: int, from_offset: int, log_end_offset: int
    ) -> TimedSegment | None:
        """The first segment from an offset on that says to be newer than a timestamp."""
        for number in range(self.number_of(from_offset), len(self.segments)):
            segment = self.segments[number]
            newest = segment.largest.timestamp if segment.size else timestamp
            if newest > timestamp:
                return TimedSegment(
                    segment.base_offset, self.end_of(number, log_end_offset), newest
                )
        return None

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions with records from `start` up to before `end`."""
        found = []
        for segment in self.segments[self.number_of(start) :]:
            for entry in segment.transactions.entries():
                if entry.last_offset >= start and entry.first_offset < end:
                    found.append(entry)
                if entry.last_stable_offset >= end:
                    return found  # All before `end` was decided when this marker came.
        return found
