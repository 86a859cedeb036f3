"""Long lists are worked through in slices, between which others get their turn.

A request about thousands of topics or groups is handled as many short requests would be: each
slice goes through the handler on the event loop, and the answers are joined. Requests of which
the parts depend on each other are not split here; their handlers pause by themselves (`TimeSlice`).
"""

import asyncio
import copy
from collections.abc import Callable, Iterator, Sequence
from types import CoroutineType
from typing import Any, Final, NamedTuple

from penstock.broker.context import RequestContext
from penstock.protocol.apis import ApiKey

_SLICE_S: Final = 0.005


class Within(NamedTuple):
    """The list that each element has, in the request and in the answer."""

    asked: str
    answered: str


class ListField(NamedTuple):
    """The list of a request, the list of its answer, and how many elements need no slices."""

    asked: str
    answered: str
    at_once: int
    # With this, each element of the request gets one in the answer, in the same order.
    within: Within | None = None


LISTS: Final = {
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ListField(
        "topics", "topics", 200, Within("partitions", "partitions")
    ),
    ApiKey.DESCRIBE_CONFIGS: ListField("resources", "results", 20),
    ApiKey.FIND_COORDINATOR: ListField("coordinator_keys", "coordinators", 500),
    ApiKey.OFFSET_FETCH: ListField("groups", "groups", 50),
    ApiKey.DELETE_GROUPS: ListField("groups_names", "results", 200),
    ApiKey.DESCRIBE_GROUPS: ListField("groups", "groups", 200),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ListField("group_ids", "groups", 200),
    ApiKey.DESCRIBE_TRANSACTIONS: ListField("transactional_ids", "transaction_states", 200),
    ApiKey.DESCRIBE_PRODUCERS: ListField(
        "topics", "topics", 50, Within("partition_indexes", "partitions")
    ),
}

Handle = Callable[[Any, RequestContext], Any]


class TimeSlice:
    """Gives the event loop to others when a piece of work has run for some milliseconds."""

    __slots__ = ("_loop", "_until_s")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._until_s = self._loop.time() + _SLICE_S

    async def breathe(self) -> None:
        if self._loop.time() >= self._until_s:
            await asyncio.sleep(0)
            self._until_s = self._loop.time() + _SLICE_S


def in_slices(handle: Handle, fields: ListField) -> Handle:
    """The handler, with long lists handed to it in slices."""

    def handle_any(request: Any, context: RequestContext) -> Any:
        items = getattr(request, fields.asked)
        if items is None or not _are_many(items, fields):
            return handle(request, context)
        context.is_large = True
        return _handle_many(handle, fields, request, context)

    return handle_any


def _are_many(items: Sequence[Any], fields: ListField) -> bool:
    if len(items) > fields.at_once or fields.within is None:
        return len(items) > fields.at_once
    name = fields.within.asked
    return sum(len(getattr(item, name)) for item in items) > fields.at_once


async def _handle_many(
    handle: Handle, fields: ListField, request: Any, context: RequestContext
) -> Any:
    pace = TimeSlice()
    whole: Any = None
    for items, goes_on in _slices(getattr(request, fields.asked), fields):
        some = copy.copy(request)
        setattr(some, fields.asked, items)
        answer = handle(some, context)
        if type(answer) is CoroutineType:
            answer = await answer
        if whole is None:
            whole = answer
        else:
            _join(whole, answer, fields, goes_on=goes_on)
        await pace.breathe()
    return whole


def _join(whole: Any, answer: Any, fields: ListField, *, goes_on: bool) -> None:
    joined, found = getattr(whole, fields.answered), getattr(answer, fields.answered)
    if goes_on and fields.within is not None:
        name = fields.within.answered
        getattr(joined[-1], name).extend(getattr(found[0], name))
        found = found[1:]
    joined.extend(found)


def _slices(items: Sequence[Any], fields: ListField) -> Iterator[tuple[list[Any], bool]]:
    """Each with whether its first element is the rest of the last one before."""
    some: list[Any] = []
    count, goes_on = 0, False
    for item, size, is_rest in _pieces(items, fields):
        if some and count + size > fields.at_once:
            yield some, goes_on
            some, count, goes_on = [], 0, is_rest
        some.append(item)
        count += size
    yield some, goes_on


def _pieces(items: Sequence[Any], fields: ListField) -> Iterator[tuple[Any, int, bool]]:
    """Elements small enough for a slice, their size, and whether they are the rest of one."""
    for item in items:
        inner = () if fields.within is None else getattr(item, fields.within.asked)
        if fields.within is None or len(inner) <= fields.at_once:
            yield item, max(1, len(inner)), False
            continue
        for start in range(0, len(inner), fields.at_once):
            piece = copy.copy(item)
            part = inner[start : start + fields.at_once]
            setattr(piece, fields.within.asked, part)
            yield piece, len(part), start > 0
