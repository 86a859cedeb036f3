"""How processes call each other: each session has a named pipe that it alone reads.

A ring is eight bytes, the ringer's session id. It says two things: look what has changed, and I am
alive. When the reader of a pipe dies, however it dies, the kernel tells every process that has the
writing end open, at once. So a pipe is bell and life line, and there is no path too long for it,
as there is for a socket. The pipes are not inherited by programs that a process starts.
"""

import asyncio
import contextlib
import errno
import logging
import os
import struct
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from penstock.errors import ConfigError

_log = logging.getLogger("penstock.meta.shared")

_RING: Final = struct.Struct("<q")
_READ_BYTES: Final = 65_536


class OwnBell:
    """The pipe of one session. It exists and is read before the session is known to anybody."""

    def __init__(self, directory: Path) -> None:
        self.name = f"{uuid.uuid4().hex}.bell"
        self._path = directory / self.name
        try:
            os.mkfifo(self._path, 0o600)
            # For writing, too: a pipe whose last writer leaves would tell of an end for ever.
            self._fd = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise ConfigError(
                f"{self._path} cannot be made as a named pipe ({error.strerror}): give log.dirs "
                "a directory of a local file system"
            ) from error

    def listen(self, loop: asyncio.AbstractEventLoop, hear: Callable[[set[int]], None]) -> None:
        """Have `hear` called on the loop with the sessions that rang."""
        loop.add_reader(self._fd, lambda: hear(self._rung()))

    def _rung(self) -> set[int]:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return set()
        whole = len(data) - len(data) % _RING.size  # Rings are written whole; be safe all the same.
        return {session_id for (session_id,) in _RING.iter_unpack(data[:whole])}

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on this session counts as dead."""
        loop.remove_reader(self._fd)
        self.discard()

    def discard(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._fd)


def is_answered(directory: Path, name: str) -> bool:
    """Whether the process of a bell is alive."""
    fd = _open_writing(directory / name)
    if fd is None:
        return False
    os.close(fd)
    return True


class PeerBells:
    """The other sessions' pipes; on the event loop."""

    def __init__(
        self,
        directory: Path,
        loop: asyncio.AbstractEventLoop,
        *,
        on_death: Callable[[int], None],
    ) -> None:
        self._directory = directory
        self._loop = loop
        self._on_death = on_death
        self._fds: dict[int, int] = {}

    def keep(self, bells: Mapping[int, str]) -> None:
        """Have exactly these; tells of those whose process is dead already."""
        for gone in self._fds.keys() - bells.keys():
            self._drop(gone)
        for session_id in bells.keys() - self._fds.keys():
            try:
                fd = _open_writing(self._directory / bells[session_id])
            except OSError as error:  # No descriptor is left; the next look tries again.
                _log.warning("The pipe of session %d cannot be opened: %s", session_id, error)
                continue
            if fd is None:
                self._on_death(session_id)
                continue
            self._fds[session_id] = fd
            # Never readable: the loop calls only when the reading end is gone.
            self._loop.add_reader(fd, self._tell_death, session_id)

    def ring(self, own_session_id: int) -> None:
        """Ring at all; a bell that is full has been rung often enough."""
        message = _RING.pack(own_session_id)
        for session_id, fd in tuple(self._fds.items()):
            try:
                os.write(fd, message)
            except BlockingIOError:
                continue
            except BrokenPipeError:
                self._tell_death(session_id)

    def close(self) -> None:
        for session_id in tuple(self._fds):
            self._drop(session_id)

    def _tell_death(self, session_id: int) -> None:
        if session_id in self._fds:
            self._drop(session_id)
            self._on_death(session_id)

    def _drop(self, session_id: int) -> None:
        fd = self._fds.pop(session_id)
        self._loop.remove_reader(fd)
        os.close(fd)


def _open_writing(path: Path) -> int | None:
    """The writing end; None if nobody reads there."""
    try:
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.ENXIO, errno.ENOENT):
            raise
        return None


def sweep(directory: Path, names: set[str]) -> None:
    """Remove what dead processes left, except the bells named."""
    for left in directory.glob("*.bell"):
        if left.name not in names and not is_answered(directory, left.name):
            with contextlib.suppress(OSError):
                left.unlink()
