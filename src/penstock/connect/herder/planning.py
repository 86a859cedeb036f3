"""What a worker does next, of what the config topic wants and what it runs. Pure.

A round plans only what can be done now; what follows from it is planned in the next round.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from penstock.connect.group.place import ALONE, GroupPlace
from penstock.connect.store.config_records import TargetState
from penstock.connect.store.config_state import StoredConnector
from penstock.connect.store.status_records import TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningConnector:
    """A connector of this worker."""

    config: Mapping[str, str]
    target: TargetState
    resume_ms: int | None = None  # It failed; from then on it may be tried again.
    is_failed: bool = False
    reload_ms: int | None = None  # Its secrets expire then; None: they do not.


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTask:
    """A task of this worker, from its submission to its end."""

    connector_config: Mapping[str, str]
    config: Mapping[str, str]
    is_paused: bool = False
    is_failed: bool = False
    resume_ms: int | None = None
    reload_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StartConnector:
    """Make it, ask it for its tasks, and write them."""

    name: str


@dataclass(frozen=True, slots=True)
class StopConnector:
    """End it; its tasks are ended by actions of their own. One that is not deleted moves."""

    name: str
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class SettleConnector:
    """Put it into the state it is to be in, without running it."""

    name: str


@dataclass(frozen=True, slots=True)
class StartTask:
    """Submit it."""

    id: TaskId


@dataclass(frozen=True, slots=True)
class StopTask:
    """End it."""

    id: TaskId


@dataclass(frozen=True, slots=True)
class PauseTask:
    """Have it pause, or go on."""

    id: TaskId
    is_paused: bool


@dataclass(frozen=True, slots=True)
class DropTasks:
    """A stopped connector has no tasks: write that."""

    name: str


Action: TypeAlias = (
    StartConnector | StopConnector | SettleConnector | StartTask | StopTask | PauseTask | DropTasks
)


def plan(
    wanted: Mapping[str, StoredConnector],
    connectors: Mapping[str, RunningConnector],
    tasks: Mapping[TaskId, RunningTask],
    *,
    now_ms: int,
    place: GroupPlace = ALONE,
) -> list[Action]:
    """What there is to do at this place in the group, in order: what ends comes first."""
    actions: list[Action] = [
        StopTask(of)
        for of, task in tasks.items()
        if not place.owns(of) or _is_over(task, now_ms) or _is_unwanted(wanted, of, task)
    ]
    actions += [
        StopConnector(name, name not in wanted)
        for name in connectors
        if name not in wanted or not place.owns(TaskId(name))
    ]
    ending = {action.id for action in actions if isinstance(action, StopTask)}
    for name, stored in wanted.items():
        if place.owns(TaskId(name)):
            actions += _plan_connector(stored, connectors.get(name), now_ms)
        if stored.is_consistent and stored.target is not TargetState.STOPPED:
            mine = [of for of in _tasks_of(stored) if place.owns(of) and of not in ending]
            actions += _plan_tasks(stored, mine, tasks, now_ms)
    return actions


def configured_items(wanted: Mapping[str, StoredConnector]) -> frozenset[TaskId]:
    """All connectors, and the tasks that are in force: what a group shares out."""
    items = {TaskId(name) for name in wanted}
    for stored in wanted.values():
        if stored.is_consistent:
            items.update(_tasks_of(stored))
    return frozenset(items)


def _tasks_of(stored: StoredConnector) -> list[TaskId]:
    return [TaskId(stored.name, number) for number in range(len(stored.tasks))]


def _is_unwanted(wanted: Mapping[str, StoredConnector], of: TaskId, task: RunningTask) -> bool:
    stored = wanted.get(of.connector)
    if stored is None or stored.target is TargetState.STOPPED:
        return True
    if of.task is None or of.task >= len(stored.tasks):
        return True
    return (task.connector_config, task.config) != (stored.config, stored.tasks[of.task])


def _plan_connector(
    stored: StoredConnector, running: RunningConnector | None, now_ms: int
) -> Iterable[Action]:
    if stored.target is TargetState.STOPPED and stored.tasks:
        yield DropTasks(stored.name)
    if stored.target is not TargetState.STARTED:
        if running is None or (running.target, running.config) != (stored.target, stored.config):
            yield SettleConnector(stored.name)
        return
    if running is None or (running.target, running.config) != (stored.target, stored.config):
        yield StartConnector(stored.name)
    elif running.is_failed:
        if running.resume_ms is not None and now_ms >= running.resume_ms:
            yield StartConnector(stored.name)
    elif not stored.is_consistent or _is_over(running, now_ms):
        yield StartConnector(stored.name)


def _is_over(one: RunningConnector | RunningTask, now_ms: int) -> bool:
    """Whether it runs with secrets that have expired."""
    return not one.is_failed and one.reload_ms is not None and now_ms >= one.reload_ms


def _plan_tasks(
    stored: StoredConnector,
    mine: Iterable[TaskId],  # Without those that end: the next round starts them anew.
    tasks: Mapping[TaskId, RunningTask],
    now_ms: int,
) -> Iterable[Action]:
    is_paused = stored.target is TargetState.PAUSED
    for of in mine:
        task = tasks.get(of)
        if task is None:
            yield StartTask(of)
        elif task.is_failed:
            if task.resume_ms is not None and now_ms >= task.resume_ms:
                yield StartTask(of)
        elif task.is_paused != is_paused:
            yield PauseTask(of, is_paused)
