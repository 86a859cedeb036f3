"""The directory of a tree: who holds it, what it says of itself, what its processes print.

    DIR/up.lock             held (flock) by the supervisor and by every process below it
    DIR/up.json             the state of the tree, while it runs
    DIR/run/*.properties    what each process was told
    DIR/logs/*.log          what each of them prints
    DIR/data                the broker's, unless its settings say otherwise

The processes inherit the lock, so it is free when the last of them is gone, however the supervisor
ended: whoever gets the lock finds no port and no file in use by the tree before.
"""

import contextlib
import fcntl
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from penstock.config.properties import format_properties
from penstock.errors import CommandError
from penstock.platform.child import is_alive, send, wait_until
from penstock.platform.settings import PlannedProcess
from penstock.platform.state import TreeState, from_json, to_json

_GLANCE_S = 2.0  # Another terminal that looks holds the lock for a moment.
_ORPHANS_S = 30.0  # What a killed supervisor left behind is stopping already.


class PlatformDirectory:
    """The files of one tree."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.lock_fd: int | None = None  # None: not held by us.

    def take(self, report: Callable[[str], None], stop: threading.Event) -> bool:
        """Become the one that runs here; False if the stop came first.

        CommandError if another one runs. The processes of one that was killed are waited for, and
        ended if they take too long.
        """
        fd = self._open()
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, fd)
            if not (
                self._locks_in_time(fd, _GLANCE_S, stop) or self._outlasts_orphans(fd, report, stop)
            ):
                return False
            stack.pop_all()
        self.lock_fd = fd
        return True

    def leave(self) -> None:
        """Remove what is of no use any more and let go; harmless if nothing is held."""
        if self.lock_fd is None:
            return
        for file in (self._state_file, *self.path.glob("run/*.properties")):
            file.unlink(missing_ok=True)
        os.close(self.lock_fd)
        self.lock_fd = None

    def is_held(self) -> bool:
        """Whether a tree, or what is left of one, runs here."""
        try:
            fd = os.open(self._lock_file, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return not _locks(fd)
        finally:
            os.close(fd)

    def state(self) -> TreeState | None:
        """What the tree last said of itself; None if there is nothing to be read."""
        try:
            return from_json(self._state_file.read_text())
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_state(self, state: TreeState) -> None:
        """Replace it in one step, so that a reader never sees half of it."""
        fresh = self._state_file.with_suffix(".new")
        fresh.write_text(to_json(state))
        fresh.replace(self._state_file)

    def write_settings(self, process: PlannedProcess) -> Path:
        """The file a process is started with. For its owner's eyes: there may be passwords."""
        file = self.path / "run" / f"{process.name}.properties"
        try:
            file.parent.mkdir(exist_ok=True)
            file.unlink(missing_ok=True)
            fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "w") as target:
                target.write(format_properties(process.properties))
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror or error}.") from error
        return file

    def log_of(self, name: str) -> Path:
        return self.path / "logs" / f"{name}.log"

    @property
    def _lock_file(self) -> Path:
        return self.path / "up.lock"

    @property
    def _state_file(self) -> Path:
        return self.path / "up.json"

    def _open(self) -> int:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            return os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            reason = error.strerror or error
            raise CommandError(f"{self.path} cannot be used for the platform: {reason}.") from error

    def _outlasts_orphans(
        self, fd: int, report: Callable[[str], None], stop: threading.Event
    ) -> bool:
        """Get the lock from what a killed supervisor has left; False if the stop came first."""
        state = self.state()
        if stop.is_set():
            return False
        if state is None:
            raise self._runs_already("")
        report("The last one here was killed; waiting for its processes to end.")
        if self._locks_in_time(fd, _ORPHANS_S, stop):
            return True
        for identity in () if stop.is_set() else state.identities:
            send(identity, signal.SIGKILL)
        if self._locks_in_time(fd, _GLANCE_S, stop):
            return True
        if stop.is_set():
            return False
        raise CommandError(f"A process of a former `penstock up` still uses {self.path}.")

    def _locks_in_time(self, fd: int, timeout_s: float, stop: threading.Event) -> bool:
        """Whether we got the lock; CommandError as soon as somebody living is seen to have it."""

        def is_settled() -> bool:
            return _locks(fd) or self._supervisor() is not None

        is_in_time = wait_until(is_settled, timeout_s=timeout_s, stop=stop)
        pid = self._supervisor()
        if pid is not None:
            raise self._runs_already(f", in process {pid}")
        return is_in_time

    def _supervisor(self) -> int | None:
        """The supervisor that runs here; None if there is none, or it has not told yet."""
        state = self.state()
        return state.supervisor.pid if state is not None and is_alive(state.supervisor) else None

    def _runs_already(self, who: str) -> CommandError:
        return CommandError(
            f"The platform runs already in {self.path}{who}: `penstock down` stops it, --dir "
            "chooses another directory."
        )


def _locks(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
