"""Who may write the shared file: one process at a time, and none that was stopped while writing.

SQLite has such a lock of its own, but does not tell who holds it. A process that is stopped (by
SIGSTOP, by a debugger) in the middle of a transaction would keep all others from writing, and
also from ending its session. So writers pass this gate first and leave their names in it: a holder
whose session is silent is killed, and the kernel gives back what it held.
"""

import contextlib
import fcntl
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from penstock.meta.store import StoreUnavailable

_log = logging.getLogger("penstock.meta.shared")

_FIRST_PAUSE_S: Final = 0.0002
_LONGEST_PAUSE_S: Final = 0.005
_LOOK_S: Final = 0.1  # How often a waiting process looks who holds the gate.
_NAME_BYTES: Final = 64


class Holder(NamedTuple):
    """What a process leaves in the gate."""

    session_id: int  # 0: it is just opening its session.
    pid: int


class WriterGate:
    """A file with an advisory lock; used by the store's thread alone."""

    def __init__(
        self, path: Path, *, timeout_s: float, is_silent: Callable[[int], bool] = lambda _: False
    ) -> None:
        self.session_id = 0
        self._path = path
        self._timeout_s = timeout_s
        self._is_silent = is_silent
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        os.close(self._fd)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, no other process writes; StoreUnavailable if it cannot be had in time."""
        self._acquire()
        try:
            self._write_name(f"{self.session_id} {os.getpid()} ")
            yield
        finally:
            self._write_name("")  # A name stands there only while its process has the lock.
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _write_name(self, name: str) -> None:
        with contextlib.suppress(OSError):  # On a full disk there is a lock without a name.
            os.pwrite(self._fd, name.ljust(_NAME_BYTES).encode(), 0)

    def _acquire(self) -> None:
        began_s = looked_s = time.monotonic()
        pause_s = _FIRST_PAUSE_S
        while not self._locks():
            now_s = time.monotonic()
            if now_s - looked_s >= _LOOK_S:
                looked_s = now_s
                self._judge_holder(now_s - began_s)
            time.sleep(pause_s)
            pause_s = min(_LONGEST_PAUSE_S, pause_s * 2)

    def _locks(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _judge_holder(self, waited_s: float) -> None:
        if waited_s > 3 * self._timeout_s:
            raise StoreUnavailable(
                f"another process holds {self._path} for {waited_s:.0f} s, nothing was written"
            )
        holder = self._holder()
        if holder is None or holder.pid == os.getpid():
            return
        is_late = waited_s > self._timeout_s
        if self._is_silent(holder.session_id) or (is_late and not holder.session_id):
            _log.warning(
                "Process %d holds the writer's lock %s and is silent: it is killed",
                holder.pid,
                self._path,
            )
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(holder.pid, signal.SIGKILL)

    def _holder(self) -> Holder | None:
        """Whose name stands there; None: nobody's, or it is being written."""
        words = os.pread(self._fd, _NAME_BYTES, 0).split()
        try:
            session_id, pid = (int(word) for word in words)
        except ValueError:
            return None
        return Holder(session_id, pid)
