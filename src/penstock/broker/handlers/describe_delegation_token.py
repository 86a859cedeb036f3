"""DescribeDelegationToken: the tokens that somebody owns, renews or may see."""

from functools import partial
from typing import Final

from penstock.broker.context import RequestContext
from penstock.broker.security.delegation_tokens import (
    check_may_ask,
    enabled_tokens,
    may_describe,
)
from penstock.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from penstock.security.delegation import TokenInformation, TokenPolicy
from penstock.security.principals import Principal

_FIRST_WITH_REQUESTER: Final = 3


def handle(
    request: DescribeDelegationTokenRequest, context: RequestContext
) -> DescribeDelegationTokenResponse:
    check_may_ask(context)
    tokens = enabled_tokens(context)
    owners = None
    if request.owners is not None:
        owners = [Principal(one.principal_type, one.principal_name) for one in request.owners]
    found = tokens.book(context.broker.image).described(
        Principal.parse(context.session.principal),
        owners=owners,
        may_describe=partial(may_describe, context),
    )
    described = [_described(tokens.policy, token) for token in found]
    if context.version >= _FIRST_WITH_REQUESTER:
        for answer, token in zip(described, found, strict=True):
            answer.token_requester_principal_type = token.requester.type
            answer.token_requester_principal_name = token.requester.name
    return DescribeDelegationTokenResponse(tokens=described)


def _described(policy: TokenPolicy, token: TokenInformation) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=policy.secret_of(token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=one.type, principal_name=one.name)
            for one in token.renewers
        ],
    )
