"""From which offset on records may be as new as a timestamp: the `.timeindex` file.

An entry says that no record up to an offset is newer than a timestamp, in twelve bytes:

    int64  the largest timestamp so far, in milliseconds
    int32  last offset of the batch that holds it, less the base offset

An entry is added beside one of the offset index, and only when the timestamp grew. The last entry
of a segment that takes no more appends is its largest timestamp, which is what retention reads.
"""

from struct import Struct
from typing import Final, NamedTuple

from penstock.storage.segments.index_file import IndexFile

SUFFIX: Final = ".timeindex"
ENTRY_BYTES: Final = 12
_ENTRY: Final = Struct(">qi")
_TIMESTAMP, _OFFSET = 0, 1

NO_TIMESTAMP: Final = -1


class TimeEntry(NamedTuple):
    """No record up to `offset` is newer than `timestamp`; -1: nothing is known."""

    timestamp: int
    offset: int


class TimeIndex:
    """Entries grow in both numbers."""

    __slots__ = ("_base_offset", "_last_timestamp", "entries_max", "file")

    def __init__(self, path: str, base_offset: int, *, count: int, bytes_max: int) -> None:
        self.file = IndexFile(path, _ENTRY, count)
        self.entries_max = bytes_max // ENTRY_BYTES
        self._base_offset = base_offset
        self._last_timestamp: int | None = None  # None: not read from the file yet.

    @property
    def is_full(self) -> bool:
        # The last place is kept for the entry that closes the segment.
        return self.file.count >= self.entries_max - 1

    def append(self, timestamp: int, offset: int, *, is_closing: bool = False) -> None:
        """Add an entry if it says more than the last; `is_closing` may use the last place."""
        if self._last_timestamp is None:
            self._last_timestamp = self.last().timestamp
        if timestamp > self._last_timestamp and (is_closing or not self.is_full):
            self.file.append(timestamp, offset - self._base_offset)
            self._last_timestamp = timestamp

    def before_timestamp(self, timestamp: int) -> TimeEntry:
        """Records as new as the timestamp are not before the batch that ends at this offset."""
        return self._absolute(self.file.find_last(_TIMESTAMP, timestamp))

    def last(self) -> TimeEntry:
        return self._absolute(self.file.last())

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and all after it."""
        self.file.truncate(self.file.count_through(_OFFSET, offset - self._base_offset - 1))
        self._last_timestamp = None

    def create(self) -> None:
        self.file.create()
        self._last_timestamp = NO_TIMESTAMP

    def _absolute(self, entry: tuple[int, int] | None) -> TimeEntry:
        if entry is None:
            return TimeEntry(NO_TIMESTAMP, self._base_offset)
        return TimeEntry(entry[0], self._base_offset + entry[1])

    def is_sane(self) -> bool:
        """Whether the first and the last entry can be true."""
        first, last = self.file.first(), self.file.last()
        if first is None or last is None:
            return True
        return 0 <= first[0] <= last[0] and 0 <= first[1] <= last[1]
