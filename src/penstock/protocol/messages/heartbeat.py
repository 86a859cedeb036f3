"""Heartbeat: a member of a classic group is alive."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import int16, int32, string


class HeartbeatRequest(Request, api=ApiKey.HEARTBEAT):
    """The member and the generation it believes in."""

    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable=True, default=None)


class HeartbeatResponse(Response, api=ApiKey.HEARTBEAT):
    """An error code here is how a member learns of a rebalance."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
