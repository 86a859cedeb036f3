"""DescribeAcls: the access rules that match a filter."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int8, int16, int32, string


class DescribeAclsRequest(Request, api=ApiKey.DESCRIBE_ACLS):
    """The filter; null names and ANY codes match everything."""

    resource_type_filter: int = int8("0+")
    resource_name_filter: str | None = string("0+", nullable=True)
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string("0+", nullable=True)
    host_filter: str | None = string("0+", nullable=True)
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class AclDescription(Struct):
    """Who may or may not do what, from where."""

    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class DescribeAclsResource(Struct):
    """A resource, or a pattern of names, and its rules."""

    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    pattern_type: int = int8("1+", default=3)
    acls: list[AclDescription] = array(AclDescription, "0+")


class DescribeAclsResponse(Response, api=ApiKey.DESCRIBE_ACLS):
    """The matching rules, by resource."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    resources: list[DescribeAclsResource] = array(DescribeAclsResource, "0+")
