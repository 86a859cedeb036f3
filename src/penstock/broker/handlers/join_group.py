"""JoinGroup: a member asks into a classic group, and waits until the others have come too."""

from collections.abc import Coroutine
from typing import Any, Final

from penstock.broker.context import RequestContext
from penstock.errors import InvalidRequest, ProtocolError
from penstock.groups.classic.members import refused_join
from penstock.groups.group import JoinAnswer
from penstock.groups.shard import GroupShard
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

_NO_PROTOCOL_FROM = 7  # Older versions cannot say that there is none.
# A member names its assignors, which are a handful. Each of them is looked at, compared with those
# of the others and remembered, and all clients wait for that.
_PROTOCOLS_MAX: Final = 1_000


def handle(
    request: JoinGroupRequest, context: RequestContext
) -> JoinGroupResponse | Coroutine[Any, Any, JoinGroupResponse]:
    if len(request.protocols) > _PROTOCOLS_MAX:
        raise InvalidRequest(f"a member of a group has at most {_PROTOCOLS_MAX} protocols")
    caller = context.caller

    def join(shard: GroupShard) -> JoinAnswer:
        return shard.join_group(request, caller)

    answer = context.broker.groups.run(request.group_id, join)
    if context.version >= _NO_PROTOCOL_FROM:
        return answer
    if isinstance(answer, JoinGroupResponse):
        return _in_old_form(answer)
    return _answer_in_old_form(answer)


def error_response(request: JoinGroupRequest, error: ProtocolError) -> JoinGroupResponse:
    refused = refused_join(request.member_id, error.code)
    refused.protocol_name = ""  # Which every version can say.
    return refused


async def _answer_in_old_form(
    answer: Coroutine[Any, Any, JoinGroupResponse],
) -> JoinGroupResponse:
    return _in_old_form(await answer)


def _in_old_form(response: JoinGroupResponse) -> JoinGroupResponse:
    if response.protocol_name is None:
        response.protocol_name = ""
    return response
