"""Compaction as the broker sees it: choosing a log, describing the work, taking in its results.

Reading and writing records is done in other processes (`worker.py`); who starts those and
talks to them is `broker/upkeep/cleaning.py`. What is left here is quick, except for `swap`, which
waits for the disk and belongs into a thread.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from penstock.records.topic_partition import TopicPartition
from penstock.storage.compaction.choice import DirtyLog, dirtiest, examine
from penstock.storage.compaction.job import CleanJob, SegmentFacts
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log
from penstock.storage.producers.producers import ProducerEntry
from penstock.storage.segments.files import CLEANED
from penstock.storage.segments.segment import SUFFIXES, CorruptIndex, Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerLimits:
    """What one process may use."""

    map_bytes: int
    load_factor: float
    io_bytes: int
    bytes_per_s: float


class Cleaner:
    """Knows which logs are being cleaned, and which cannot be."""

    def __init__(self) -> None:
        self.uncleanable: dict[TopicPartition, tuple[Log, str]] = {}  # With the reason.
        self.largest_dirty_share = 0.0  # When a log was last chosen.
        self.longest_overdue_ms = 0
        self.chosen_ms: int | None = None  # None: not yet.
        self._busy: set[TopicPartition] = set()

    def choose(self, logs: Iterable[Log], now_ms: int) -> "Cleaning | None":
        """The log to clean next, which is nobody else's until `Cleaning.close`."""
        return self.choose_of(list(self.examined(logs, now_ms)), now_ms)

    def choose_of(self, examined: Iterable[DirtyLog], now_ms: int) -> "Cleaning | None":
        """Like `choose`, among logs that were examined a moment ago."""
        found = [dirty for dirty in examined if self._may_clean(dirty.log)]
        self.chosen_ms = now_ms
        self.largest_dirty_share = max((log.dirty_share for log in found), default=0.0)
        self.longest_overdue_ms = max((log.overdue_ms for log in found), default=0)
        chosen = dirtiest(found)
        if chosen is None:
            return None
        self._busy.add(chosen.log.topic_partition)
        return Cleaning(self, chosen)

    def examined(self, logs: Iterable[Log], now_ms: int) -> Iterator[DirtyLog]:
        """How dirty those are that may be cleaned, one by one: there may be thousands."""
        self._forget_gone()
        for log in logs:
            if self._may_clean(log):
                # An index that is wrong, or a file that cannot be read: a reader will see to it.
                with suppress(CorruptIndex, OSError):
                    yield examine(log, now_ms)

    def _may_clean(self, log: Log) -> bool:
        partition = log.topic_partition
        is_free = partition not in self._busy and partition not in self.uncleanable
        return is_free and log.config.is_compacted and log.failure is None

    def _forget_gone(self) -> None:
        for partition, (log, _) in tuple(self.uncleanable.items()):
            if log.failure is not None:
                del self.uncleanable[partition]

    def give_up(self, log: Log, reason: str) -> None:
        """The log cannot be cleaned until the broker is started again."""
        self.uncleanable[log.topic_partition] = (log, reason)

    def release(self, log: Log) -> None:
        self._busy.discard(log.topic_partition)


class Cleaning:
    """One log being cleaned."""

    def __init__(self, cleaner: Cleaner, dirty: DirtyLog) -> None:
        self.log = dirty.log
        self.dirty = dirty
        self._cleaner = cleaner
        self._by_base = {segment.base_offset: segment for segment in dirty.segments}
        self._cut_count = dirty.log.cut_count

    def job(self, limits: CleanerLimits, now_ms: int) -> CleanJob:
        """The work, described for another process."""
        log, dirty = self.log, self.dirty
        config = log.config
        later = [s for s in log.segments if s.base_offset >= dirty.end_offset]
        return CleanJob(
            directory=str(log.dir),
            first_dirty=dirty.first_dirty,
            end_offset=dirty.end_offset,
            now_ms=now_ms,
            segments=tuple(_facts(dirty.segments, dirty.end_offset)),
            later_aborted=tuple((s.base_offset, s.transactions.count) for s in later),
            producers=tuple(_last_batches(log.producers(), dirty.end_offset)),
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            delete_retention_ms=config.delete_retention_ms,
            levels=_levels(config),
            map_bytes=limits.map_bytes,
            load_factor=limits.load_factor,
            io_bytes=limits.io_bytes,
            bytes_per_s=limits.bytes_per_s,
        )

    def swap(self, old: Sequence[int], new: Sequence[int], now_ms: int) -> bool:
        """Put finished segments in the place of others, by base offset.

        False: the log changed under the cleaning, or is not to be compacted any more.
        """
        cleaned = [self._cleaned(base_offset, now_ms) for base_offset in new]
        if not self.log.config.is_compacted:
            for segment in cleaned:
                segment.delete()
            return False
        old_segments = [self._by_base[base_offset] for base_offset in old]
        return self.log.replace_segments(cleaned, old_segments, now_ms=now_ms)

    def _cleaned(self, base_offset: int, now_ms: int) -> Segment:
        log = self.log
        names = [log.dir / f"{base_offset:020d}{kind}{CLEANED}" for kind in SUFFIXES]
        return Segment(
            log.dir,
            base_offset,
            log.config,
            created_ms=now_ms,
            sizes=[_size(path) for path in names],
            suffix=CLEANED,
        )

    def finish(self, end_offset: int) -> None:
        """All of it is in place: the next cleaning begins where this one ended."""
        if self.log.cut_count == self._cut_count:
            self.log.cleaned_offset = end_offset

    def drop_unfinished(self) -> None:
        """Remove what a process left that did not come to its end."""
        with suppress(FileNotFoundError):
            for path in self.log.dir.glob(f"*{CLEANED}"):
                path.unlink(missing_ok=True)

    def give_up(self, reason: str) -> None:
        self._cleaner.give_up(self.log, reason)

    def close(self) -> None:
        self._cleaner.release(self.log)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0  # Most segments have no index of transactions.


def _facts(segments: Sequence[Segment], end_offset: int) -> Iterator[SegmentFacts]:
    ends = [segment.base_offset for segment in segments[1:]] + [end_offset]
    for segment, segment_end in zip(segments, ends, strict=True):
        yield SegmentFacts.of(segment, segment_end)


def _last_batches(
    producers: Iterable[ProducerEntry], end_offset: int
) -> Iterator[tuple[int, int, int]]:
    """Of the living producers, those whose last batch or marker may be among what is cleaned."""
    for entry in producers:
        last_offset = entry.batches[-1].last_offset if entry.batches else -1
        if last_offset < end_offset:
            yield entry.producer_id, last_offset, entry.producer_epoch


def _levels(config: LogConfig) -> dict[str, int]:
    return {
        "gzip": config.compression_gzip_level,
        "lz4": config.compression_lz4_level,
        "zstd": config.compression_zstd_level,
    }
