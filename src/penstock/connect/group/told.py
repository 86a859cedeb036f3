"""What workers of a group tell each other, in the bytes of Apache Connect's `sessioned` protocol.

A worker tells where it is, how far it has read the config topic, and what it holds. The leader
tells each worker what it gets in addition, what it must give up, and when to join again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.connect.store.status_records import TaskId
from penstock.errors import PenstockError
from penstock.protocol.messages.connect_protocol import (
    ConnectAssignment,
    ConnectorTasks,
    ConnectWorkerState,
)
from penstock.protocol.primitives import MalformedMessage

PROTOCOL_TYPE = "connect"
PROTOCOL = "sessioned"
_VERSION = 2
_CONNECTOR = -1

Held = frozenset[TaskId]


class ForeignWorker(PenstockError):
    """A member of the group says what no worker says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState:
    """A worker as it tells of itself."""

    url: str
    config_offset: int
    held: Held = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAssignment:
    """What the leader tells a worker."""

    leader: str
    leader_url: str
    config_offset: int
    assigned: Held = frozenset()
    revoked: Held = frozenset()
    delay_ms: int = 0  # After it, the group comes together again; 0: it need not.
    has_failed: bool = False  # The leader could not read the config topic; join again.


def encode_state(state: WorkerState) -> bytes:
    """For a JoinGroup request."""
    held = None
    if state.held:
        holding = ConnectAssignment(
            error=0,
            leader="",
            leader_url="",
            config_offset=state.config_offset,
            assignment=_grouped(state.held),
            revoked=[],
            delay=0,
        )
        held = holding.to_bytes(_VERSION)
    told = ConnectWorkerState(url=state.url, config_offset=state.config_offset, allocation=held)
    return told.to_bytes(_VERSION)


def decode_state(data: bytes) -> WorkerState:
    """What a member told; ForeignWorker if it is none of Connect's."""
    try:
        told = ConnectWorkerState.from_bytes(data)
        held = ConnectAssignment.from_bytes(told.allocation) if told.allocation else None
    except MalformedMessage as error:
        raise ForeignWorker(f"A member of the group is no Connect worker: {error}") from None
    return WorkerState(
        url=told.url,
        config_offset=told.config_offset,
        held=frozenset() if held is None else _single(held.assignment),
    )


def encode_assignment(given: GroupAssignment) -> bytes:
    """For a SyncGroup request."""
    return ConnectAssignment(
        error=int(given.has_failed),
        leader=given.leader,
        leader_url=given.leader_url,
        config_offset=given.config_offset,
        assignment=_grouped(given.assigned),
        revoked=_grouped(given.revoked),
        delay=given.delay_ms,
    ).to_bytes(_VERSION)


def decode_assignment(data: bytes) -> GroupAssignment:
    """What the leader told; ForeignWorker if it is no worker of Connect's."""
    try:
        told = ConnectAssignment.from_bytes(data)
    except MalformedMessage as error:
        raise ForeignWorker(f"The leader of the group is no Connect worker: {error}") from None
    return GroupAssignment(
        leader=told.leader,
        leader_url=told.leader_url,
        config_offset=told.config_offset,
        assigned=_single(told.assignment),
        revoked=_single(told.revoked or ()),
        delay_ms=told.delay,
        has_failed=told.error != 0,
    )


def _grouped(items: Iterable[TaskId]) -> list[ConnectorTasks]:
    """By connector, the connector itself before its tasks."""
    tasks: dict[str, list[int]] = {}
    for of in sorted(items, key=order_of):
        tasks.setdefault(of.connector, []).append(_CONNECTOR if of.task is None else of.task)
    return [ConnectorTasks(connector=name, tasks=numbers) for name, numbers in tasks.items()]


def _single(grouped: Iterable[ConnectorTasks]) -> Held:
    return frozenset(
        TaskId(one.connector, None if number == _CONNECTOR else number)
        for one in grouped
        for number in one.tasks
    )


def order_of(of: TaskId) -> tuple[str, int]:
    """Connectors and tasks in the order in which they are told."""
    return of.connector, _CONNECTOR if of.task is None else of.task
