"""Access rules: asked for, added and removed."""

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.client.wire.cluster import ClusterClient
from penstock.errors import error_for
from penstock.protocol.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from penstock.protocol.messages.delete_acls import (
    DeleteAclsFilter,
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
    """The rules that a filter means."""
    request = DescribeAclsRequest(**_filter_fields(wanted))
    answer = cluster.ask_any(request, DescribeAclsResponse)
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message or "")
    return [
        AclBinding(
            ResourcePattern(
                AclResourceType(resource.resource_type),
                resource.resource_name,
                PatternType(resource.pattern_type),
            ),
            AccessControlEntry(
                acl.principal,
                acl.host,
                AclOperation(acl.operation),
                AclPermission(acl.permission_type),
            ),
        )
        for resource in answer.resources
        for acl in resource.acls
    ]


def create_acls(cluster: ClusterClient, rules: Sequence[AclBinding]) -> None:
    """Add rules; the first that is refused is raised."""
    creations = [
        AclCreation(
            resource_type=int(rule.resource.type),
            resource_name=rule.resource.name,
            resource_pattern_type=int(rule.resource.pattern),
            principal=rule.entry.principal,
            host=rule.entry.host,
            operation=int(rule.entry.operation),
            permission_type=int(rule.entry.permission),
        )
        for rule in rules
    ]
    answer = cluster.ask_any(CreateAclsRequest(creations=creations), CreateAclsResponse)
    for result in answer.results:
        if result.error_code:
            raise error_for(result.error_code, result.error_message or "")


def delete_acls(cluster: ClusterClient, filters: Iterable[AclBindingFilter]) -> int:
    """Remove the rules that filters mean; how many there were."""
    asked = [DeleteAclsFilter(**_filter_fields(wanted)) for wanted in filters]
    answer = cluster.ask_any(DeleteAclsRequest(filters=asked), DeleteAclsResponse)
    count = 0
    for result in answer.filter_results:
        outcomes: list[Any] = [result, *result.matching_acls]
        for one in outcomes:
            if one.error_code:
                raise error_for(one.error_code, one.error_message or "")
        count += len(result.matching_acls)
    return count


def _filter_fields(wanted: AclBindingFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": int(wanted.resource.type),
        "resource_name_filter": wanted.resource.name,
        "pattern_type_filter": int(wanted.resource.pattern),
        "principal_filter": wanted.entry.principal,
        "host_filter": wanted.entry.host,
        "operation": int(wanted.entry.operation),
        "permission_type": int(wanted.entry.permission),
    }
