"""Where in a segment an offset is, roughly: the `.index` file.

An entry says that the batch at a file position ends with an offset. Both numbers are relative, the
offset to the segment's base, so that an entry takes eight bytes:

    int32  last offset of the batch, less the base offset
    int32  file position where the batch begins

A search finds the last entry at or below what is wanted and reads batch headers from there.
"""

from struct import Struct
from typing import Final, NamedTuple

from penstock.storage.segments.index_file import IndexFile

SUFFIX: Final = ".index"
ENTRY_BYTES: Final = 8
_ENTRY: Final = Struct(">ii")
_OFFSET, _POSITION = 0, 1


class OffsetPosition(NamedTuple):
    """No batch before `position` holds an offset above `offset`."""

    offset: int
    position: int


class OffsetIndex:
    """Entries grow in both numbers."""

    __slots__ = ("_base_offset", "entries_max", "file")

    def __init__(self, path: str, base_offset: int, *, count: int, bytes_max: int) -> None:
        self.file = IndexFile(path, _ENTRY, count)
        self.entries_max = bytes_max // ENTRY_BYTES
        self._base_offset = base_offset

    @property
    def is_full(self) -> bool:
        return self.file.count >= self.entries_max

    def append(self, last_offset: int, position: int) -> None:
        if self.file.count < self.entries_max:
            self.file.append(last_offset - self._base_offset, position)

    def before_offset(self, offset: int) -> OffsetPosition:
        """Where to begin looking for an offset."""
        return self._absolute(self.file.find_last(_OFFSET, offset - self._base_offset))

    def before_position(self, position: int) -> OffsetPosition:
        """The last batch known to begin at or below a position."""
        return self._absolute(self.file.find_last(_POSITION, position))

    def last(self) -> OffsetPosition:
        return self._absolute(self.file.last())

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and all after it."""
        self.file.truncate(self.file.count_through(_OFFSET, offset - self._base_offset - 1))

    def _absolute(self, entry: tuple[int, int] | None) -> OffsetPosition:
        if entry is None:
            return OffsetPosition(self._base_offset, 0)
        return OffsetPosition(self._base_offset + entry[0], entry[1])

    def is_sane(self, log_bytes: int) -> bool:
        """Whether the last entry can be true; what lies between is checked when it is used."""
        last = self.file.last()
        return last is None or (last[0] >= 0 and 0 < last[1] < log_bytes)
