"""The supervisor: starts the processes of the platform, keeps them running, and ends them.

All are started at once; each waits for what it needs by itself. One that dies is started again,
with the reason told, ever later while it keeps dying. They are stopped in the opposite order.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import CommandError
from penstock.platform.child import (
    end_of,
    end_processes,
    how_ended,
    identity_of,
    penstock_command,
    start_process,
)
from penstock.platform.directory import PlatformDirectory
from penstock.platform.probing import AWAY, DoorAnswer, ask, refuse_taken
from penstock.platform.restarts import Restarts, is_refusal
from penstock.platform.settings import Door, PlannedProcess, PlatformSettings
from penstock.platform.state import DoorState, ProcessIdentity, ProcessState, TreeState

if TYPE_CHECKING:
    import subprocess

_LOOK_S = 0.2
_LOOK_AT_START_S = 0.02
_LOOK_SHARE = 0.05  # Of the time that a start takes: who takes long is asked less often.
_HEALTH_S = 2.0
_STOP_S = 45.0

Report = Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class SupervisedProcess:
    """A process of the tree through all its lives."""

    plan: PlannedProcess
    file: Path
    log: Path
    process: "subprocess.Popen[bytes] | None" = None  # None: it is not there now.
    identity: ProcessIdentity | None = None
    started_ms: int = 0
    launched_s: float = 0.0
    log_from: int = 0  # Where what this life prints begins.
    resume_s: float = 0.0
    ask_s: float = 0.0
    restarts: Restarts = field(default_factory=Restarts)
    last_end: str | None = None
    has_been_ready: bool = False
    answers: dict[Door, DoorAnswer] = field(default_factory=dict)

    @property
    def is_ready(self) -> bool:
        return self.process is not None and all(
            self.answers.get(door, AWAY).is_ready for door in self.plan.doors
        )

    def state(self) -> ProcessState:
        return ProcessState(
            name=self.plan.name,
            identity=self.identity if self.process is not None else None,
            started_ms=self.started_ms,
            restarts=self.restarts.total,
            log=str(self.log),
            last_end=self.last_end,
            doors=tuple(self._door_state(door) for door in self.plan.doors),
        )

    def _door_state(self, door: Door) -> DoorState:
        answer = self.answers.get(door, AWAY)
        return DoorState(
            service=door.service,
            address=door.address,
            is_ready=answer.is_ready,
            problem=answer.problem,
        )


class ProcessTree:
    """The processes of one directory. `run` is for one thread: they end when that thread does."""

    def __init__(
        self,
        settings: PlatformSettings,
        *,
        report: Report,
        on_up: Callable[[TreeState], None] = lambda _: None,
    ) -> None:
        self.is_up = False  # Everything has answered at least once.
        self._settings = settings
        self._directory = PlatformDirectory(settings.directory)
        self._report = report
        self._on_up = on_up
        self._processes: list[SupervisedProcess] = []
        self._supervisor = identity_of(os.getpid())
        self._started_ms = _now_ms()
        self._written: TreeState | None = None

    def run(self, stop: threading.Event, hurry: threading.Event | None = None) -> None:
        """Until `stop` is set; `hurry` then ends at once what takes its time.

        CommandError for what keeps the tree from starting.
        """
        try:
            if not self._directory.take(self._report, stop):
                return
            self._write()
            for door in self._settings.doors:
                refuse_taken(door)
            self._start(stop)
            while not stop.is_set():
                self._look()
                stop.wait(_LOOK_S if self.is_up else _LOOK_AT_START_S)
        finally:
            killed = self._end(hurry)
            self._directory.leave()
            for name in killed:
                self._report(f"{name} did not stop within {_STOP_S:g} s and was killed.")

    @property
    def state(self) -> TreeState:
        """How everything is now."""
        return TreeState(
            supervisor=self._supervisor,
            started_ms=self._started_ms,
            is_up=self.is_up,
            processes=tuple(one.state() for one in self._processes),
        )

    def _start(self, stop: threading.Event) -> None:
        for plan in self._settings.processes:
            if stop.is_set():
                return
            one = SupervisedProcess(
                plan=plan,
                file=self._directory.write_settings(plan),
                log=self._directory.log_of(plan.name),
            )
            self._processes.append(one)
            self._launch(one)

    def _launch(self, one: SupervisedProcess) -> None:
        assert self._directory.lock_fd is not None
        one.log_from = one.log.stat().st_size if one.log.exists() else 0
        one.process = start_process(
            penstock_command(*one.plan.command, str(one.file)),
            one.log,
            keep_open=[self._directory.lock_fd],
        )
        one.identity = identity_of(one.process.pid)
        one.started_ms, one.launched_s = _now_ms(), time.monotonic()
        one.ask_s, one.answers = 0.0, {}
        self._write()

    def _launch_again(self, one: SupervisedProcess) -> None:
        """A start that the machine refuses is a failure like others, and tried again."""
        try:
            self._launch(one)
        except CommandError as error:
            one.restarts = one.restarts.after_end(lived_s=0)
            one.resume_s = time.monotonic() + one.restarts.pause_s
            self._report(f"{one.plan.name}: {error} The next try is in {one.restarts.pause_s:g} s.")

    def _look(self) -> None:
        """One round: who died, who is to be started again, who answers."""
        for one in self._processes:
            if one.process is None:
                if time.monotonic() >= one.resume_s:
                    self._launch_again(one)
            elif (code := one.process.poll()) is not None:
                self._note_end(one, code)
            elif time.monotonic() >= one.ask_s:
                self._ask(one)
        if not self.is_up and all(one.is_ready for one in self._processes):
            self.is_up = True
            self._on_up(self.state)
        self._write()

    def _note_end(self, one: SupervisedProcess, code: int) -> None:
        said = end_of(one.log, since=one.log_from)
        why = f"{one.plan.name} {how_ended(code)}"
        if is_refusal(code, has_been_ready=one.has_been_ready):
            raise CommandError(f"{why} at its start; the last it said ({one.log}):\n{said}")
        lived_s = time.monotonic() - one.launched_s
        one.process, one.last_end = None, how_ended(code)
        one.restarts = one.restarts.after_end(lived_s=lived_s)
        one.resume_s = time.monotonic() + one.restarts.pause_s
        one.answers = {}
        self._report(
            f"{why} after {lived_s:.0f} s and is started again in {one.restarts.pause_s:g} s; "
            f"the last it said ({one.log}):\n{_indented(said)}"
        )

    def _ask(self, one: SupervisedProcess) -> None:
        for door in one.plan.doors:
            before, now = one.answers.get(door, AWAY), ask(door)
            one.answers[door] = now
            self._tell_change(door, before, now)
        one.has_been_ready = one.has_been_ready or one.is_ready
        waited_s = time.monotonic() - one.launched_s
        pause_s = _HEALTH_S if one.is_ready else min(_HEALTH_S, waited_s * _LOOK_SHARE)
        one.ask_s = time.monotonic() + pause_s

    def _tell_change(self, door: Door, before: DoorAnswer, now: DoorAnswer) -> None:
        if now.problem is not None and now.problem != before.problem:
            self._report(f"{door.service} at {door.address} is failing: {now.problem}")
        elif before.is_ready and not now.is_ready:
            self._report(f"{door.service} does not answer at {door.address}.")
        elif self.is_up and now.is_ready and (before.problem or not before.is_ready):
            self._report(f"{door.service} answers again at {door.address}.")

    def _end(self, hurry: threading.Event | None) -> list[str]:
        """Who was started last ends first; the names of those that would not, unless in a hurry."""
        unwilling = []
        for one in reversed(self._processes):
            processes = [] if one.process is None else [one.process]
            killed = end_processes(processes, timeout_s=_STOP_S, hurry=hurry)
            if killed and (hurry is None or not hurry.is_set()):
                unwilling.append(one.plan.name)
            one.process = None
        return unwilling

    def _write(self) -> None:
        """Keep the state file true; a full disk is no reason to end what runs."""
        state = self.state
        if state != self._written:
            with contextlib.suppress(OSError):
                self._directory.write_state(state)
                self._written = state


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
