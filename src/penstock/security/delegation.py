"""Delegation tokens (KIP-48): a secret that stands in for a user for a while, and can be renewed.

A token's secret is never stored: it is the HMAC of the token's id under a key all brokers have. Its
bearer proves it by SCRAM, with the HMAC in base64 as the password. Who may create tokens for others
is for the access rules; the lifetimes, and who may renew or end a token, are decided here.
"""

import base64
import hmac
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from penstock.errors import (
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    InvalidPrincipalType,
)
from penstock.security.principals import USER, Principal
from penstock.security.sasl.scram import ScramCredential
from penstock.security.sasl.scram_server import TokenLogin

_TIMESTAMP_MS_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenInformation:
    """All that is stored of a token; the id is no secret."""

    token_id: str
    owner: Principal
    requester: Principal  # Who asked for it, on behalf of the owner or as the owner.
    renewers: tuple[Principal, ...]
    issued_ms: int
    max_ms: int  # No renewal goes beyond it.
    expires_ms: int

    def is_expired(self, now_ms: int) -> bool:
        return self.max_ms < now_ms or self.expires_ms < now_ms

    def is_renewable_by(self, principal: Principal) -> bool:
        """Whether somebody may renew and end it."""
        return principal == self.owner or principal in self.renewers

    def is_known_to(self, principal: Principal) -> bool:
        """Whether somebody may see it without further rights; who asked for it may, too."""
        return principal == self.requester or self.is_renewable_by(principal)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPolicy:
    """The cluster's settings: `delegation.token.*`."""

    secret_key: str = field(repr=False)
    max_lifetime_ms: int = 604_800_000
    expiry_time_ms: int = 86_400_000

    def secret_of(self, token_id: str) -> bytes:
        """The HMAC that the client gets once, when it creates the token."""
        return hmac.digest(self.secret_key.encode(), token_id.encode(), "sha512")

    def create(
        self,
        token_id: str,
        *,
        requester: Principal,
        owner: Principal | None,
        renewers: Iterable[Principal],
        max_lifetime_ms: int,
        now_ms: int,
    ) -> TokenInformation:
        """A new token; None as owner: the requester's own. The id is random and used once."""
        chosen = tuple(renewers)
        if any(renewer.type != USER for renewer in chosen):
            raise InvalidPrincipalType("a renewer of a delegation token must be a User")
        lifetime_ms = self.max_lifetime_ms
        if max_lifetime_ms > 0:
            lifetime_ms = min(lifetime_ms, max_lifetime_ms)
        max_ms = _sum(now_ms, lifetime_ms)
        return TokenInformation(
            token_id=token_id,
            owner=owner or requester,
            requester=requester,
            renewers=chosen,
            issued_ms=now_ms,
            max_ms=max_ms,
            expires_ms=min(max_ms, _sum(now_ms, self.expiry_time_ms)),
        )

    def renew(
        self, token: TokenInformation, *, by: Principal, period_ms: int, now_ms: int
    ) -> TokenInformation:
        """The token with a later end, or an earlier one; a period of 0 or less is the default."""
        if token.is_expired(now_ms):
            raise DelegationTokenExpired("the delegation token has expired")
        _check_owner(token, by)
        wanted_ms = min(period_ms, self.expiry_time_ms) if period_ms > 0 else self.expiry_time_ms
        return replace(token, expires_ms=min(token.max_ms, _sum(now_ms, wanted_ms)))

    def expire(
        self, token: TokenInformation, *, by: Principal, period_ms: int, now_ms: int
    ) -> TokenInformation | None:
        """The token with an end set; None: it is to be removed at once, for a negative period."""
        _check_owner(token, by)
        if period_ms < 0:
            return None
        if token.is_expired(now_ms):
            raise DelegationTokenExpired("the delegation token has expired")
        return replace(token, expires_ms=min(token.max_ms, _sum(now_ms, period_ms)))

    def login(self, token: TokenInformation, mechanism: str, *, salt: bytes) -> TokenLogin:
        """What SCRAM needs; costs milliseconds, so it is made once for a token, not per login."""
        password = base64.b64encode(self.secret_of(token.token_id)).decode()
        return TokenLogin(
            credential=ScramCredential.from_password(mechanism, password, salt=salt),
            owner=token.owner,
            expires_ms=token.expires_ms,
        )


class TokenBook:
    """The tokens of a cluster at one moment, found by their secrets."""

    __slots__ = ("_by_secret", "tokens")

    def __init__(self, policy: TokenPolicy, tokens: Iterable[TokenInformation]) -> None:
        self.tokens = {token.token_id: token for token in tokens}
        self._by_secret = {policy.secret_of(token_id): token_id for token_id in self.tokens}

    def find(self, secret: bytes) -> TokenInformation:
        """The token whose HMAC this is; a secret of 64 bytes is not guessed by timing a table."""
        token_id = self._by_secret.get(bytes(secret))
        if token_id is None:
            raise DelegationTokenNotFound("there is no such delegation token")
        return self.tokens[token_id]

    def expired(self, now_ms: int) -> list[TokenInformation]:
        """What the sweep removes."""
        return [token for token in self.tokens.values() if token.is_expired(now_ms)]

    def described(
        self,
        asker: Principal,
        *,
        owners: Collection[Principal] | None,
        may_describe: Callable[[TokenInformation], bool],
    ) -> list[TokenInformation]:
        """What DescribeDelegationToken shows; None as owners: of everybody, and none of nobody."""
        return [
            token
            for token in self.tokens.values()
            if (owners is None or any(map(token.is_known_to, owners)))
            and (token.is_known_to(asker) or may_describe(token))
        ]

    def __repr__(self) -> str:
        return f"TokenBook({len(self.tokens)} tokens)"


def _check_owner(token: TokenInformation, by: Principal) -> None:
    if not token.is_renewable_by(by):
        raise DelegationTokenOwnerMismatch("neither the owner nor a renewer of the token")


def _sum(now_ms: int, period_ms: int) -> int:
    """Saturates, as a period of all there is means for ever."""
    return min(now_ms + period_ms, _TIMESTAMP_MS_MAX)
