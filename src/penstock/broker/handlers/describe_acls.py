"""DescribeAcls: the access rules that match a filter."""

from penstock.broker.context import RequestContext
from penstock.broker.security.acl_values import filter_of
from penstock.errors import SecurityDisabled
from penstock.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from penstock.security.acls.rules import AccessControlEntry, AclBinding, ResourcePattern


def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """Without an authorizer, tools such as MirrorMaker take the code as the end of their search."""
    if context.broker.access is None:
        raise SecurityDisabled("No Authorizer is configured on the broker")
    found: dict[ResourcePattern, DescribeAclsResource] = {}
    for resource, entry in _sorted(context.broker.access.index.matching(filter_of(request))):
        described = found.get(resource)
        if described is None:
            described = found[resource] = DescribeAclsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                pattern_type=resource.pattern,
                acls=[],
            )
        described.acls.append(
            AclDescription(
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
        )
    return DescribeAclsResponse(resources=list(found.values()))


def _sorted(bindings: list[AclBinding]) -> list[tuple[ResourcePattern, AccessControlEntry]]:
    """Always in the same order, so that what a tool prints can be compared."""
    pairs = [(binding.resource, binding.entry) for binding in bindings]
    return sorted(
        pairs,
        key=lambda pair: (
            *(pair[0].type, pair[0].name, pair[0].pattern),
            *(pair[1].principal, pair[1].host, pair[1].operation, pair[1].permission),
        ),
    )
