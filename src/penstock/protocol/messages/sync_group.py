"""SyncGroup: the leader of a classic group hands out work, the others collect theirs."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, blob, int16, int32, string


class SyncGroupRequestAssignment(Struct):
    """What the leader gives to one member."""

    member_id: str = string("0+")
    assignment: bytes = blob("0+")


class SyncGroupRequest(Request, api=ApiKey.SYNC_GROUP):
    """The assignments of the leader; from all others an empty list."""

    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable=True, default=None)
    protocol_type: str | None = string("5+", nullable=True, default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable=True, default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment, "0+")


class SyncGroupResponse(Response, api=ApiKey.SYNC_GROUP):
    """The assignment of the member that asked."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    protocol_type: str | None = string("5+", nullable=True, default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable=True, default=None, ignorable=True)
    assignment: bytes = blob("0+")
