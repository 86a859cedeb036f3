"""JoinGroup: a member asks into a classic group, and waits until the others have come too."""

from collections.abc import Coroutine
from typing import Any

from penstock.broker.context import RequestContext
from penstock.broker.group_callers import caller_of
from penstock.errors import ProtocolError
from penstock.groups.classic_members import refused_join
from penstock.groups.coordinator import Reply
from penstock.groups.shard import Shard
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

_NO_PROTOCOL_FROM = 7  # Older versions cannot say that there is none.


def handle(
    request: JoinGroupRequest, context: RequestContext
) -> JoinGroupResponse | Coroutine[Any, Any, JoinGroupResponse]:
    caller = caller_of(context)

    def join(shard: Shard, reply: Reply[JoinGroupResponse]) -> None:
        def answer(response: JoinGroupResponse) -> None:
            reply(_in_form_of(response, caller.version))

        shard.join_group(request, caller, answer)

    return context.broker.groups.ask(request.group_id, join)


def error_response(request: JoinGroupRequest, error: ProtocolError) -> JoinGroupResponse:
    refused = refused_join(request.member_id, error.code)
    refused.protocol_name = ""  # Which every version can say.
    return refused


def _in_form_of(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    if response.protocol_name is None and version < _NO_PROTOCOL_FROM:
        response.protocol_name = ""
    return response
