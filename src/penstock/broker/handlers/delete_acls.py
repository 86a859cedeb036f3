"""DeleteAcls: each filter is refused, because there is no authorizer that has rules."""

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.errors import ProtocolError, SecurityDisabled
from penstock.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    raise SecurityDisabled("No Authorizer is configured.")


def error_response(request: DeleteAclsRequest, error: ProtocolError) -> DeleteAclsResponse:
    """The same error for every filter."""
    return DeleteAclsResponse(
        filter_results=[fail(DeleteAclsFilterResult(), error) for _ in request.filters]
    )
