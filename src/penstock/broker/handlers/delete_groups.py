"""DeleteGroups: forget empty groups and their offsets."""

from collections.abc import Coroutine
from inspect import iscoroutine
from typing import Any

from penstock.broker.context import RequestContext
from penstock.broker.unawaited import close_all
from penstock.errors import ErrorCode, ProtocolError
from penstock.groups.shard import GroupShard
from penstock.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def handle(
    request: DeleteGroupsRequest, context: RequestContext
) -> DeleteGroupsResponse | Coroutine[Any, Any, DeleteGroupsResponse]:
    asked = dict.fromkeys(request.groups_names)  # A group named twice is deleted once.
    outcomes = {group_id: _delete(group_id, context) for group_id in asked}
    if any(iscoroutine(outcome) for outcome in outcomes.values()):
        return _later(outcomes)
    return _response({g: o for g, o in outcomes.items() if isinstance(o, ErrorCode)})


def error_response(request: DeleteGroupsRequest, error: ProtocolError) -> DeleteGroupsResponse:
    """The same error for every group."""
    return _response(dict.fromkeys(request.groups_names, error.code))


def _delete(group_id: str, context: RequestContext) -> ErrorCode | Coroutine[Any, Any, ErrorCode]:
    def delete(shard: GroupShard) -> ErrorCode:
        shard.delete_group(group_id)
        return ErrorCode.NONE

    try:
        return context.broker.groups.run(group_id, delete)
    except ProtocolError as error:
        return error.code


async def _later(
    outcomes: dict[str, ErrorCode | Coroutine[Any, Any, ErrorCode]],
) -> DeleteGroupsResponse:
    codes: dict[str, ErrorCode] = {}
    try:
        for group_id, outcome in outcomes.items():
            try:
                codes[group_id] = outcome if isinstance(outcome, ErrorCode) else await outcome
            except ProtocolError as error:
                codes[group_id] = error.code
    finally:
        close_all(outcomes.values())
    return _response(codes)


def _response(codes: dict[str, ErrorCode]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=int(code))
            for group_id, code in codes.items()
        ]
    )
