"""DescribeGroups: classic groups and their members."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, blob, boolean, int16, int32, string


class DescribeGroupsRequest(Request, api=ApiKey.DESCRIBE_GROUPS):
    """Groups to describe."""

    groups: list[str] = array(string, "0+")
    include_authorized_operations: bool = boolean("3+")


class DescribedGroupMember(Struct):
    """A member, its subscription and what it was assigned."""

    member_id: str = string("0+")
    group_instance_id: str | None = string("4+", nullable=True, default=None, ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    member_metadata: bytes = blob("0+")
    member_assignment: bytes = blob("0+")


class DescribedGroup(Struct):
    """A group, its state and its members."""

    error_code: int = int16("0+")
    error_message: str | None = string("6+", nullable=True, default=None)
    group_id: str = string("0+")
    group_state: str = string("0+")
    protocol_type: str = string("0+")
    protocol_data: str = string("0+")
    members: list[DescribedGroupMember] = array(DescribedGroupMember, "0+")
    authorized_operations: int = int32("3+", default=-2147483648)


class DescribeGroupsResponse(Response, api=ApiKey.DESCRIBE_GROUPS):
    """One description per group."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup, "0+")
