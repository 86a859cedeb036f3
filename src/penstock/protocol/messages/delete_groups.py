"""DeleteGroups: forget empty groups and their offsets."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, string


class DeleteGroupsRequest(Request, api=ApiKey.DELETE_GROUPS):
    """Groups to delete."""

    groups_names: list[str] = array(string, "0+")


class DeletableGroupResult(Struct):
    """What became of one group."""

    group_id: str = string("0+")
    error_code: int = int16("0+")


class DeleteGroupsResponse(Response, api=ApiKey.DELETE_GROUPS):
    """One result per group."""

    throttle_time_ms: int = int32("0+")
    results: list[DeletableGroupResult] = array(DeletableGroupResult, "0+")
