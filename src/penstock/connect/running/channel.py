"""A task's end of the line to its worker: what it tells, and what it is told.

A task whose worker is gone must not go on: another worker may run it by now. So the end of the
line is a command to stop, like any other.
"""

import os
import socket
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from penstock.connect.running.counts import TaskCounts
from penstock.connect.running.messages import decode_line, encode_line, encode_records
from penstock.connect.running.spec import TaskSpec
from penstock.connect.store.config_records import LogEntry
from penstock.errors import PenstockError

_CONNECT_S = 30.0
_KEEP_S = 60.0


class LineLost(PenstockError):
    """The worker does not answer any more."""


class TaskChannel(Protocol):
    """What a loop needs of its worker."""

    stopping: threading.Event
    paused: threading.Event
    changed: threading.Event  # Set with each command, so that a wait ends early.

    def tell_state(self, state: str) -> None:
        """How the task is."""

    def tell_topic(self, topic: str) -> None:
        """It uses a topic."""

    def ask_reconfiguration(self) -> None:
        """Its connector may want other tasks."""

    def keep_offsets(self, records: Sequence[LogEntry]) -> None:
        """Have the worker keep offsets; returns when it has. For standalone mode."""

    def count(self, metric: str, number: int = 1) -> None:
        """Add to a metric."""

    def tell_counts(self) -> None:
        """Tell what was counted, if it is time."""

    def verify(self) -> None:
        """Raises PenstockError if this run of the task may not write any more."""


class WorkerChannel:
    """The line, over TCP; a thread listens to commands."""

    def __init__(self, spec: TaskSpec) -> None:
        self.stopping = threading.Event()
        self.paused = threading.Event()
        self.changed = threading.Event()
        if spec.is_paused:
            self.paused.set()
        self._kept = threading.Condition()
        self._answers: dict[int, str | None] = {}  # What was refused, by number; None: kept.
        self._number = 0
        self._topics: set[str] = set()
        self._counts = TaskCounts()
        self._socket = socket.create_connection(spec.control, _CONNECT_S)
        self._socket.settimeout(None)
        self._lock = threading.Lock()
        self._send(
            {
                "hello": spec.token,
                "connector": spec.connector,
                "task": spec.task,
                "run": spec.run,
                "pid": os.getpid(),
            }
        )
        threading.Thread(target=self._listen, name="commands", daemon=True).start()

    def tell_state(self, state: str) -> None:
        self._send({"state": state})

    def tell_failure(self, trace: str) -> None:
        """It ends by an error."""
        self._send({"failed": trace})

    def tell_topic(self, topic: str) -> None:
        if topic not in self._topics:
            self._topics.add(topic)
            self._send({"topic": topic})

    def ask_reconfiguration(self) -> None:
        self._send({"reconfigure": True})

    def keep_offsets(self, records: Sequence[LogEntry]) -> None:
        self._number += 1
        self._send({"offsets": encode_records(records), "number": self._number})
        self._await_answer(self._number)

    def count(self, metric: str, number: int = 1) -> None:
        self._counts.add(metric, number)

    def tell_counts(self, *, at_end: bool = False) -> None:
        news = self._counts.news(at_end=at_end)
        if news is not None:
            self._send({"counts": news})

    def verify(self) -> None:
        self._number += 1
        self._send({"verify": self._number})
        self._await_answer(self._number)

    def _await_answer(self, number: int) -> None:
        with self._kept:
            if not self._kept.wait_for(lambda: number in self._answers or self._is_gone, _KEEP_S):
                raise LineLost("The worker did not answer its task.")
        if number not in self._answers:
            raise LineLost("The worker is gone, and with it its answer to the task.")
        refused = self._answers.pop(number)
        if refused is not None:
            raise PenstockError(refused)

    def close(self) -> None:
        """Hang up."""
        self.tell_counts(at_end=True)
        self._socket.close()

    _is_gone = False

    def _send(self, document: dict[str, Any]) -> None:
        try:
            with self._lock:
                self._socket.sendall(encode_line(document))
        except OSError:
            self._lose()

    def _listen(self) -> None:
        try:
            with self._socket.makefile("rb") as lines:
                for line in lines:
                    self._hear(decode_line(line))
        except (OSError, ValueError, PenstockError):
            pass  # The end of the line is all that there is to know.
        self._lose()

    def _hear(self, document: dict[str, Any]) -> None:
        match document:
            case {"command": "pause"}:
                self.paused.set()
            case {"command": "resume"}:
                self.paused.clear()
            case {"command": "stop"}:
                self.stopping.set()
            case {"kept": int(number)}:
                self._answer(number, None)
            case {"refused": int(number), "why": str(why)}:
                self._answer(number, why)
        self.changed.set()

    def _answer(self, number: int, refused: str | None) -> None:
        with self._kept:
            self._answers[number] = refused
            self._kept.notify_all()

    def _lose(self) -> None:
        self._is_gone = True
        self.stopping.set()
        self.changed.set()
        with self._kept:
            self._kept.notify_all()
