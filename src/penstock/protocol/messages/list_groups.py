"""ListGroups: the groups of one coordinator."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, string


class ListGroupsRequest(Request, api=ApiKey.LIST_GROUPS):
    """Filters by state (KIP-518) and by type (KIP-848); empty ones let all pass."""

    states_filter: list[str] = array(string, "4+")
    types_filter: list[str] = array(string, "5+")


class ListedGroup(Struct):
    """A group and its state."""

    group_id: str = string("0+")
    protocol_type: str = string("0+")
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


class ListGroupsResponse(Response, api=ApiKey.LIST_GROUPS):
    """The groups that this broker coordinates."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    groups: list[ListedGroup] = array(ListedGroup, "0+")
