"""One piece of a log: the batches of a range of offsets, and the indexes that find them.

    00000000000000000042.log         the batches, as they went over the wire
    00000000000000000042.index       offsets to positions (offset_index.py)
    00000000000000000042.timeindex   timestamps to offsets (time_index.py)
    00000000000000000042.txnindex    aborted transactions (transaction_index.py)

A segment writes and reads bytes at positions. Which segment takes an append, when a new one begins
and which may go is decided in `log.py`; how a damaged one is mended, in `recovery.py`.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from penstock.errors import CorruptRecord
from penstock.storage.directories.durable_file import sync_file
from penstock.storage.log.config import LogConfig
from penstock.storage.log.time_search import TimedBatch
from penstock.storage.segments import offset_index, time_index, transaction_index
from penstock.storage.segments.batch_scan import BatchPlace, read_headers, walk
from penstock.storage.segments.file_slice import EMPTY, OPEN_FILES, FileSlice, LogFile, read_exactly
from penstock.storage.segments.growing_file import GrowingFile
from penstock.storage.segments.offset_index import OffsetIndex
from penstock.storage.segments.time_index import NO_TIMESTAMP, TimeEntry, TimeIndex
from penstock.storage.segments.transaction_index import TransactionIndex

LOG_SUFFIX: Final = ".log"
SUFFIXES: Final = (
    LOG_SUFFIX,
    offset_index.SUFFIX,
    time_index.SUFFIX,
    transaction_index.SUFFIX,
)
INT_MAX: Final = 2**31 - 1

_MARKS_MAX: Final = 256


class Placed(NamedTuple):
    """What the indexes need to know of a batch."""

    size: int
    last_offset: int
    timestamp: int


class ReadResult(NamedTuple):
    """Whole batches of one segment; the first may begin before the offset that was asked for."""

    records: FileSlice | bytes
    next_offset: int  # Where the next read goes on.


class CorruptIndex(Exception):
    """An index does not fit its log and must be built anew."""

    def __init__(self, segment: "Segment") -> None:
        super().__init__(f"the indexes of {segment.log_path} do not fit it")
        self.segment = segment


class Segment:
    """Only its log appends to a segment, and only under the log's lock."""

    __slots__ = (
        "_growing",
        "_interval_bytes",
        "_largest",
        "_log_name",
        "_marks",
        "_since_entry",
        "base_offset",
        "created_ms",
        "directory",
        "first_timestamp",
        "jitter_ms",
        "offsets",
        "size",
        "suffix",
        "times",
        "transactions",
    )

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        *,
        created_ms: int,
        sizes: Sequence[int] = (0, 0, 0, 0),  # In bytes, in the order of SUFFIXES.
        suffix: str = "",  # `.cleaned` or `.swap` while compaction makes it.
        jitter_ms: int = 0,
    ) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        self.created_ms = created_ms
        self.jitter_ms = jitter_ms
        self.first_timestamp: int | None = None  # None: not read from the file yet.
        self.size = sizes[0]
        self._log_name = self._name(LOG_SUFFIX)
        bytes_max = config.segment_index_bytes
        self.offsets = OffsetIndex(
            self._name(offset_index.SUFFIX),
            base_offset,
            count=sizes[1] // offset_index.ENTRY_BYTES,
            bytes_max=bytes_max,
        )
        self.times = TimeIndex(
            self._name(time_index.SUFFIX),
            base_offset,
            count=sizes[2] // time_index.ENTRY_BYTES,
            bytes_max=bytes_max,
        )
        self.transactions = TransactionIndex(
            self._name(transaction_index.SUFFIX),
            count=sizes[3] // transaction_index.ENTRY_BYTES,
        )
        self._interval_bytes = config.index_interval_bytes
        self._growing: GrowingFile | None = None  # None: closed for appends; readers open it.
        self._largest: TimeEntry | None = None  # None: not read from the index yet.
        self._since_entry = 0
        self._marks: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"Segment({self.log_path}, {self.size} bytes)"

    @classmethod
    def create(
        cls,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        *,
        now_ms: int,
        suffix: str = "",
        jitter_ms: int = 0,
    ) -> "Segment":
        """A new, empty segment, open for appends."""
        segment = cls(
            directory,
            base_offset,
            config,
            created_ms=now_ms,
            suffix=suffix,
            jitter_ms=jitter_ms,
        )
        OPEN_FILES.forget(segment._log_name)
        try:
            segment._growing = GrowingFile(segment._log_name, 0, is_new=True)
            segment.reset_indexes()
            if config.preallocate:
                segment._growing.reserve(config.segment_bytes)
        except OSError:
            segment.delete()
            raise
        return segment

    def _name(self, kind: str) -> str:
        # Text, not a Path: a broker makes thousands of these when it starts.
        return f"{self.directory}/{self.base_offset:020d}{kind}{self.suffix}"

    @property
    def log_path(self) -> Path:
        return Path(self._log_name)

    # Opening and closing for appends

    def open_for_append(self) -> GrowingFile:
        if self._growing is None:
            OPEN_FILES.forget(self._log_name)
            self._growing = GrowingFile(self._log_name, self.size, is_new=False)
        return self._growing

    def close_for_append(self) -> None:
        """Make the files final: the largest timestamp in the index, nothing reserved."""
        largest = self.largest
        self.times.append(largest.timestamp, largest.offset, is_closing=True)
        self.write_indexes()
        if self._growing is not None:
            self._growing.trim()
            OPEN_FILES.put(self._growing.file)
            self._growing = None

    def give_back_reserved(self) -> None:
        """Appends go on, without blocks taken in advance."""
        if self._growing is not None:
            self._growing.give_back()

    @property
    def file(self) -> LogFile:
        growing = self._growing  # Read once: a flush may ask from another thread.
        return OPEN_FILES.get(self._log_name) if growing is None else growing.file

    # Appending

    def append(self, buffers: Sequence[memoryview], size: int, placed: Sequence[Placed]) -> None:
        """Write batches at the end, all or none; an OSError leaves the segment as it was."""
        growing = self._growing or self.open_for_append()
        growing.append(buffers, size)
        position = self.size
        self.size = growing.size
        for batch_size, last_offset, timestamp in placed:
            self.index_batch(position, batch_size, last_offset, timestamp)
            position += batch_size

    def index_batch(self, position: int, size: int, last_offset: int, timestamp: int) -> None:
        """Note a batch that is in the file; an entry is due every so many bytes."""
        largest = self._largest or self.largest
        if timestamp > largest.timestamp:
            largest = self._largest = TimeEntry(timestamp, last_offset)
        if position == 0:
            self.first_timestamp = timestamp
        if self._since_entry > self._interval_bytes:
            self.offsets.append(last_offset, position)
            self.times.append(largest.timestamp, largest.offset)
            self._since_entry = 0
        self._since_entry += size

    def must_roll(
        self, size: int, last_offset: int, timestamp: int, now_ms: int, config: LogConfig
    ) -> bool:
        """Whether an append of this size, ending with this offset, belongs into a new segment."""
        if not self.size:
            return last_offset - self.base_offset > INT_MAX
        first = self.first_timestamp
        if first is None:
            first = self.first_timestamp = self._read_first_timestamp()
        # How far the records go in time; by the clock where they have no timestamps.
        waited_ms = timestamp - first if first >= 0 else now_ms - self.created_ms
        return (
            self.size + size > config.segment_bytes
            or last_offset - self.base_offset > INT_MAX
            or waited_ms > config.roll_ms - self.jitter_ms
            or self.offsets.is_full
            or self.times.is_full
        )

    def _read_first_timestamp(self) -> int:
        for _, header in read_headers(self.file, 0, self.size):
            return header.max_timestamp
        return NO_TIMESTAMP

    # Reading

    def read(
        self, offset: int, *, bytes_max: int, end_offset: int, next_base: int, min_one: bool
    ) -> ReadResult | None:
        """Whole batches from the one with `offset` on; None: all batches here are before it.

        Nothing at or above `end_offset` is given; `next_base` is where this segment ends. A first
        batch larger than `bytes_max` is given only with `min_one`, and then alone.
        """
        start = self.position_of(offset)
        if start >= self.size:
            return None
        end, next_offset = self.size, next_base
        if end_offset < next_base:
            end, next_offset = self.position_of(end_offset), end_offset
        if start >= end:
            return ReadResult(EMPTY, offset)
        if end - start > bytes_max:
            end, next_offset = self._cut(start, offset, start + bytes_max, min_one=min_one)
            if start == end:
                return ReadResult(EMPTY, offset)
        self._remember(next_offset, end)
        return ReadResult(FileSlice(self.file, start, end - start), next_offset)

    def position_of(self, offset: int) -> int:
        """Where the first batch begins that ends at or after `offset`; the end if none does."""
        if offset <= self.base_offset:
            return 0
        known = self._marks.get(offset)
        if known is not None:
            return known
        position = self._search(offset)
        self._remember(offset, position)
        return position

    def _search(self, offset: int) -> int:
        entry = self.offsets.before_offset(offset)
        position = entry.position
        for place in self._walk(entry.position, entry.offset):
            if place.last_offset >= offset:
                return place.position
            position = place.end
        return position

    def _cut(self, start: int, offset: int, limit: int, *, min_one: bool) -> tuple[int, int]:
        """The last end of a batch up to `limit`, and the offset behind it."""
        entry = self.offsets.before_position(limit)
        end, next_offset = start, offset
        begin = max(start, entry.position)
        known = entry.offset if begin == entry.position else None
        for place in self._walk(begin, known):
            if place.end > limit:
                if place.position > start:
                    end, next_offset = place.position, place.base_offset
                elif min_one:
                    end, next_offset = place.end, place.last_offset + 1
                break
            end, next_offset = place.end, place.last_offset + 1
        return end, next_offset

    def _walk(self, position: int, indexed: int | None) -> Iterator[BatchPlace]:
        """Batches from a position; one out of the index must be where the index says."""
        is_first = indexed is not None and position > 0
        if is_first and position >= self.size:
            raise CorruptIndex(self)
        try:
            for place in walk(self.file, position, self.size):
                if is_first and not self.base_offset <= place.base_offset <= (indexed or 0):
                    raise CorruptIndex(self)
                is_first = False
                yield place
        except CorruptRecord as error:
            if is_first:
                raise CorruptIndex(self) from error
            raise

    def _remember(self, offset: int, position: int) -> None:
        """Remember where a sequential reader goes on; the oldest such position is forgotten."""
        marks = self._marks
        if len(marks) >= _MARKS_MAX:
            for old in list(marks)[: _MARKS_MAX // 2]:
                marks.pop(old, None)
        marks[offset] = position

    def next_offset(self) -> int:
        """The offset after the last batch, from the headers behind the last index entry."""
        last = self.offsets.last()
        offset = self.base_offset
        for place in self._walk(last.position, last.offset):
            offset = place.last_offset + 1
        return offset

    # Timestamps

    @property
    def largest(self) -> TimeEntry:
        """The largest timestamp and the last offset of its batch; -1 without timestamps."""
        if self._largest is None:
            if not self.times.is_sane():
                raise CorruptIndex(self)
            self._largest = self.times.last()
        return self._largest

    def largest_timestamp_ms(self) -> int:
        """How new the segment is: by its records, or its file's age where they have no time."""
        timestamp = self.largest.timestamp
        return timestamp if timestamp >= 0 else self.modified_ms()

    def modified_ms(self) -> int:
        return self.log_path.stat().st_mtime_ns // 1_000_000

    def batch_as_new_as(self, timestamp: int, from_offset: int) -> TimedBatch | None:
        """The first batch that reaches an offset and says to be as new as a timestamp."""
        known = self.times.before_timestamp(timestamp)
        position = self.position_of(max(known.offset, from_offset))
        file = self.file
        for at, header in read_headers(file, position, self.size):
            if header.max_timestamp >= timestamp and header.last_offset >= from_offset:
                return TimedBatch(header, read_exactly(file.fd, at, header.size_bytes))
        return None

    # Cutting, moving, deleting

    def truncate_to(self, offset: int) -> None:
        """Drop the batch with `offset` and everything behind it; the segment is open again."""
        position = self.position_of(offset)
        self.open_for_append()
        self.offsets.truncate_to(offset)
        self.times.truncate_to(offset)
        self.transactions.truncate_to(offset)
        self.truncate_bytes(position)
        self._largest = self._read_largest()
        self._since_entry = 0

    def truncate_bytes(self, position: int) -> None:
        """Cut the file; the indexes are the caller's."""
        self.open_for_append().truncate(position)
        self.size = position
        self._marks.clear()
        if not position:
            self.first_timestamp = None

    def _read_largest(self) -> TimeEntry:
        largest = self.times.last()
        position = self.position_of(largest.offset)
        for _, header in read_headers(self.file, position, self.size):
            if header.max_timestamp > largest.timestamp:
                largest = TimeEntry(header.max_timestamp, header.last_offset)
        return largest

    def reset_indexes(self) -> None:
        """Begin the indexes of offsets and timestamps anew."""
        self.offsets.file.create()
        self.times.create()
        self._largest = TimeEntry(NO_TIMESTAMP, self.base_offset)
        self._since_entry = 0
        self._marks.clear()

    def write_indexes(self) -> None:
        self.offsets.file.write_out()
        self.times.file.write_out()

    def sync(self) -> None:
        """Bring the files to the disk, as far as they are written and not deleted meanwhile."""
        with suppress(FileNotFoundError):
            file = self.file  # Referenced, so that nobody closes it during the fsync.
            os.fsync(file.fd)
            for path in self.paths()[1:3]:
                sync_file(path)
            if self.transactions.count:
                sync_file(self.transactions.path)

    def paths(self) -> list[Path]:
        return [Path(self._name(kind)) for kind in SUFFIXES]

    def rename(self, suffix: str) -> list[Path]:
        """Give the files another suffix; those that exist, under their new names."""
        OPEN_FILES.forget(self._log_name)
        old = self.paths()
        self.suffix = suffix
        renamed = []
        for path, new_path in zip(old, self.paths(), strict=True):
            with suppress(FileNotFoundError):
                path.replace(new_path)
                renamed.append(new_path)
        self._take_paths()
        return renamed

    def move_to(self, directory: Path) -> None:
        """The directory has another name; open files do not mind."""
        OPEN_FILES.forget(self._log_name)
        self.directory = directory
        self._take_paths()

    def _take_paths(self) -> None:
        names = [self._name(kind) for kind in SUFFIXES]
        self._log_name, self.offsets.file.path, self.times.file.path, self.transactions.path = names

    def delete(self) -> None:
        OPEN_FILES.forget(self._log_name)
        for path in self.paths():
            path.unlink(missing_ok=True)
