"""DeleteAcls: rules that match filters hold no more; the answer tells which those were."""

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.security.acl_values import filter_of
from penstock.errors import ProtocolError, SecurityDisabled
from penstock.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from penstock.security.acls.index import AclIndex
from penstock.security.acls.rules import AclBinding


async def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    access = context.broker.access
    if access is None:
        raise SecurityDisabled("No Authorizer is configured.")
    matched = [_matched(asked, access.index) for asked in request.filters]
    gone = [rule for found in matched if isinstance(found, list) for rule in found]
    await context.broker.acting_controller().remove_acls(gone)
    return DeleteAclsResponse(filter_results=[_result(found) for found in matched])


def error_response(request: DeleteAclsRequest, error: ProtocolError) -> DeleteAclsResponse:
    """The same error for every filter."""
    return DeleteAclsResponse(
        filter_results=[fail(DeleteAclsFilterResult(), error) for _ in request.filters]
    )


def _matched(asked: DeleteAclsFilter, index: AclIndex) -> list[AclBinding] | ProtocolError:
    try:
        return index.matching(filter_of(asked))
    except ProtocolError as error:
        return error


def _result(found: list[AclBinding] | ProtocolError) -> DeleteAclsFilterResult:
    if isinstance(found, ProtocolError):
        return fail(DeleteAclsFilterResult(), found)
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=rule.resource.type,
                resource_name=rule.resource.name,
                pattern_type=rule.resource.pattern,
                principal=rule.entry.principal,
                host=rule.entry.host,
                operation=rule.entry.operation,
                permission_type=rule.entry.permission,
            )
            for rule in found
        ],
    )
