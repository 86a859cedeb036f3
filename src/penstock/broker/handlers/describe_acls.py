"""DescribeAcls: there is no authorizer here, so there are no rules to tell."""

from penstock.broker.context import RequestContext
from penstock.errors import SecurityDisabled
from penstock.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """Tools such as MirrorMaker take this code as the end of their search, not as a failure."""
    raise SecurityDisabled("No Authorizer is configured on the broker")
