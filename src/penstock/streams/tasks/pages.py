"""Keys in pages: the states of many keys lie in one run of bytes.

A host that keeps state outside the process pays for each access, not for each byte. So a page is
read once a batch, all records of its keys are applied, and it is written back if it changed. Pages
double when they become large, so that a small batch does not read a large state.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from typing import Protocol

FIRST_PAGES = 64
PAGE_BYTES = 64 * 1024  # Pages double when their mean passes this.
_LAYOUT = b"\x01"
_COUNT = struct.Struct("<I")


class PageError(ValueError):
    """Bytes that are no page."""


class PageShelf(Protocol):
    """Where a host keeps the pages of one state, by number."""

    def load(self, page: int) -> bytes | None:
        """The page, or None where there is none."""

    def save(self, page: int, data: bytes | None) -> None:
        """Keep the page; None: it is empty now."""


def pack_page(entries: dict[bytes, bytes]) -> bytes:
    """All sizes, all keys, all values, one behind the other."""
    sizes = list(chain(map(len, entries), map(len, entries.values())))
    front = _LAYOUT + _COUNT.pack(len(entries)) + struct.pack(f"<{len(sizes)}I", *sizes)
    return b"".join((front, *entries, *entries.values()))


def unpack_page(data: bytes) -> dict[bytes, bytes]:
    """The entries of a page; PageError where it is none."""
    if data[:1] != _LAYOUT:
        raise PageError(f"a page of layout {data[:1].hex() or 'none'}, but this reads 01")
    (count,) = _COUNT.unpack_from(data, 1)
    first = 5 + 8 * count
    if first > len(data):
        raise PageError(f"a page of {len(data)} bytes cannot hold {count} entries")
    sizes = struct.unpack_from(f"<{2 * count}I", data, 5)
    ends = list(accumulate(sizes, initial=first))
    if ends[-1] != len(data):
        raise PageError(f"a page of {ends[-1]} bytes has {len(data)}")
    cells = [data[start:end] for start, end in pairwise(ends)]
    return dict(zip(cells[:count], cells[count:], strict=True))


@dataclass(slots=True)
class Pages:
    """The pages of one state that were looked at, and which of them changed."""

    shelf: PageShelf
    count: int = FIRST_PAGES  # A power of two.
    size_bytes: int = 0  # Of all pages, as they lie on the shelf.
    _open: dict[int, dict[bytes, bytes]] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)  # Of open pages, as they were.
    _changed: set[int] = field(default_factory=set)

    def get(self, key: bytes) -> bytes | None:
        """The key's bytes, or None."""
        return self._page(self._number(key)).get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the key's bytes; None removes it."""
        number = self._number(key)
        page = self._page(number)
        if value is not None:
            page[key] = value
        elif page.pop(key, None) is None:
            return
        self._changed.add(number)

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys and their bytes, page by page."""
        for number in range(self.count):
            yield from self._page(number).items()

    def flush(self) -> None:
        """Put what changed back on the shelf, in more pages if they have grown too large."""
        self._save(self._changed)
        self._changed = set()
        while self.size_bytes > self.count * PAGE_BYTES:
            self._double()

    def _double(self) -> None:
        """Each page's keys stay, or go to the page one old count further on."""
        for number in range(self.count):
            page = self._page(number)
            moved = {key: v for key, v in page.items() if _hash(key) & self.count}
            if moved:
                self._open[number + self.count] = moved
                self._open[number] = {k: v for k, v in page.items() if k not in moved}
                self._save([number, number + self.count])
        self.count *= 2

    def _save(self, numbers: Iterable[int]) -> None:
        for number in sorted(numbers):
            page = self._open[number]
            data = pack_page(page) if page else None
            self.shelf.save(number, data)
            size = 0 if data is None else len(data)
            self.size_bytes += size - self._sizes.get(number, 0)
            self._sizes[number] = size

    def _page(self, number: int) -> dict[bytes, bytes]:
        page = self._open.get(number)
        if page is None:
            data = self.shelf.load(number)
            page = self._open[number] = {} if data is None else unpack_page(data)
            self._sizes[number] = 0 if data is None else len(data)
        return page

    def _number(self, key: bytes) -> int:
        return page_of(key, self.count)


def page_of(key: bytes, count: int) -> int:
    """The page of a key among so many."""
    return _hash(key) & (count - 1)


def page_count(size_bytes: int) -> int:
    """How many pages so many bytes are to lie in."""
    count = FIRST_PAGES
    while size_bytes > count * PAGE_BYTES:
        count *= 2
    return count


def _hash(key: bytes) -> int:
    return zlib.crc32(key)
