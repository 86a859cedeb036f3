"""CreateDelegationToken: a secret that stands in for a user for a while, told once."""

import secrets
from typing import Final

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import code_of
from penstock.broker.membership.forwarding import Forwarder
from penstock.broker.security.delegation_tokens import (
    check_may_ask,
    check_may_create,
    enabled_tokens,
)
from penstock.errors import ProtocolError
from penstock.protocol.apis import Response
from penstock.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from penstock.protocol.primitives import uuid_text
from penstock.security.principals import Principal

_NO_TIME: Final = -1
_ID_BYTES: Final = 16
_FIRST_WITH_REQUESTER: Final = 3


async def handle(
    request: CreateDelegationTokenRequest, context: RequestContext
) -> CreateDelegationTokenResponse:
    owner = _owner(request, context)
    answer = _answer(owner, context)
    try:
        _check(owner, context)
        await _create(request, context, answer)
    except ProtocolError as error:
        return _refused(answer, error)
    return answer


async def pass_on(
    request: CreateDelegationTokenRequest, context: RequestContext, forwarder: Forwarder
) -> Response:
    """What only the broker of the client's connection knows is checked there."""
    owner = _owner(request, context)
    try:
        _check(owner, context)
    except ProtocolError as error:
        return _refused(_answer(owner, context), error)
    return await forwarder.forward(request, context)


def _check(owner: Principal, context: RequestContext) -> None:
    check_may_ask(context)
    check_may_create(context, owner)


def _owner(request: CreateDelegationTokenRequest, context: RequestContext) -> Principal:
    """Whose token it is to be; without a name the asker's own."""
    if request.owner_principal_name:
        return Principal(request.owner_principal_type or "", request.owner_principal_name)
    return Principal.parse(context.session.principal)


def _answer(owner: Principal, context: RequestContext) -> CreateDelegationTokenResponse:
    requester = Principal.parse(context.session.principal)
    answer = CreateDelegationTokenResponse(principal_type=owner.type, principal_name=owner.name)
    if context.version >= _FIRST_WITH_REQUESTER:
        answer.token_requester_principal_type = requester.type
        answer.token_requester_principal_name = requester.name
    return answer


def _refused(
    answer: CreateDelegationTokenResponse, error: ProtocolError
) -> CreateDelegationTokenResponse:
    answer.error_code = code_of(error)
    answer.issue_timestamp_ms = _NO_TIME
    answer.expiry_timestamp_ms = _NO_TIME
    answer.max_timestamp_ms = _NO_TIME
    return answer


def _random_id() -> str:
    """As Kafka's: none begins with a dash, which a command line would take for an option."""
    while (text := uuid_text(secrets.token_bytes(_ID_BYTES))).startswith("-"):
        pass
    return text


async def _create(
    request: CreateDelegationTokenRequest,
    context: RequestContext,
    answer: CreateDelegationTokenResponse,
) -> None:
    policy = enabled_tokens(context).policy
    token = policy.create(
        _random_id(),
        requester=Principal.parse(context.session.principal),
        owner=_owner(request, context),
        renewers=[Principal(one.principal_type, one.principal_name) for one in request.renewers],
        max_lifetime_ms=request.max_lifetime_ms,
        now_ms=context.broker.now_ms(),
    )
    await context.broker.acting_controller().create_token(token)
    answer.issue_timestamp_ms = token.issued_ms
    answer.expiry_timestamp_ms = token.expires_ms
    answer.max_timestamp_ms = token.max_ms
    answer.token_id = token.token_id
    answer.hmac = policy.secret_of(token.token_id)
