"""CreateAcls: new access rules."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int8, int16, int32, string


class AclCreation(Struct):
    """A rule to add."""

    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    resource_pattern_type: int = int8("1+", default=3)
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class CreateAclsRequest(Request, api=ApiKey.CREATE_ACLS):
    """Rules to add."""

    creations: list[AclCreation] = array(AclCreation, "0+")


class AclCreationResult(Struct):
    """Whether one rule was added."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)


class CreateAclsResponse(Response, api=ApiKey.CREATE_ACLS):
    """One result per rule, in the order of the request."""

    throttle_time_ms: int = int32("0+")
    results: list[AclCreationResult] = array(AclCreationResult, "0+")
