"""DeleteAcls: remove the access rules that match filters."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int8, int16, int32, string


class DeleteAclsFilter(Struct):
    """A filter; null names and ANY codes match everything."""

    resource_type_filter: int = int8("0+")
    resource_name_filter: str | None = string("0+", nullable=True)
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string("0+", nullable=True)
    host_filter: str | None = string("0+", nullable=True)
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class DeleteAclsRequest(Request, api=ApiKey.DELETE_ACLS):
    """Filters for the rules to remove."""

    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter, "0+")


class DeleteAclsMatchingAcl(Struct):
    """A rule that matched, and whether it is gone."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    pattern_type: int = int8("1+", default=3)
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class DeleteAclsFilterResult(Struct):
    """The rules that one filter matched."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl, "0+")


class DeleteAclsResponse(Response, api=ApiKey.DELETE_ACLS):
    """One result per filter, in the order of the request."""

    throttle_time_ms: int = int32("0+")
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult, "0+")
