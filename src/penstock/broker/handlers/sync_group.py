"""SyncGroup: the leader brings the assignment, everybody takes theirs."""

from collections.abc import Coroutine
from typing import Any

from penstock.broker.context import RequestContext
from penstock.errors import InconsistentGroupProtocol
from penstock.groups.group import SyncAnswer
from penstock.groups.shard import GroupShard
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_NAMED_FROM = 5


def handle(
    request: SyncGroupRequest, context: RequestContext
) -> SyncGroupResponse | Coroutine[Any, Any, SyncGroupResponse]:
    if context.version >= _PROTOCOL_NAMED_FROM and (
        request.protocol_type is None or request.protocol_name is None
    ):
        raise InconsistentGroupProtocol("from version 5 on a member names its protocol")
    caller = context.caller

    def sync(shard: GroupShard) -> SyncAnswer:
        return shard.sync_group(request, caller)

    return context.broker.groups.run(request.group_id, sync)
