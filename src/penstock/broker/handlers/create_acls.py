"""CreateAcls: rules that hold from now on; each is answered for by itself."""

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.security.acl_values import binding_of
from penstock.errors import ProtocolError, SecurityDisabled
from penstock.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from penstock.security.acls.rules import AclBinding, check_new_rule


async def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    if context.broker.access is None:
        raise SecurityDisabled("No Authorizer is configured.")
    checked = [_checked(creation) for creation in request.creations]
    good = [rule for rule in checked if isinstance(rule, AclBinding)]
    await context.broker.acting_controller().add_acls(good)
    return CreateAclsResponse(
        results=[
            fail(AclCreationResult(), rule if isinstance(rule, ProtocolError) else None)
            for rule in checked
        ]
    )


def error_response(request: CreateAclsRequest, error: ProtocolError) -> CreateAclsResponse:
    """The same error for every rule."""
    return CreateAclsResponse(results=[fail(AclCreationResult(), error) for _ in request.creations])


def _checked(creation: AclCreation) -> AclBinding | ProtocolError:
    rule = binding_of(creation)
    try:
        check_new_rule(rule)
    except ProtocolError as error:
        return error
    return rule
