"""The worker's end of the lines to its tasks: who calls proves that it was started here.

Each task has a line of its own, and a thread that listens to it. What tasks tell goes to a
`TaskWatcher`; what they are told comes from the herder.
"""

import hmac
import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, Any, NamedTuple, Protocol

from penstock.connect.running.messages import (
    LINE_BYTES_MAX,
    decode_line,
    decode_records,
    encode_line,
)
from penstock.connect.running.spec import ControlAddress
from penstock.connect.store.config_records import LogEntry
from penstock.errors import PenstockError

log = logging.getLogger("penstock.connect")

_BACKLOG = 128
_HELLO_S = 30.0


class TaskRun(NamedTuple):
    """One start of one task."""

    connector: str
    task: int
    run: int


class TaskWatcher(Protocol):
    """Hears what tasks tell, on the threads of their lines."""

    def on_state(self, run: TaskRun, state: str) -> None:
        """How it is."""

    def on_failure(self, run: TaskRun, trace: str) -> None:
        """It ended by an error."""

    def on_topic(self, run: TaskRun, topic: str) -> None:
        """It uses a topic."""

    def on_counts(self, run: TaskRun, counts: dict[str, int]) -> None:
        """What it has counted, by the names of metrics."""

    def on_reconfigure(self, run: TaskRun) -> None:
        """Its connector may want other tasks."""

    def keep_offsets(self, run: TaskRun, records: list[LogEntry]) -> None:
        """Keep them; raises PenstockError if that is not possible."""

    def verify(self, run: TaskRun) -> None:
        """Raises PenstockError if this run of the task is over."""


class ControlServer:
    """Listens on a port of its own while tasks run."""

    def __init__(self, host: str, token: str) -> None:
        self._token = token
        self._watcher: TaskWatcher | None = None
        self._lines: dict[TaskRun, socket.socket] = {}
        self._pids: dict[TaskRun, int] = {}
        self._lock = threading.Lock()
        self._listener = socket.create_server((host, 0), backlog=_BACKLOG)
        self.address = ControlAddress(host, self._listener.getsockname()[1])
        threading.Thread(target=self._accept, name="lines to tasks", daemon=True).start()

    def watch(self, watcher: TaskWatcher) -> None:
        """Tell this one from now on; before any task starts."""
        self._watcher = watcher

    def command(self, run: TaskRun, word: str) -> bool:
        """Tell a task; False: it has no line, so it does not run or does not yet."""
        with self._lock:
            line = self._lines.get(run)
        if line is None:
            return False
        try:
            line.sendall(encode_line({"command": word}))
        except OSError:
            return False
        return True

    def pid(self, run: TaskRun) -> int | None:
        """The process that a task runs in; None: it does not."""
        with self._lock:
            return self._pids.get(run)

    def close(self) -> None:
        """Hang up on all; tasks that still run end themselves."""
        self._listener.close()
        with self._lock:
            lines = list(self._lines.values())
        for line in lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return  # Closed.
            threading.Thread(target=self._serve, args=(line,), name="a task", daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with line, line.makefile("rb") as lines:
            try:
                run, pid = self._greeted(line, lines)
            except (OSError, PenstockError, KeyError, TypeError) as error:
                log.warning("A line that no task of ours opened was closed: %s", error)
                return
            with self._lock:
                self._lines[run], self._pids[run] = line, pid
            try:
                while document := _next(lines):
                    self._hear(run, line, document)
            except (OSError, PenstockError) as error:
                log.warning("The line to %s-%d broke: %s", run.connector, run.task, error)
            finally:
                with self._lock:
                    if self._lines.get(run) is line:
                        del self._lines[run], self._pids[run]

    def _greeted(self, line: socket.socket, lines: IO[bytes]) -> tuple[TaskRun, int]:
        line.settimeout(_HELLO_S)
        hello = _next(lines) or {}
        if not hmac.compare_digest(str(hello.get("hello", "")), self._token):
            raise PenstockError("the token is wrong")
        line.settimeout(None)
        run = TaskRun(str(hello["connector"]), int(hello["task"]), int(hello["run"]))
        return run, int(hello["pid"])

    def _hear(self, run: TaskRun, line: socket.socket, document: dict[str, Any]) -> None:
        watcher = self._watcher
        assert watcher is not None
        match document:
            case {"state": str(state)}:
                watcher.on_state(run, state)
            case {"failed": str(trace)}:
                watcher.on_failure(run, trace)
            case {"topic": str(topic)}:
                watcher.on_topic(run, topic)
            case {"counts": dict(counts)}:
                watcher.on_counts(run, {str(name): int(one) for name, one in counts.items()})
            case {"reconfigure": True}:
                watcher.on_reconfigure(run)
            case {"offsets": records, "number": int(number)}:
                kept = partial(watcher.keep_offsets, run, decode_records(records))
                line.sendall(encode_line(_answered(kept, number)))
            case {"verify": int(number)}:
                line.sendall(encode_line(_answered(partial(watcher.verify, run), number)))


def _answered(act: Callable[[], None], number: int) -> dict[str, Any]:
    try:
        act()
    except PenstockError as error:
        return {"refused": number, "why": str(error)}
    return {"kept": number}


def _next(lines: IO[bytes]) -> dict[str, Any] | None:
    line = lines.readline(LINE_BYTES_MAX)
    if not line:
        return None
    if not line.endswith(b"\n"):
        raise PenstockError("a line is too long, or broke off")
    return decode_line(line)
