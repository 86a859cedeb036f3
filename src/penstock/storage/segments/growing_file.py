"""A file that grows by whole appends: each is written entirely, or taken back.

Writing into blocks reserved in advance is about a third faster than growing a file with every
write, but what is reserved is lost to others meanwhile: small files reserve nothing, large ones an
eighth of their size. The reserved tail reads as zeros, which recovery cuts off after a crash as it
cuts off any bytes that are no batch.
"""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from penstock.storage.segments.file_slice import LogFile

_IOV_MAX: Final = 1024
_RESERVE_FROM_BYTES: Final = 32 << 20
_RESERVE_BYTES_MAX: Final = 64 << 20
_UNKNOWN_END: Final = 1 << 62


class GrowingFile:
    """`size` is what was appended; the file itself may be longer until it is trimmed."""

    __slots__ = ("_file_end", "_reserve_from", "file", "size")

    def __init__(self, path: str, size: int, *, is_new: bool) -> None:
        flags = os.O_RDWR | (os.O_CREAT | os.O_TRUNC if is_new else 0)
        self.file = LogFile(path, flags)
        self.size = size
        self._file_end = size
        self._reserve_from = _RESERVE_FROM_BYTES

    def append(self, buffers: Sequence[memoryview], size: int) -> None:
        """Write buffers of `size` bytes in all; an OSError leaves the file as it was."""
        position = self.size
        end = position + size
        if end > self._file_end:
            self._file_end = end
            if position >= self._reserve_from:
                self.reserve(end + min(position // 8, _RESERVE_BYTES_MAX))
        fd = self.file.fd
        try:
            if len(buffers) == 1:
                written = os.pwrite(fd, buffers[0], position)
            else:
                written = os.pwritev(fd, buffers[:_IOV_MAX], position)
            if written != size:
                _write_rest(fd, buffers, position, written)
        except OSError:
            self._take_back()
            raise
        self.size = end

    def reserve(self, end: int) -> None:
        """Take blocks up to `end`; whether there is room is told by the write that needs it."""
        fd = self.file.fd
        try:
            os.posix_fallocate(fd, self.size, end - self.size)
            self._file_end = end
        except OSError:
            self._reserve_from = _UNKNOWN_END  # Full, or not supported: do not try each time.
            with suppress(OSError):
                os.ftruncate(fd, self.size)

    def trim(self) -> None:
        """Give back what is reserved, and what a failed write left behind."""
        if self._file_end != self.size:
            os.ftruncate(self.file.fd, self.size)
            self._file_end = self.size

    def give_back(self) -> None:
        """Trim, and reserve no blocks from now on: the disk is full."""
        self._reserve_from = _UNKNOWN_END
        self.trim()

    def truncate(self, size: int) -> None:
        os.ftruncate(self.file.fd, size)
        self.size = self._file_end = size

    def _take_back(self) -> None:
        """Cut off what a failed write left; if that fails too, trimming will see to it."""
        self._file_end = _UNKNOWN_END
        with suppress(OSError):
            self.truncate(self.size)


def _write_rest(fd: int, buffers: Sequence[memoryview], position: int, written: int) -> None:
    """Go on after a short write; a disk that is full says so now."""
    for buffer in buffers:
        size = len(buffer)
        if written >= size:
            written -= size
        else:
            _write_all(fd, buffer[written:], position + written)
            written = 0
        position += size


def _write_all(fd: int, data: memoryview, position: int) -> None:
    while data:
        count = os.pwrite(fd, data, position)
        if not count:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        data, position = data[count:], position + count
