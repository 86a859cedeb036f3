"""Memory that frames are received into, used again instead of allocated again.

A fresh megabyte costs more in page faults than in copying, so large frames borrow a buffer here.
The buffers are anonymous mappings: a peer that announces a hundred megabytes and sends ten bytes
costs one page. One event loop owns a pool; nothing is locked.
"""

import mmap
from typing import TypeAlias

SCRATCH_BYTES = 256 * 1024
_KEPT_EACH_BYTES_MAX = 4 * 1024 * 1024
_KEPT_TOTAL_BYTES_MAX = 16 * 1024 * 1024
_SMALLEST_BYTES = 64 * 1024

Buffer: TypeAlias = mmap.mmap


class BufferPool:
    """Buffers in powers of two; what is kept for later use is bounded."""

    def __init__(self) -> None:
        # Shared by all connections: what one read leaves unfinished is copied out before the next.
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._free: dict[int, list[Buffer]] = {}
        self._kept_bytes = 0

    def take(self, size: int) -> Buffer:
        """A buffer of at least `size` bytes, with old content in it."""
        rounded = max(_SMALLEST_BYTES, 1 << (size - 1).bit_length())
        if rounded > _KEPT_EACH_BYTES_MAX:
            return mmap.mmap(-1, size)
        free = self._free.get(rounded)
        if not free:
            return mmap.mmap(-1, rounded)
        self._kept_bytes -= rounded
        return free.pop()

    def give(self, buffer: Buffer) -> None:
        size = len(buffer)
        if size <= _KEPT_EACH_BYTES_MAX and self._kept_bytes + size <= _KEPT_TOTAL_BYTES_MAX:
            self._free.setdefault(size, []).append(buffer)
            self._kept_bytes += size
