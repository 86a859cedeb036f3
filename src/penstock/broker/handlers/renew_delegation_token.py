"""RenewDelegationToken: a later end for a token, within its longest life."""

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import code_of
from penstock.broker.membership.forwarding import Forwarder
from penstock.broker.security.delegation_tokens import check_may_ask, enabled_tokens
from penstock.errors import ProtocolError, UnsupportedByAuthentication
from penstock.protocol.apis import Response
from penstock.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from penstock.security.delegation import TokenInformation
from penstock.security.principals import Principal


async def handle(
    request: RenewDelegationTokenRequest, context: RequestContext
) -> RenewDelegationTokenResponse:
    check_may_ask(context)
    tokens, now_ms = enabled_tokens(context), context.broker.now_ms()
    controller = context.broker.acting_controller()

    def renewed(token: TokenInformation) -> TokenInformation:
        return tokens.policy.renew(
            token,
            by=Principal.parse(context.session.principal),
            period_ms=request.renew_period_ms,
            now_ms=now_ms,
        )

    found = tokens.book(controller.image).find(request.hmac)
    token = await controller.alter_token(found.token_id, renewed)
    assert token is not None
    return RenewDelegationTokenResponse(expiry_timestamp_ms=token.expires_ms)


def error_response(
    _request: RenewDelegationTokenRequest, error: ProtocolError
) -> RenewDelegationTokenResponse:
    """Kafka's brokers write a time of -1, and its controllers 0."""
    is_of_broker = isinstance(error, UnsupportedByAuthentication)
    return RenewDelegationTokenResponse(
        error_code=code_of(error), expiry_timestamp_ms=-1 if is_of_broker else 0
    )


async def pass_on(
    request: RenewDelegationTokenRequest, context: RequestContext, forwarder: Forwarder
) -> Response:
    """What only the broker of the client's connection knows is checked there."""
    check_may_ask(context)
    return await forwarder.forward(request, context)
