"""What guards are made of: a request before its handler, and the ways to refuse it or a part of it.

The guards themselves, one for each API, are in broker/security/guards.py.
"""

import copy
from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Any, Final, NamedTuple

from penstock.broker.context import RequestContext
from penstock.broker.security.access import RequestRights
from penstock.errors import (
    ClusterAuthorization,
    GroupAuthorization,
    ProtocolError,
    TopicAuthorization,
    TransactionalIdAuthorization,
)
from penstock.protocol.primitives import ZERO_UUID
from penstock.security.acls.rules import AclOperation as Op
from penstock.security.acls.rules import AclResourceType

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = (
    AclResourceType.TOPIC,
    AclResourceType.GROUP,
    AclResourceType.CLUSTER,
    AclResourceType.TRANSACTIONAL_ID,
)
_REFUSALS: Final[dict[AclResourceType, Callable[[], ProtocolError]]] = {
    TOPIC: lambda: TopicAuthorization("Topic authorization failed."),
    GROUP: lambda: GroupAuthorization("Group authorization failed."),
    CLUSTER: lambda: ClusterAuthorization("Cluster authorization failed."),
    TRANSACTIONAL_ID: lambda: TransactionalIdAuthorization(
        "Transactional Id authorization failed."
    ),
}


class GuardedRequest(NamedTuple):
    """A request at its guard, and what may follow."""

    request: Any
    context: RequestContext
    rights: RequestRights
    handle: Callable[[Any, RequestContext], Any]
    refuse: Callable[[Any, ProtocolError], Any]  # The answer where all of it is refused.

    def proceed(self) -> Any:
        return self.handle(self.request, self.context)


Guard = Callable[[GuardedRequest], Any]
May = Callable[[Op, AclResourceType, str], bool]
FirstLook = Callable[[Any, RequestContext, May], bool]


def refusal(kind: AclResourceType) -> ProtocolError:
    """The error of somebody without a right on such a resource."""
    return _REFUSALS[kind]()


# Parts that guards are made of


def then(answer: Any, finish: Callable[[Any], Any]) -> Any:
    """Finish an answer, now or when it is there."""
    if isinstance(answer, (CoroutineType, Awaitable)):
        return _finish_later(answer, finish)
    return finish(answer)


async def _finish_later(answer: Awaitable[Any], finish: Callable[[Any], Any]) -> Any:
    return finish(await answer)


def demand(ask: GuardedRequest, operation: Op, kind: AclResourceType, *names: str) -> None:
    """The request fails as a whole without the right."""
    if not ask.rights.may(operation, kind, *names):
        raise refusal(kind)


def everybody(ask: GuardedRequest) -> Any:
    return ask.proceed()


def on_cluster(operation: Op, instead: Op | None = None) -> Guard:
    def guard(ask: GuardedRequest) -> Any:
        if instead is None or not ask.rights.may(operation, CLUSTER, quietly=True):
            demand(ask, instead or operation, CLUSTER)
        return ask.proceed()

    return guard


def on_group(operation: Op, guard: Guard = everybody) -> Guard:
    def guard_group(ask: GuardedRequest) -> Any:
        demand(ask, operation, GROUP, ask.request.group_id)
        return guard(ask)

    return guard_group


def on_transaction(guard: Guard = everybody) -> Guard:
    def guard_transaction(ask: GuardedRequest) -> Any:
        demand(ask, Op.WRITE, TRANSACTIONAL_ID, ask.request.transactional_id)
        return guard(ask)

    return guard_transaction


class GuardedItems(NamedTuple):
    """The list of a request whose items are allowed or refused one by one, and its answers."""

    asked: str
    answered: str
    name: Callable[[Any, RequestContext], str | None]  # None: the handler knows no such item.


def plain_name(item: Any, _context: RequestContext) -> str | None:
    return str(item)


def named(item: Any, _context: RequestContext) -> str | None:
    return str(item.name)


def by_topic(item: Any, _context: RequestContext) -> str | None:
    return str(item.topic)


def named_or_id(item: Any, context: RequestContext) -> str | None:
    if item.topic_id != ZERO_UUID:
        return context.broker.image.topic_names_by_id.get(item.topic_id)
    return str(item.name)


def split_items(
    ask: GuardedRequest, items: GuardedItems, operation: Op, kind: AclResourceType
) -> tuple[Any, Any]:
    """The items that are allowed, and those that are not."""
    allowed: list[Any] = []
    refused: list[Any] = []
    context, name_of, may = ask.context, items.name, ask.rights.may
    for item in getattr(ask.request, items.asked):
        name = name_of(item, context)
        is_allowed = name is None or may(operation, kind, name)
        (allowed if is_allowed else refused).append(item)
    return allowed, refused


def with_items(request: Any, asked: str, chosen: list[Any]) -> Any:
    part = copy.copy(request)
    setattr(part, asked, chosen)
    return part


def proceed_without(
    ask: GuardedRequest,
    items: GuardedItems,
    allowed: list[Any],
    refused: list[Any],
    error: ProtocolError,
) -> Any:
    """The handler sees what is allowed; the rest gets the error in its place of the answer."""
    if not refused:
        return ask.proceed()
    rest = with_items(ask.request, items.asked, refused)
    if not allowed:
        return ask.refuse(rest, error)
    answer = ask.handle(with_items(ask.request, items.asked, allowed), ask.context)

    def finish(response: Any) -> Any:
        told = getattr(ask.refuse(rest, error), items.answered)
        getattr(response, items.answered).extend(told)
        return response

    return then(answer, finish)


def each(operation: Op, kind: AclResourceType, items: GuardedItems) -> Guard:
    def guard(ask: GuardedRequest) -> Any:
        allowed, refused = split_items(ask, items, operation, kind)
        if not refused:
            return ask.handle(ask.request, ask.context)
        return proceed_without(ask, items, allowed, refused, refusal(kind))

    return guard


TOPICS: Final = GuardedItems("topics", "topics", named)
