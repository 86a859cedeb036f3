"""Heartbeat: a member of a classic group is alive; it learns of rebalances by the error code."""

from collections.abc import Coroutine
from typing import Any

from penstock.broker.context import RequestContext
from penstock.groups.shard import GroupShard
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(
    request: HeartbeatRequest, context: RequestContext
) -> HeartbeatResponse | Coroutine[Any, Any, HeartbeatResponse]:
    def beat(shard: GroupShard) -> HeartbeatResponse:
        shard.heartbeat(request)
        return HeartbeatResponse()

    return context.broker.groups.run(request.group_id, beat)
