"""Groups and transactions have a coordinator each: find it, ask it, and ask again when it moved.

One question goes to each broker for all the groups or ids it looks after. Whoever answers "not me"
or "still loading" is looked up and asked again until the time for a call is over.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import TypeVar

from penstock.client.errors import BrokerUnreachableError, ClientError
from penstock.client.values import Node
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.connection import R
from penstock.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
    PenstockError,
    ProtocolError,
    error_for,
)
from penstock.protocol.apis import ApiKey, Request
from penstock.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

T = TypeVar("T")

MOVED = (NotCoordinator, CoordinatorLoadInProgress, CoordinatorNotAvailable)
_MANY_KEYS_FROM = 4  # FindCoordinator takes several keys from this version on.


class CoordinatorKind(IntEnum):
    """What a coordinator looks after, as FindCoordinator numbers it."""

    GROUP = 0
    TRANSACTION = 1


def find_coordinators(
    cluster: ClusterClient, keys: Sequence[str], kind: CoordinatorKind
) -> dict[str, Node | ProtocolError]:
    """The broker that coordinates each group or transactional id now."""
    versions = cluster.any_connection().versions(ApiKey.FIND_COORDINATOR)
    if versions and versions[-1] < _MANY_KEYS_FROM:
        return {key: _find_one(cluster, key, kind) for key in keys}
    request = FindCoordinatorRequest(key_type=int(kind), coordinator_keys=list(keys))
    answer = cluster.ask_any(request, FindCoordinatorResponse)
    return {
        found.key: error_for(found.error_code, found.error_message or "")
        if found.error_code
        else Node(found.node_id, found.host, found.port)
        for found in answer.coordinators
    }


def ask_coordinators(
    cluster: ClusterClient,
    keys: Iterable[str],
    kind: CoordinatorKind,
    ask: Callable[[Node, Sequence[str]], dict[str, T | ProtocolError]],
) -> dict[str, T | ProtocolError]:
    """What `ask(coordinator, keys)` gave for every key; asked again while coordinators move."""
    answers: dict[str, T | ProtocolError] = {}
    unanswered = list(dict.fromkeys(keys))
    deadline_s = time.monotonic() + cluster.api_timeout_s
    while unanswered:
        fresh = _ask_round(cluster, unanswered, kind, ask)
        answers.update(fresh)
        unanswered = [key for key in unanswered if isinstance(answers[key], MOVED)]
        if unanswered and time.monotonic() + cluster.retry_backoff_s > deadline_s:
            break
        if unanswered:
            time.sleep(cluster.retry_backoff_s)
    return answers


def ask_coordinator(
    cluster: ClusterClient, key: str, kind: CoordinatorKind, ask: Callable[[Node], T]
) -> T:
    """What `ask(coordinator)` returns for one key; what it raises is raised."""

    def ask_for_one(node: Node, keys: Sequence[str]) -> dict[str, T | ProtocolError]:
        try:
            return {key: ask(node)}
        except MOVED as error:
            return {key: error}

    answer = ask_coordinators(cluster, [key], kind, ask_for_one)[key]
    if isinstance(answer, ProtocolError):
        raise answer
    return answer


def ask_while_loading(cluster: ClusterClient, attempt: Callable[[], T]) -> T:
    """What `attempt` returns; again while it says that a coordinator is not ready yet."""
    deadline_s = time.monotonic() + cluster.api_timeout_s
    while True:
        try:
            return attempt()
        except MOVED:
            if time.monotonic() + cluster.retry_backoff_s > deadline_s:
                raise
        time.sleep(cluster.retry_backoff_s)


def ask_within(
    cluster: ClusterClient, node_id: int, request: Request, expect: type[R], *, version_max: int
) -> R:
    """Ask one broker in no newer version than this: later ones may name topics by id alone."""

    def attempt() -> R:
        connection = cluster.node_connection(node_id)
        spoken = connection.versions(request.api_key)
        version = min(version_max, spoken[-1]) if spoken else None
        return connection.ask(request, expect, version)

    try:
        return attempt()
    except BrokerUnreachableError:
        cluster.close()  # A kept connection may have been closed for being idle: open a new one.
        return attempt()


def raised(results: dict[str, T | ProtocolError]) -> dict[str, T]:
    """The results, if none is an error; the first error is raised."""
    good: dict[str, T] = {}
    for key, result in results.items():
        if isinstance(result, PenstockError):
            raise result
        good[key] = result
    return good


def _ask_round(
    cluster: ClusterClient,
    keys: Sequence[str],
    kind: CoordinatorKind,
    ask: Callable[[Node, Sequence[str]], dict[str, T | ProtocolError]],
) -> dict[str, T | ProtocolError]:
    answers: dict[str, T | ProtocolError] = {}
    by_node: dict[Node, list[str]] = {}
    for key, found in find_coordinators(cluster, keys, kind).items():
        if isinstance(found, Node):
            by_node.setdefault(found, []).append(key)
        else:
            answers[key] = found
    for node, its_keys in by_node.items():
        try:
            answers.update(ask(node, its_keys))
        except BrokerUnreachableError as error:
            # Another broker takes over what a dead one coordinated: that is looked up again.
            gone = CoordinatorNotAvailable(str(error))
            answers.update(dict.fromkeys(its_keys, gone))
    missing = [key for key in keys if key not in answers]
    if missing:
        raise ClientError(f"The broker left {missing[0]!r} out of its answer.")
    return answers


def _find_one(cluster: ClusterClient, key: str, kind: CoordinatorKind) -> Node | ProtocolError:
    request = FindCoordinatorRequest(key=key, key_type=int(kind))
    answer = cluster.ask_any(request, FindCoordinatorResponse)
    if answer.error_code:
        return error_for(answer.error_code, answer.error_message or "")
    return Node(answer.node_id, answer.host, answer.port)
