"""ListGroups: the groups this broker coordinates, by state (KIP-518) and by type (KIP-848)."""

from penstock.broker.context import RequestContext
from penstock.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    groups, error = context.broker.groups.listed(request.states_filter, request.types_filter)
    return ListGroupsResponse(error_code=int(error), groups=groups)
