"""What the config topic says, all of it: the connectors, their tasks in force, their target states.

Tasks are configured one record each and put in force by a commit. A commit that does not find all
its tasks, as after a worker died between the two, leaves the connector inconsistent: its tasks must
be made anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.connect.store.config_records import (
    ConfigChange,
    ConnectorConfigured,
    LoggerSet,
    SessionKeySet,
    TargetState,
    TargetStateSet,
    TaskConfigured,
    TasksCommitted,
    TasksFenced,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConnector:
    """One connector as the topic tells it."""

    name: str
    config: Mapping[str, str]
    target: TargetState = TargetState.STARTED
    tasks: tuple[Mapping[str, str], ...] = ()
    is_consistent: bool = True  # False: its tasks must be configured again.
    fenced_count: int | None = None  # None: no round of exactly-once tasks was begun.
    is_fencing_due: bool = False  # Its tasks are newer than the last round (KIP-618).


@dataclass(slots=True)
class ConfigState:
    """Grows by `apply`; others look at `connectors`, which is made anew with each change."""

    connectors: dict[str, StoredConnector] = field(default_factory=dict)
    loggers: dict[str, str] = field(default_factory=dict)
    session_key: Mapping[str, Any] | None = None  # None: no leader has made one yet.
    _configs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _targets: dict[str, TargetState] = field(default_factory=dict)
    _waiting: dict[str, dict[int, Mapping[str, str]]] = field(default_factory=dict)
    _tasks: dict[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    _inconsistent: set[str] = field(default_factory=set)
    _fenced: dict[str, int] = field(default_factory=dict)
    _fencing_due: set[str] = field(default_factory=set)

    def apply(self, change: ConfigChange) -> None:
        """Take in one record, in the order of the topic."""
        match change:
            case ConnectorConfigured():
                self._configure(change)
            case TargetStateSet(name=name, state=None):
                self._targets.pop(name, None)
            case TargetStateSet(name=name, state=state) if state is not None:
                self._targets[name] = state
            case TaskConfigured(name=name, task=task, config=config):
                self._waiting.setdefault(name, {})[task] = config
            case TasksCommitted():
                self._commit(change)
            case TasksFenced(name=name, task_count=count):
                self._fenced[name] = count
                self._fencing_due.discard(name)
            case LoggerSet(logger=logger, level=level):
                self.loggers[logger] = level
            case SessionKeySet(document=document):
                self.session_key = document
            case _:
                return
        self.connectors = {name: self._stored(name) for name in self._configs}

    def _configure(self, change: ConnectorConfigured) -> None:
        if change.config is not None:
            self._configs[change.name] = change.config
            return
        for known in (self._configs, self._targets, self._waiting, self._tasks, self._fenced):
            known.pop(change.name, None)
        self._inconsistent.discard(change.name)
        self._fencing_due.discard(change.name)

    def _commit(self, change: TasksCommitted) -> None:
        waiting = self._waiting.pop(change.name, {})
        before = self._tasks.get(change.name, ())
        # A compacted topic keeps the tasks that an earlier commit had, too: all of them are known.
        known = {**dict(enumerate(before)), **waiting}
        if any(task not in known for task in range(change.tasks)):
            self._inconsistent.add(change.name)
            return
        self._inconsistent.discard(change.name)
        self._fencing_due.add(change.name)
        self._tasks[change.name] = tuple(known[task] for task in range(change.tasks))

    def _stored(self, name: str) -> StoredConnector:
        return StoredConnector(
            name=name,
            config=self._configs[name],
            target=self._targets.get(name, TargetState.STARTED),
            tasks=self._tasks.get(name, ()),
            is_consistent=name not in self._inconsistent,
            fenced_count=self._fenced.get(name),
            is_fencing_due=name in self._fencing_due,
        )
