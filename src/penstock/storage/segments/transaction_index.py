"""The aborted transactions of a segment: the `.txnindex` file.

A reader of committed records gets this list beside the batches and leaves out what was aborted.
An entry belongs to the segment that holds the abort marker:

    int16  version, 0
    int64  producer id
    int64  first offset of the transaction in this partition
    int64  offset of the abort marker
    int64  last stable offset once the marker was written

Most segments have no such file; it is made with the first entry.
"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from penstock.storage.segments.file_slice import read_exactly

SUFFIX: Final = ".txnindex"
ENTRY_BYTES: Final = 34
_ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    """What of a producer to leave out, and from where on."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """Entries in the order of their markers."""

    __slots__ = ("count", "path")

    def __init__(self, path: str, *, count: int) -> None:
        self.path = path
        self.count = count

    def append(self, entries: list[AbortedTransaction]) -> None:
        """Write entries whole, or leave the file as it was."""
        data = b"".join([_ENTRY.pack(_VERSION, *entry) for entry in entries])
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        end = self.count * ENTRY_BYTES
        try:
            if os.pwrite(fd, data, end) != len(data):
                raise OSError(errno.ENOSPC, "an entry was written only in part", self.path)
        except OSError:
            os.ftruncate(fd, end)
            raise
        finally:
            os.close(fd)
        self.count += len(entries)

    def entries(self) -> Iterator[AbortedTransaction]:
        if not self.count:
            return
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = read_exactly(fd, 0, self.count * ENTRY_BYTES)
        finally:
            os.close(fd)
        for _, *numbers in _ENTRY.iter_unpack(data):
            yield AbortedTransaction(*numbers)

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries."""
        if count < self.count:
            os.truncate(self.path, count * ENTRY_BYTES)
            self.count = count

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker is at `offset` or after it."""
        self.truncate(sum(entry.last_offset < offset for entry in self.entries()))

    def reset(self) -> None:
        """Begin anew, without a file."""
        Path(self.path).unlink(missing_ok=True)
        self.count = 0

    def is_sane(self, base_offset: int) -> bool:
        """Whether every entry can be true: the file is small, so all are looked at."""
        marker = base_offset - 1
        for entry in self.entries():
            if entry.last_offset <= marker or entry.first_offset > entry.last_offset:
                return False
            marker = entry.last_offset
        return True
