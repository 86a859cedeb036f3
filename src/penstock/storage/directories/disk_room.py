"""The room under one log directory: a reserve for what must be written, and none of it for records.

On a disk without a free byte nobody could even delete a topic: that is written down first, as are
the new start of a log that retention shortens, checkpoints, and indexes after a crash. So each log
directory keeps a file of real blocks and gives of it, a slice at a time, when such a write finds no
room. Records get none of it. Once a write found no room, appends are refused without being tried,
until the reserve is whole again and there is room besides.

Whoever looks after the directory asks `watch` now and then. What can be deleted to make room is
decided elsewhere (broker/upkeep/housekeeping.py).
"""

import errno
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

from penstock.errors import KafkaStorage

RESERVE_FILE: Final = "penstock-reserve"

_SLICES: Final = 16
_BLOCK_BYTES: Final = 4096
_SHARE_OF_DISK: Final = 32  # A reserve takes at most this part of a small disk.
_SPARE_BYTES: Final = 1 << 20
_SPARE_BYTES_MAX: Final = 4 << 20
_TOLD_EVERY_S: Final = 30.0
_ZEROS: Final = bytes(1 << 16)
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_FALLOCATE: Final = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})

T = TypeVar("T")


class NoRoom(KafkaStorage):
    """The disk is full. The log and its directory are well, and take records again later."""


def is_no_room(error: OSError) -> bool:
    """Whether a write failed for want of space on the disk, or of the user's share of it."""
    return error.errno in _NO_ROOM


class DiskRoom:
    """`is_full`: a write found no room, and there is none for records yet. Any thread may ask."""

    def __init__(
        self,
        path: Path,
        *,
        reserve_bytes: int = 0,
        warn: Callable[[str], None] = lambda _line: None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self.is_full = False
        self.refused_count = 0  # Appends, since the start.
        self._warn = warn
        self._clock_s = clock_s
        self._lock = Lock()
        self._reserve_path = path / RESERVE_FILE
        self._asked_bytes = reserve_bytes
        self._reserve_bytes = 0  # What the reserve holds when it is whole.
        self._held_bytes = 0
        self._largest_refused = 0  # Since the disk is full.
        self._untold_count = 0
        self._told_s: dict[str, float] = {}  # What was told, and when last.
        self._is_told_full = False

    def set_up(self) -> None:
        """Take the reserve that is there, and make it as large as it should be."""
        with self._lock:
            reserve_bytes = min(self._asked_bytes, self.total_bytes() // _SHARE_OF_DISK)
            self._reserve_bytes = reserve_bytes - reserve_bytes % (_SLICES * _BLOCK_BYTES)
            if not self._reserve_bytes:
                self._reserve_path.unlink(missing_ok=True)
                return
            with suppress(FileNotFoundError):
                if self._reserve_path.stat().st_size > self._reserve_bytes:
                    os.truncate(self._reserve_path, self._reserve_bytes)
                found = self._reserve_path.stat()
                self._held_bytes = min(found.st_size, found.st_blocks * 512)
            try:
                self._make_whole()
            except OSError as error:
                if not is_no_room(error):
                    self._reserve_bytes = self._held_bytes
                    self._warn(f"{self.path} has no reserve for a full disk: {error}")
                    return
                self._become_full()

    # What there is

    def total_bytes(self) -> int:
        volume = os.statvfs(self.path)
        return volume.f_blocks * volume.f_frsize

    def free_bytes(self) -> int:
        """What may still be written, without the rest a file system keeps for itself and root."""
        try:
            volume = os.statvfs(self.path)
        except OSError:
            return 0  # The next write there fails with the reason.
        return volume.f_bavail * volume.f_frsize

    def usable_bytes(self) -> int:
        """The free space for records, less what the reserve has given and must get back."""
        return 0 if self.is_full else max(0, self.free_bytes() - self._missing_bytes)

    @property
    def reserve_bytes(self) -> int:
        """What is left of the reserve."""
        return self._held_bytes

    @property
    def _missing_bytes(self) -> int:
        return self._reserve_bytes - self._held_bytes

    def _spare(self) -> int:
        """So much must be free beside the reserve before records are taken."""
        wanted = min(max(_SPARE_BYTES, self._largest_refused), _SPARE_BYTES_MAX)
        return min(wanted, self.total_bytes() // _SHARE_OF_DISK)

    # Writing what must be written

    def with_room(self, write: Callable[[], T]) -> T:
        """Do it, and again with more of the reserve as long as it finds no room.

        `write` must bear that. Each time twice as much is freed, because a repetition, such as
        opening a log, may take long.
        """
        slices = 1
        while True:
            try:
                return write()
            except OSError as error:
                if not is_no_room(error) or not self.give(slices):
                    raise
            slices *= 2

    def give(self, slices: int = 1) -> bool:
        """Free a little of the reserve; whether there was any left."""
        with self._lock:
            held = self._held_bytes
            left = max(0, held - slices * (self._reserve_bytes // _SLICES))
            if held:
                try:
                    os.truncate(self._reserve_path, left)
                except OSError as error:
                    self._warn(f"{self._reserve_path} cannot be given up: {error}")
                    return False
                self._held_bytes = left
            self._become_full()
            return held > 0

    # Records

    def check(self, who: object, size_bytes: int) -> None:
        """Raise NoRoom for an append while the disk is full, unless there is room by now."""
        if self.is_full and not self._heal(size_bytes):
            raise self.refuse(who, size_bytes)

    def refuse(self, who: object, size_bytes: int) -> NoRoom:
        """Note that an append found no room: further ones are refused until there is some."""
        with self._lock:
            self.refused_count += 1
            self._largest_refused = max(self._largest_refused, size_bytes)
            self._become_full()
            self._tell_refused(who, size_bytes)
        return NoRoom(f"there is no room for {size_bytes} bytes of {who}: {self.path} is full")

    def watch(self) -> bool:
        """Measure the free space before a write fails for want of it; True: records are taken."""
        if self.is_full:
            return self._heal(0)
        with self._lock:
            if self.free_bytes() < self._spare():
                self._become_full()
        return not self.is_full

    def _heal(self, size_bytes: int) -> bool:
        with self._lock:
            if not self.is_full:
                return True
            needed = self._missing_bytes + max(self._spare(), size_bytes)
            if self.free_bytes() < needed:
                return False
            try:
                self._make_whole()
            except OSError:
                return False
            self.is_full = False
            self._largest_refused = 0
            self._tell_healed()
            return True

    # The file

    def _make_whole(self) -> None:
        if self._held_bytes == self._reserve_bytes:
            return
        fd = os.open(self._reserve_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _allocate(fd, self._reserve_bytes)
        except OSError:
            with suppress(OSError):
                os.ftruncate(fd, self._held_bytes)
            raise
        finally:
            os.close(fd)
        self._held_bytes = self._reserve_bytes

    # Telling, seldom; with the lock held.

    def _become_full(self) -> None:
        self.is_full = True
        if self._is_due("full"):
            self._is_told_full = True
            self._warn(
                f"The disk under {self.path} is full: {self.free_bytes()} bytes are free, and "
                f"{self._held_bytes} in the reserve for what must be written. Records are refused "
                "until there is room: delete topics or records, lower retention, or enlarge the "
                "disk"
            )

    def _tell_refused(self, who: object, size_bytes: int) -> None:
        if not self._is_due("refused"):
            self._untold_count += 1
            return
        self._warn(
            f"Refused to append {size_bytes} bytes to {who}: the disk under {self.path} is full, "
            f"{self.free_bytes()} bytes are free; {self._untold_count} more appends were refused "
            "since this was last said"
        )
        self._untold_count = 0

    def _tell_healed(self) -> None:
        if self._is_told_full:
            self._is_told_full = False
            self._warn(
                f"The disk under {self.path} has room again: {self.free_bytes()} bytes are free, "
                f"records are taken. Appends refused since the start: {self.refused_count}"
            )

    def _is_due(self, what: str) -> bool:
        now_s = self._clock_s()
        if what in self._told_s and now_s - self._told_s[what] < _TOLD_EVERY_S:
            return False
        self._told_s[what] = now_s
        return True


def _allocate(fd: int, size_bytes: int) -> None:
    """Write real blocks: a file with only a length would hold no space."""
    try:
        os.posix_fallocate(fd, 0, size_bytes)
    except OSError as error:
        if error.errno not in _NO_FALLOCATE:
            raise
        at = os.fstat(fd).st_size
        while at < size_bytes:
            at += os.pwrite(fd, _ZEROS[: size_bytes - at], at)
