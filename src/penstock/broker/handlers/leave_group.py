"""LeaveGroup: members of a classic group go, one at a time or, since version 3, several."""

from collections.abc import Coroutine
from typing import Any

from penstock.broker.context import RequestContext
from penstock.groups.shard import GroupShard
from penstock.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)

_MANY_FROM = 3


def handle(
    request: LeaveGroupRequest, context: RequestContext
) -> LeaveGroupResponse | Coroutine[Any, Any, LeaveGroupResponse]:
    is_single = context.version < _MANY_FROM
    if is_single:
        request.members = [MemberIdentity(member_id=request.member_id)]

    def leave(shard: GroupShard) -> LeaveGroupResponse:
        response = shard.leave_group(request)
        if is_single:
            response.error_code = response.members[0].error_code
            response.members = []
        return response

    return context.broker.groups.run(request.group_id, leave)
