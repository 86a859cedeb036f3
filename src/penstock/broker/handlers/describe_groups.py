"""DescribeGroups: classic groups and their members."""

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import code_of
from penstock.broker.visible import GROUP_OPERATIONS
from penstock.errors import GroupIdNotFound, ProtocolError
from penstock.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_UNKNOWN_IS_ERROR_FROM = 6
_DEAD = "Dead"


def handle(request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    groups = [_described(group_id, context) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=groups)


def _described(group_id: str, context: RequestContext) -> DescribedGroup:
    try:
        return context.broker.groups.led_shard(group_id).shard.described(group_id)
    except GroupIdNotFound as error:
        if context.version < _UNKNOWN_IS_ERROR_FROM:
            return DescribedGroup(group_id=group_id, group_state=_DEAD)
        return DescribedGroup(
            group_id=group_id,
            group_state=_DEAD,
            error_code=code_of(error),
            error_message=str(error),
        )
    except ProtocolError as error:
        return _failed(group_id, error)


def _failed(group_id: str, error: ProtocolError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=code_of(error))


def error_response(request: DescribeGroupsRequest, error: ProtocolError) -> DescribeGroupsResponse:
    """The same error for every group."""
    return DescribeGroupsResponse(groups=[_failed(group_id, error) for group_id in request.groups])
