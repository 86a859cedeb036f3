"""A file of fixed-width pairs of numbers that only grows at its end: the body of a sparse index.

New entries gather in memory and are written a page at a time, because an index entry is due with
nearly every append and a system call costs as much as the rest of the entry. The file may lag
behind the log while its segment takes appends; a flush, a roll or a close writes all of it, and
after a crash the index of such a segment is built anew. Unlike Apache Kafka we do not map the file
into memory: writing to a mapped hole on a full disk would end the process. So the file is never
longer than its entries, and there is nothing to trim. No descriptor is held between calls, since
a broker has more indexes than it may have open files.

What the numbers mean is up to `offset_index` and `time_index`.
"""

import errno
import os
from bisect import bisect_right
from operator import itemgetter
from struct import Struct
from typing import Final, cast

Entry = tuple[int, int]

_PAGE_ENTRIES: Final = 128
_FIELDS: Final = (itemgetter(0), itemgetter(1))
_NO_PAGE: Final[tuple[int, list[Entry]]] = (-1, [])


class IndexFile:
    """Entries (a, b); both numbers never fall from one entry to the next."""

    __slots__ = ("_cached", "_entry", "_pending", "_spill_bytes", "_written", "count", "path")

    def __init__(self, path: str, entry: Struct, count: int) -> None:
        self.path = path
        self.count = count
        self._entry = entry
        self._written = count  # Entries in the file; the others are pending.
        self._pending = bytearray()
        self._spill_bytes = _PAGE_ENTRIES * entry.size
        self._cached = _NO_PAGE  # The page last decoded; a sequential reader stays in one.

    def create(self) -> None:
        """Begin empty, whatever the file held."""
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644))
        self.count = self._written = 0
        self._pending.clear()
        self._cached = _NO_PAGE

    # Writing

    def append(self, first: int, second: int) -> None:
        self._pending += self._entry.pack(first, second)
        self.count += 1
        if len(self._pending) >= self._spill_bytes:
            self._spill()

    def _spill(self) -> None:
        """Write what is pending; a full disk is for the next flush to tell, not for an append."""
        try:
            self.write_out()
        except OSError:
            self._spill_bytes = len(self._pending) + _PAGE_ENTRIES * self._entry.size

    def write_out(self) -> None:
        """Bring the file up to the last entry."""
        if self._pending:
            with _Opened(self.path) as fd:
                self._write_pending(fd)

    def _write_pending(self, fd: int) -> None:
        width = self._entry.size
        whole = os.pwrite(fd, self._pending, self._written * width) // width
        self._written += whole
        del self._pending[: whole * width]
        if self._pending:
            raise OSError(errno.ENOSPC, "an index was written only in part", self.path)
        self._spill_bytes = _PAGE_ENTRIES * width

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries."""
        if count >= self.count:
            return
        width = self._entry.size
        if count < self._written:
            os.truncate(self.path, count * width)
            self._written = count
        del self._pending[(count - self._written) * width :]
        self.count = count
        self._cached = _NO_PAGE

    # Looking up

    def first(self) -> Entry | None:
        """The oldest entry; None: there is none."""
        if not self.count:
            return None
        with _Opened(self.path) as fd:
            return self._unpack(self._read(fd, 0, 1))[0]

    def last(self) -> Entry | None:
        """The newest entry; None: there is none."""
        if not self.count:
            return None
        if self._pending:
            first, second = self._entry.unpack_from(self._pending, -self._entry.size)
            return first, second
        with _Opened(self.path) as fd:
            return self._unpack(self._read(fd, self.count - 1, 1))[0]

    def find_last(self, field: int, value: int) -> Entry | None:
        """The last entry whose first (0) or second (1) number is at most `value`."""
        page, at = self._find(field, value)[1:]
        return page[at - 1] if at else None

    def count_through(self, field: int, value: int) -> int:
        """How many entries have a first or second number of at most `value`."""
        number, _, at = self._find(field, value)
        return number * _PAGE_ENTRIES + at

    def _find(self, field: int, value: int) -> tuple[int, list[Entry], int]:
        """A page, and how many of its entries (and all before) are at most `value`."""
        number, page = self._cached
        if not page or not self._covers(number, page, field, value):
            if not self.count:
                return 0, [], 0
            with _Opened(self.path) as fd:
                number = self._find_page(fd, field, value)
                page = self._read_page(fd, number)
            self._cached = number, page
        return number, page, bisect_right(page, value, key=_FIELDS[field])

    def _covers(self, number: int, page: list[Entry], field: int, value: int) -> bool:
        if value < page[0][field]:
            return False
        is_whole_end = number * _PAGE_ENTRIES + len(page) == self.count
        return is_whole_end or value < page[-1][field]

    def _find_page(self, fd: int, field: int, value: int) -> int:
        """The last page that begins at or below `value`."""
        low, high = 0, (self.count - 1) // _PAGE_ENTRIES
        while low < high:
            middle = (low + high + 1) // 2
            first = self._unpack(self._read(fd, middle * _PAGE_ENTRIES, 1))[0]
            if first[field] <= value:
                low = middle
            else:
                high = middle - 1
        return low

    def _read_page(self, fd: int, number: int) -> list[Entry]:
        start = number * _PAGE_ENTRIES
        return self._unpack(self._read(fd, start, min(_PAGE_ENTRIES, self.count - start)))

    def _unpack(self, data: bytes) -> list[Entry]:
        return cast(list[Entry], list(self._entry.iter_unpack(data)))

    def _read(self, fd: int, start: int, count: int) -> bytes:
        """Entries by number, from the file, from what is pending, or across the two."""
        width = self._entry.size
        data = b""
        if start < self._written:
            wanted = min(count, self._written - start) * width
            data = os.pread(fd, wanted, start * width)
            if len(data) != wanted:
                raise OSError(errno.EIO, "an index is shorter than it was", self.path)
        skipped = max(start - self._written, 0) * width
        missing = count * width - len(data)
        return data + bytes(self._pending[skipped : skipped + missing])


class _Opened:
    """A descriptor for the length of a `with`; a generator would cost as much as the open."""

    __slots__ = ("_fd",)

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def __enter__(self) -> int:
        return self._fd

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
