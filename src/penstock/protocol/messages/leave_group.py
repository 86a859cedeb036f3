"""LeaveGroup: members of a classic group go."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, string


class MemberIdentity(Struct):
    """A leaving member, by its own id or by its static one."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable=True, default=None)
    reason: str | None = string("5+", nullable=True, default=None, ignorable=True)


class LeaveGroupRequest(Request, api=ApiKey.LEAVE_GROUP):
    """One member until version 2, any number after."""

    group_id: str = string("0+")
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")


class MemberResponse(Struct):
    """Whether one member could leave."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable=True)
    error_code: int = int16("3+")


class LeaveGroupResponse(Response, api=ApiKey.LEAVE_GROUP):
    """One result per member."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    members: list[MemberResponse] = array(MemberResponse, "3+")
