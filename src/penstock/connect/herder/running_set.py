"""What this worker runs now: connectors and tasks, each with its number of failures in a row."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from penstock.connect.herder.connectors import HostedConnector
from penstock.connect.herder.planning import RunningConnector, RunningTask
from penstock.connect.running.control import TaskRun
from penstock.connect.store.config_records import TargetState
from penstock.connect.store.status_records import TaskId
from penstock.queries.restart import Attempts


class TaskJob(Protocol):
    """A task that was submitted."""

    run: TaskRun

    def start(self) -> None:
        """Submit it."""

    def cancel(self) -> None:
        """End it at once."""

    def join(self, timeout_s: float) -> bool:
        """Wait for its end; False: it goes on."""


@dataclass(slots=True, kw_only=True)
class ConnectorEntry:
    """A connector of this worker."""

    config: Mapping[str, str]
    target: TargetState
    hosted: HostedConnector | None = None  # None: it does not run.
    attempts: Attempts = field(default_factory=Attempts)
    is_failed: bool = False
    reload_ms: int | None = None


@dataclass(slots=True, kw_only=True)
class TaskEntry:
    """A task of this worker."""

    job: TaskJob
    connector_config: Mapping[str, str]
    config: Mapping[str, str]
    is_paused: bool
    attempts: Attempts
    is_failed: bool = False
    is_ending: bool = False
    reload_ms: int | None = None  # Its secrets expire then; None: they do not.
    has_run: bool = False  # Since its start it told that it runs.
    since_ms: int = 0  # When it told so.
    counts: Mapping[str, int] = field(default_factory=dict)  # What it told last, by metric.


class RunningSet:
    """Used by the herder's thread and by the lines of tasks."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.connectors: dict[str, ConnectorEntry] = {}
        self.tasks: dict[TaskId, TaskEntry] = {}
        self._runs = 0

    def next_run(self) -> int:
        """A number that no start of a task had before."""
        with self.lock:
            self._runs += 1
            return self._runs

    def current(self, run: TaskRun) -> TaskEntry | None:
        """The entry of a run; None: it is over, whatever it still tells."""
        entry = self.tasks.get(TaskId(run.connector, run.task))
        return entry if entry is not None and entry.job.run == run else None

    def counted(self) -> dict[TaskId, Mapping[str, int]]:
        """What tasks have counted."""
        with self.lock:
            return {of: one.counts for of, one in self.tasks.items()}

    def shown_connectors(self) -> dict[str, RunningConnector]:
        """As the plan looks at them."""
        with self.lock:
            return {
                name: RunningConnector(
                    config=one.config,
                    target=one.target,
                    is_failed=one.is_failed,
                    resume_ms=one.attempts.resume_ms,
                    reload_ms=one.reload_ms,
                )
                for name, one in self.connectors.items()
            }

    def shown_tasks(self) -> dict[TaskId, RunningTask]:
        """As the plan looks at them."""
        with self.lock:
            return {
                of: RunningTask(
                    connector_config=one.connector_config,
                    config=one.config,
                    is_paused=one.is_paused,
                    is_failed=one.is_failed,
                    resume_ms=one.attempts.resume_ms,
                    reload_ms=one.reload_ms,
                )
                for of, one in self.tasks.items()
            }
