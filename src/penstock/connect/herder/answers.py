"""Connectors, tasks and statuses as REST tells them. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.connect.store.config_state import StoredConnector
from penstock.connect.store.status_records import RunStatus, TaskId


def connector_info(stored: StoredConnector, kind: str) -> dict[str, Any]:
    """What `GET /connectors/x` answers."""
    return {
        "name": stored.name,
        "config": dict(stored.config),
        "tasks": [task_id(TaskId(stored.name, n)) for n in range(len(stored.tasks))],
        "type": kind,
    }


def task_infos(stored: StoredConnector) -> list[dict[str, Any]]:
    """What `GET /connectors/x/tasks` answers."""
    return [
        {"id": task_id(TaskId(stored.name, n)), "config": dict(config)}
        for n, config in enumerate(stored.tasks)
    ]


def connector_status(
    name: str, kind: str, statuses: Mapping[TaskId, RunStatus], tasks: Iterable[TaskId]
) -> dict[str, Any]:
    """What `GET /connectors/x/status` answers."""
    return {
        "name": name,
        "connector": status_document(statuses[TaskId(name)]),
        "tasks": [task_status(of, statuses[of]) for of in tasks],
        "type": kind,
    }


def task_status(of: TaskId, status: RunStatus) -> dict[str, Any]:
    """What `GET /connectors/x/tasks/0/status` answers."""
    return {"id": of.task, **status_document(status)}


def status_document(status: RunStatus) -> dict[str, Any]:
    """A state; a trace only where there is one."""
    told = {"state": status.state.value, "worker_id": status.worker_id, "version": status.version}
    return told if status.trace is None else {**told, "trace": status.trace}


def task_id(of: TaskId) -> dict[str, Any]:
    """A task's name."""
    return {"connector": of.connector, "task": of.task}
