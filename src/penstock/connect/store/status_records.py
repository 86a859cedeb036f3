"""Records of the status topic: how connectors and tasks are, and which topics they use."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from penstock.connect.store.config_records import LogEntry
from penstock.connect.store.json_text import DamagedEntry, decode_object, encode

_CONNECTOR = "status-connector-"
_TASK = "status-task-"
_TOPIC = "status-topic-"
_BETWEEN = ":connector-"
_DIGITS_MAX = 9


class RunState(StrEnum):
    """How a connector or a task is."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    DESTROYED = "DESTROYED"


class TaskId(NamedTuple):
    """A task of a connector; a task of None is the connector itself."""

    connector: str
    task: int | None = None

    def __str__(self) -> str:
        return self.connector if self.task is None else f"{self.connector}-{self.task}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """A state, who says so, and since which generation of the workers."""

    state: RunState
    worker_id: str
    generation: int = 0
    trace: str | None = None  # None: there is nothing to explain.
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSet:
    """How one is; None: it is gone."""

    id: TaskId
    status: RunStatus | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicUsed:
    """A connector uses a topic; `task` saw it first. `discovered_ms` of None: forget it."""

    connector: str
    topic: str
    task: int = 0
    discovered_ms: int | None = None


StatusChange: TypeAlias = StatusSet | TopicUsed


def encode_status(of: TaskId, status: RunStatus | None) -> LogEntry:
    """How a connector or task is, or that it is gone."""
    prefix = _CONNECTOR if of.task is None else _TASK
    key = f"{prefix}{of}".encode()
    if status is None:
        return LogEntry(key, None)
    document = {
        "state": status.state.value,
        "trace": status.trace,
        "worker_id": status.worker_id,
        "generation": status.generation,
        "version": status.version,
    }
    return LogEntry(key, encode(document))


def encode_topic(used: TopicUsed) -> LogEntry:
    """That a connector uses a topic, or that this is forgotten."""
    key = f"{_TOPIC}{used.topic}{_BETWEEN}{used.connector}".encode()
    if used.discovered_ms is None:
        return LogEntry(key, None)
    document = {
        "name": used.topic,
        "connector": used.connector,
        "task": used.task,
        "discoverTimestamp": used.discovered_ms,
    }
    return LogEntry(key, encode({"topic": document}))


def decode_status(key: bytes | None, value: bytes | None) -> StatusChange | None:
    """What a record says; None: nothing that is known here."""
    try:
        name = (key or b"").decode()
    except UnicodeDecodeError:
        raise DamagedEntry("the key is not text") from None
    if name.startswith(_TOPIC):
        return _read_topic(name.removeprefix(_TOPIC), value)
    if name.startswith(_TASK):
        return _read_task(name.removeprefix(_TASK), value)
    if name.startswith(_CONNECTOR):
        connector = TaskId(name.removeprefix(_CONNECTOR))
        return StatusSet(id=connector, status=_status(value))
    return None


def _read_task(rest: str, value: bytes | None) -> StatusChange:
    connector, dash, number = rest.rpartition("-")
    if not dash or not number.isascii() or not number.isdigit() or len(number) > _DIGITS_MAX:
        raise DamagedEntry(f"{_TASK}{rest} has no task number")
    return StatusSet(id=TaskId(connector, int(number)), status=_status(value))


def _read_topic(rest: str, value: bytes | None) -> StatusChange:
    topic, between, connector = rest.partition(_BETWEEN)  # A topic's name has no colon.
    if not between:
        raise DamagedEntry(f"{_TOPIC}{rest} names no connector")
    if value is None:
        return TopicUsed(connector=connector, topic=topic)
    document = decode_object(value).get("topic")
    if not isinstance(document, dict):
        raise DamagedEntry("the record tells of no topic")
    return TopicUsed(
        connector=connector,
        topic=topic,
        task=_number(document.get("task")),
        discovered_ms=_number(document.get("discoverTimestamp")),
    )


def _status(value: bytes | None) -> RunStatus | None:
    if value is None:
        return None
    document = decode_object(value)
    if document.get("state") not in RunState.__members__:
        raise DamagedEntry(f"{document.get('state')!r} is no state")
    trace, version = document.get("trace"), document.get("version")
    return RunStatus(
        state=RunState(document["state"]),
        worker_id=str(document.get("worker_id", "")),
        generation=_number(document.get("generation")),
        trace=None if trace is None else str(trace),
        version=None if version is None else str(version),
    )


def _number(found: object) -> int:
    return found if isinstance(found, int) and not isinstance(found, bool) else 0
