"""SyncGroup: the leader brings the assignment, everybody takes theirs."""

from collections.abc import Coroutine
from typing import Any

from penstock.broker.context import RequestContext
from penstock.broker.group_callers import caller_of
from penstock.errors import InconsistentGroupProtocol
from penstock.groups.coordinator import Reply
from penstock.groups.shard import Shard
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_NAMED_FROM = 5


def handle(
    request: SyncGroupRequest, context: RequestContext
) -> SyncGroupResponse | Coroutine[Any, Any, SyncGroupResponse]:
    if context.version >= _PROTOCOL_NAMED_FROM and (
        request.protocol_type is None or request.protocol_name is None
    ):
        raise InconsistentGroupProtocol("from version 5 on a member names its protocol")
    caller = caller_of(context)

    def sync(shard: Shard, reply: Reply[SyncGroupResponse]) -> None:
        shard.sync_group(request, caller, reply)

    return context.broker.groups.ask(request.group_id, sync)
