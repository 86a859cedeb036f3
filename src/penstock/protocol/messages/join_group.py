"""JoinGroup: a member asks into a classic group, and learns who leads it."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, blob, boolean, int16, int32, string


class JoinGroupRequestProtocol(Struct):
    """An assignment strategy the member knows, with its subscription for it."""

    name: str = string("0+")
    metadata: bytes = blob("0+")


class JoinGroupRequest(Request, api=ApiKey.JOIN_GROUP):
    """A member and the strategies it could work with, best first."""

    group_id: str = string("0+")
    session_timeout_ms: int = int32("0+")
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable=True, default=None)
    protocol_type: str = string("0+")
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol, "0+")
    reason: str | None = string("8+", nullable=True, default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    """A member as told to the leader, which does the assigning."""

    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable=True, default=None, ignorable=True)
    metadata: bytes = blob("0+")


class JoinGroupResponse(Response, api=ApiKey.JOIN_GROUP):
    """The new generation; only the leader is told the members."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16("0+")
    generation_id: int = int32("0+", default=-1)
    protocol_type: str | None = string("7+", nullable=True, default=None, ignorable=True)
    protocol_name: str | None = string("0+", nullable="7+")
    leader: str = string("0+")
    skip_assignment: bool = boolean("9+")
    member_id: str = string("0+")
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember, "0+")
