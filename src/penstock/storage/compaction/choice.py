"""Which log to compact next, and how far: the rules of Apache Kafka, with the time as an argument.

Never cleaned are the active segment, what is not committed or not decided (I26: nothing at or above
the last stable offset), and what is newer than `min.compaction.lag.ms`. Of the logs that are dirty
enough, or older than `max.compaction.lag.ms` allows, the one with the largest dirty share is next.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.errors import CorruptRecord
from penstock.storage.log.config import LONG_MAX
from penstock.storage.log.log import Log
from penstock.storage.segments.batch_scan import read_headers
from penstock.storage.segments.segment import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class DirtyLog:
    """How much of a log there is to clean: from `first_dirty` up to before `end_offset`."""

    log: Log
    segments: tuple[Segment, ...]  # Up to `end_offset`.
    first_dirty: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: int  # How long the oldest dirty record waits beyond the longest lag allowed.

    @property
    def dirty_share(self) -> float:
        total_bytes = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total_bytes if total_bytes else 0.0

    @property
    def is_due(self) -> bool:
        if self.overdue_ms > 0 and self.dirty_bytes > 0:
            return True
        return self.dirty_share > self.log.config.min_cleanable_dirty_ratio


def dirtiest(logs: Iterable[DirtyLog]) -> DirtyLog | None:
    """The log to clean next; None: all are clean enough."""
    due = [log for log in logs if log.is_due]
    return max(due, key=lambda log: log.dirty_share, default=None)


def examine(log: Log, now_ms: int) -> DirtyLog:
    """What of a log may be cleaned now."""
    segments = log.segments
    first_dirty = first_dirty_offset(log)
    dirty = _from(segments, first_dirty)[:-1]
    end_offset = _end_offset(log, segments, dirty, now_ms)
    cleanable = tuple(segment for segment in segments if segment.base_offset < end_offset)
    return DirtyLog(
        log=log,
        segments=cleanable,
        first_dirty=first_dirty,
        end_offset=max(end_offset, first_dirty),
        clean_bytes=sum(s.size for s in segments if s.base_offset < first_dirty),
        dirty_bytes=sum(s.size for s in dirty if s.base_offset < end_offset),
        overdue_ms=_overdue_ms(dirty, log.config.max_compaction_lag_ms, now_ms),
    )


def first_dirty_offset(log: Log) -> int:
    """Where the last cleaning ended; the log's start if that is not in the log any more."""
    noted, start = log.cleaned_offset, log.log_start_offset
    return noted if noted is not None and start <= noted <= log.log_end_offset else start


def _from(segments: Sequence[Segment], offset: int) -> Sequence[Segment]:
    """The segments from the one with an offset on."""
    before = sum(1 for _, following in pairwise(segments) if following.base_offset <= offset)
    return segments[before:]


def _end_offset(
    log: Log, segments: Sequence[Segment], dirty: Sequence[Segment], now_ms: int
) -> int:
    """The beginning of the first segment that has to wait."""
    limit = min(log.last_stable_offset, segments[-1].base_offset)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        fresh = (s.base_offset for s in dirty if s.largest_timestamp_ms() > now_ms - lag_ms)
        limit = min(limit, next(fresh, limit))
    return _from(segments, limit)[0].base_offset


def _overdue_ms(dirty: Sequence[Segment], lag_ms: int, now_ms: int) -> int:
    if lag_ms >= LONG_MAX:
        return 0
    times = [time_ms for time_ms in map(_first_timestamp, dirty) if time_ms > 0]
    return max(now_ms - lag_ms - min(times), 0) if times else 0


def _first_timestamp(segment: Segment) -> int:
    if segment.first_timestamp is None:
        try:
            headers = read_headers(segment.file, 0, segment.size)
            first = next((header.max_timestamp for _, header in headers), -1)
        except CorruptRecord:
            first = -1  # The cleaning itself will say what is wrong.
        segment.first_timestamp = first
    return segment.first_timestamp
