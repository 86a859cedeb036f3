"""Delegation tokens (KIP-48): ask for one, renew and end it, list those that may be seen.

Brokers serve these only to somebody who proved who they are, and not by a token.
"""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from penstock.client.wire.cluster import ClusterClient
from penstock.errors import error_for
from penstock.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from penstock.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from penstock.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from penstock.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from penstock.security.delegation import TokenInformation
from penstock.security.principals import Principal

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_BROKERS_CHOICE_MS = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """A token and its secret, which opens doors: it is never printed."""

    information: TokenInformation
    hmac: bytes = field(repr=False)

    @property
    def secret(self) -> str:
        """The HMAC as text: the password of its bearer."""
        return base64.b64encode(self.hmac).decode()

    @property
    def jaas_config(self) -> str:
        """What `sasl.jaas.config` must be to come in by it, with a mechanism of SCRAM."""
        return (
            f'{SCRAM_MODULE} required username="{self.information.token_id}" '
            f'password="{self.secret}" tokenauth="true";'
        )


def create_delegation_token(
    cluster: ClusterClient,
    *,
    owner: Principal | None = None,
    renewers: Sequence[Principal] = (),
    max_lifetime_ms: int = _BROKERS_CHOICE_MS,
) -> DelegationToken:
    """A new token; None as owner: one's own."""
    request = CreateDelegationTokenRequest(
        renewers=[
            CreatableRenewers(principal_type=one.type, principal_name=one.name) for one in renewers
        ],
        max_lifetime_ms=max_lifetime_ms,
    )
    if owner is not None:
        request.owner_principal_type, request.owner_principal_name = owner.type, owner.name
    answer = cluster.ask_any(request, CreateDelegationTokenResponse)
    _check(answer.error_code)
    made_for = Principal(answer.principal_type, answer.principal_name)
    requester = Principal(
        answer.token_requester_principal_type, answer.token_requester_principal_name
    )
    return DelegationToken(
        information=TokenInformation(
            token_id=answer.token_id,
            owner=made_for,
            requester=requester if requester.name else made_for,
            renewers=tuple(renewers),
            issued_ms=answer.issue_timestamp_ms,
            max_ms=answer.max_timestamp_ms,
            expires_ms=answer.expiry_timestamp_ms,
        ),
        hmac=bytes(answer.hmac),
    )


def renew_delegation_token(
    cluster: ClusterClient, hmac: bytes, *, period_ms: int = _BROKERS_CHOICE_MS
) -> int:
    """Let a token live on; when it ends now, in ms."""
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
    answer = cluster.ask_any(request, RenewDelegationTokenResponse)
    _check(answer.error_code)
    return answer.expiry_timestamp_ms


def expire_delegation_token(cluster: ClusterClient, hmac: bytes, *, period_ms: int = -1) -> int:
    """Let a token end after a while, and at once for a negative period; when it ends, in ms."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    answer = cluster.ask_any(request, ExpireDelegationTokenResponse)
    _check(answer.error_code)
    return answer.expiry_timestamp_ms


def describe_delegation_tokens(
    cluster: ClusterClient, owners: Iterable[Principal] | None = None
) -> list[DelegationToken]:
    """The tokens that one may see; None as owners: whosever they are."""
    wanted = None
    if owners is not None:
        wanted = [
            DescribeDelegationTokenOwner(principal_type=one.type, principal_name=one.name)
            for one in owners
        ]
    request = DescribeDelegationTokenRequest(owners=wanted)
    answer = cluster.ask_any(request, DescribeDelegationTokenResponse)
    _check(answer.error_code)
    return [_described(token) for token in answer.tokens]


def _described(token: DescribedDelegationToken) -> DelegationToken:
    owner = Principal(token.principal_type, token.principal_name)
    requester = Principal(
        token.token_requester_principal_type, token.token_requester_principal_name
    )
    return DelegationToken(
        information=TokenInformation(
            token_id=token.token_id,
            owner=owner,
            requester=requester if requester.name else owner,
            renewers=tuple(
                Principal(one.principal_type, one.principal_name) for one in token.renewers
            ),
            issued_ms=token.issue_timestamp,
            max_ms=token.max_timestamp,
            expires_ms=token.expiry_timestamp,
        ),
        hmac=bytes(token.hmac),
    )


def _check(code: int) -> None:
    if code:
        raise error_for(code, "")
