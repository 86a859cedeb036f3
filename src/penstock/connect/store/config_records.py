"""Records of the config topic: connectors, their tasks, what state each is to be in, loggers.

| key | value |
| `connector-<name>` | `{"properties":{...}}`, null where it was deleted |
| `target-state-<name>` | `{"state":"PAUSED","state.v2":"STOPPED"}` |
| `task-<name>-<n>` | `{"properties":{...}}`, in force from the next commit on |
| `commit-<name>` | `{"tasks":2}` |
| `tasks-fencing-<name>` | `{"task-count":2}`: how many producers a new round must fence |
| `restart-connector-<name>` | `{"only-failed":false,"include-tasks":true}` |
| `logger-cluster-<logger>` | `{"level":"DEBUG"}` |
| `session-key` | the key with which workers sign what they ask of each other (KIP-507) |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from penstock.connect.store.json_text import DamagedEntry, decode_object, encode

_CONNECTOR = "connector-"
_TARGET_STATE = "target-state-"
_TASK = "task-"
_COMMIT = "commit-"
_FENCING = "tasks-fencing-"
_RESTART = "restart-connector-"
_LOGGER = "logger-cluster-"
_SESSION_KEY = "session-key"
_DIGITS_MAX = 9


class TargetState(StrEnum):
    """What a connector is to do."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class LogEntry(NamedTuple):
    """A record to append."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorConfigured:
    """A connector's configuration; None: it was deleted."""

    name: str
    config: Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetStateSet:
    """What a connector is to do; None: nothing is said any more."""

    name: str
    state: TargetState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfigured:
    """A task's configuration; it waits for the commit."""

    name: str
    task: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksCommitted:
    """From here on a connector has so many tasks."""

    name: str
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksFenced:
    """So many producers of a connector must be fenced before its next tasks start."""

    name: str
    task_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartWanted:
    """Somebody asked for a restart."""

    name: str
    include_tasks: bool
    only_failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggerSet:
    """How much a logger prints, in the whole group."""

    logger: str
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKeySet:
    """The key of the workers; `group.session_keys` reads it."""

    document: Mapping[str, Any]


ConfigChange: TypeAlias = (
    ConnectorConfigured
    | TargetStateSet
    | TaskConfigured
    | TasksCommitted
    | TasksFenced
    | RestartWanted
    | LoggerSet
    | SessionKeySet
)


def encode_connector(name: str, config: Mapping[str, str] | None) -> LogEntry:
    """A connector's configuration, or its end."""
    value = None if config is None else encode({"properties": dict(config)})
    return LogEntry(f"{_CONNECTOR}{name}".encode(), value)


def encode_target_state(name: str, state: TargetState | None) -> LogEntry:
    """What a connector is to do; old workers read of a stopped one that it is paused."""
    key = f"{_TARGET_STATE}{name}".encode()
    if state is None:
        return LogEntry(key, None)
    old = TargetState.PAUSED if state is TargetState.STOPPED else state
    return LogEntry(key, encode({"state": old.value, "state.v2": state.value}))


def encode_tasks(name: str, configs: Sequence[Mapping[str, str]]) -> list[LogEntry]:
    """The tasks of a connector: all their configurations, then the commit that counts them."""
    tasks = [
        LogEntry(f"{_TASK}{name}-{n}".encode(), encode({"properties": dict(config)}))
        for n, config in enumerate(configs)
    ]
    return [*tasks, LogEntry(f"{_COMMIT}{name}".encode(), encode({"tasks": len(configs)}))]


def encode_fencing(name: str, task_count: int) -> LogEntry:
    """How many producers the next round must fence."""
    return LogEntry(f"{_FENCING}{name}".encode(), encode({"task-count": task_count}))


def encode_restart(name: str, *, include_tasks: bool, only_failed: bool) -> LogEntry:
    """That every worker is to restart what it runs of a connector."""
    document = {"include-tasks": include_tasks, "only-failed": only_failed}
    return LogEntry(f"{_RESTART}{name}".encode(), encode(document))


def encode_logger(logger: str, level: str) -> LogEntry:
    """A logger's level for the whole group."""
    return LogEntry(f"{_LOGGER}{logger}".encode(), encode({"level": level}))


def decode_config(key: bytes | None, value: bytes | None) -> ConfigChange | None:
    """What a record says; None: nothing that is known here. DamagedEntry if it is no record."""
    name = _text(key)
    for prefix, read in _READERS:
        if name.startswith(prefix):
            return read(name.removeprefix(prefix), value)
    if name == _SESSION_KEY and value is not None:
        return SessionKeySet(document=decode_object(value))
    return None


def _read_connector(name: str, value: bytes | None) -> ConfigChange:
    return ConnectorConfigured(name=name, config=None if value is None else _properties(value))


def _read_target_state(name: str, value: bytes | None) -> ConfigChange:
    if value is None:
        return TargetStateSet(name=name, state=None)
    document = decode_object(value)
    word = document.get("state.v2", document.get("state"))
    if not isinstance(word, str) or word not in TargetState.__members__:
        raise DamagedEntry(f"{word!r} is no target state")
    return TargetStateSet(name=name, state=TargetState(word))


def _read_task(rest: str, value: bytes | None) -> ConfigChange | None:
    name, dash, number = rest.rpartition("-")
    if value is None:
        return None
    if not dash or not number.isascii() or not number.isdigit() or len(number) > _DIGITS_MAX:
        raise DamagedEntry(f"task-{rest} has no task number")
    return TaskConfigured(name=name, task=int(number), config=_properties(value))


def _read_commit(name: str, value: bytes | None) -> ConfigChange | None:
    return None if value is None else TasksCommitted(name=name, tasks=_count(value, "tasks"))


def _read_fencing(name: str, value: bytes | None) -> ConfigChange | None:
    if value is None:
        return None
    return TasksFenced(name=name, task_count=_count(value, "task-count"))


def _read_restart(name: str, value: bytes | None) -> ConfigChange | None:
    if value is None:
        return None
    document = decode_object(value)
    return RestartWanted(
        name=name,
        include_tasks=document.get("include-tasks") is True,
        only_failed=document.get("only-failed") is True,
    )


def _read_logger(logger: str, value: bytes | None) -> ConfigChange | None:
    if value is None:
        return None
    return LoggerSet(logger=logger, level=str(decode_object(value).get("level", "")))


_READERS = (
    (_CONNECTOR, _read_connector),
    (_TARGET_STATE, _read_target_state),
    (_TASK, _read_task),
    (_COMMIT, _read_commit),
    (_FENCING, _read_fencing),
    (_RESTART, _read_restart),
    (_LOGGER, _read_logger),
)


def _text(key: bytes | None) -> str:
    try:
        return (key or b"").decode()
    except UnicodeDecodeError:
        raise DamagedEntry("the key is not text") from None


def _properties(value: bytes) -> dict[str, str]:
    found = decode_object(value).get("properties")
    if not isinstance(found, dict):
        raise DamagedEntry("the record has no properties")
    return {str(key): str(one) for key, one in found.items() if one is not None}


def _count(value: bytes, field: str) -> int:
    found = decode_object(value).get(field)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise DamagedEntry(f"{field}={found!r} is no count")
    return found
