"""CreateAcls: each rule is refused, because there is no authorizer that could obey it."""

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.errors import ProtocolError, SecurityDisabled
from penstock.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    raise SecurityDisabled("No Authorizer is configured.")


def error_response(request: CreateAclsRequest, error: ProtocolError) -> CreateAclsResponse:
    """The same error for every rule."""
    return CreateAclsResponse(results=[fail(AclCreationResult(), error) for _ in request.creations])
