"""A request's sender as groups know it: the id and the host that DescribeGroups will tell."""

from penstock.broker.context import RequestContext
from penstock.groups.surroundings import Caller


def caller_of(context: RequestContext) -> Caller:
    host = context.client_address.rpartition(":")[0] or context.client_address
    return Caller(context.version, context.client_id or "", f"/{host}")
