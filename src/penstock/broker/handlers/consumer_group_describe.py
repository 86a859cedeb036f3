"""ConsumerGroupDescribe: groups of the new protocol and their members."""

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.visible import GROUP_OPERATIONS
from penstock.errors import InvalidGroupId, ProtocolError
from penstock.groups.consumer.groups import ConsumerGroups
from penstock.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def handle(
    request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse:
    groups = [_described(group_id, context) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=groups)


def _described(group_id: str, context: RequestContext) -> DescribedGroup:
    try:
        if not group_id:
            raise InvalidGroupId("a group needs a name")
        shard = context.broker.groups.led_shard(group_id).shard
        return shard.family(ConsumerGroups).described(group_id)
    except ProtocolError as error:
        return _failed(group_id, error)


def _failed(group_id: str, error: ProtocolError) -> DescribedGroup:
    return fail(DescribedGroup(group_id=group_id), error)


def error_response(
    request: ConsumerGroupDescribeRequest, error: ProtocolError
) -> ConsumerGroupDescribeResponse:
    """The same error for every group."""
    return ConsumerGroupDescribeResponse(
        groups=[_failed(group_id, error) for group_id in request.group_ids]
    )
