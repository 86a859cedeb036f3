"""Access rules: list those that match a filter, add some, remove those that match.

A broker without an authorizer answers all three with SecurityDisabled.
"""

from collections.abc import Iterable, Sequence

from penstock.client.wire.cluster import ClusterClient
from penstock.errors import error_for
from penstock.protocol.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from penstock.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from penstock.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    ResourcePattern,
)


def describe_acls(cluster: ClusterClient, wanted: AclBindingFilter) -> list[AclBinding]:
    """The rules that a filter matches."""
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource.type,
        resource_name_filter=wanted.resource.name,
        pattern_type_filter=wanted.resource.pattern,
        principal_filter=wanted.entry.principal,
        host_filter=wanted.entry.host,
        operation=wanted.entry.operation,
        permission_type=wanted.entry.permission,
    )
    answer = cluster.ask_any(request, DescribeAclsResponse)
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message or "")
    return [
        AclBinding(
            _pattern(one.resource_type, one.resource_name, one.pattern_type),
            _entry(acl.principal, acl.host, acl.operation, acl.permission_type),
        )
        for one in answer.resources
        for acl in one.acls
    ]


def create_acls(cluster: ClusterClient, new: Sequence[AclBinding]) -> None:
    """Add rules. All are tried; the first that fails is raised."""
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=one.resource.type,
                resource_name=one.resource.name,
                resource_pattern_type=one.resource.pattern,
                principal=one.entry.principal,
                host=one.entry.host,
                operation=one.entry.operation,
                permission_type=one.entry.permission,
            )
            for one in new
        ]
    )
    answer = cluster.ask_controller(
        request, CreateAclsResponse, code_of=lambda a: _first(r.error_code for r in a.results)
    )
    for result in answer.results:
        if result.error_code:
            raise error_for(result.error_code, result.error_message or "")


def delete_acls(cluster: ClusterClient, wanted: Sequence[AclBindingFilter]) -> list[AclBinding]:
    """Remove the rules that filters match; which they were. The first that fails is raised."""
    request = DeleteAclsRequest(filters=[_filter(one) for one in wanted])
    answer = cluster.ask_controller(
        request,
        DeleteAclsResponse,
        code_of=lambda a: _first(r.error_code for r in a.filter_results),
    )
    gone: list[AclBinding] = []
    for result in answer.filter_results:
        if result.error_code:
            raise error_for(result.error_code, result.error_message or "")
        gone += [_removed(acl) for acl in result.matching_acls]
    return gone


def _filter(wanted: AclBindingFilter) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=wanted.resource.type,
        resource_name_filter=wanted.resource.name,
        pattern_type_filter=wanted.resource.pattern,
        principal_filter=wanted.entry.principal,
        host_filter=wanted.entry.host,
        operation=wanted.entry.operation,
        permission_type=wanted.entry.permission,
    )


def _removed(acl: DeleteAclsMatchingAcl) -> AclBinding:
    if acl.error_code:
        raise error_for(acl.error_code, acl.error_message or "")
    return AclBinding(
        _pattern(acl.resource_type, acl.resource_name, acl.pattern_type),
        _entry(acl.principal, acl.host, acl.operation, acl.permission_type),
    )


def _pattern(kind: int, name: str, pattern: int) -> ResourcePattern:
    return ResourcePattern(AclResourceType(kind), name, PatternType(pattern))


def _entry(principal: str, host: str, operation: int, permission: int) -> AccessControlEntry:
    return AccessControlEntry(principal, host, AclOperation(operation), AclPermission(permission))


def _first(codes: Iterable[int]) -> int:
    return next((code for code in codes if code), 0)
