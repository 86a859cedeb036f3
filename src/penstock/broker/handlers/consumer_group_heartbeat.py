"""ConsumerGroupHeartbeat: all of a member's life in a consumer group of the new protocol."""

from collections.abc import Coroutine
from typing import Any

from penstock.broker.context import RequestContext
from penstock.errors import UnsupportedVersion
from penstock.groups.consumer.groups import ConsumerGroups
from penstock.groups.group import CONSUMER
from penstock.groups.shard import GroupShard
from penstock.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def handle(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse | Coroutine[Any, Any, ConsumerGroupHeartbeatResponse]:
    if CONSUMER not in context.broker.config.group_coordinator_rebalance_protocols:
        raise UnsupportedVersion("group.coordinator.rebalance.protocols leaves out consumer groups")
    caller = context.caller

    def beat(shard: GroupShard) -> ConsumerGroupHeartbeatResponse:
        return shard.family(ConsumerGroups).heartbeat(request, caller)

    return context.broker.groups.run(request.group_id, beat)
