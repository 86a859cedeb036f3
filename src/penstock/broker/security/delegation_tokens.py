"""The delegation tokens of this broker: found by their secrets, and as logins of SCRAM.

Tokens are part of the image; what is derived from them with the secret key is kept here until they
change. Who may ask for anything about tokens is decided here too: not somebody who came by a token,
and nobody who did not have to prove who they are.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Final

from penstock.broker.context import RequestContext
from penstock.cluster.image.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.config.listeners import PLAINTEXT, SSL
from penstock.errors import (
    DelegationTokenAuthorization,
    DelegationTokenDisabled,
    UnsupportedByAuthentication,
)
from penstock.net.session import ANONYMOUS, Session
from penstock.security.acls.rules import AclOperation, AclResourceType
from penstock.security.delegation import TokenBook, TokenInformation, TokenPolicy
from penstock.security.principals import Principal
from penstock.security.sasl.scram_server import TokenLogin

_SALT_BYTES: Final = 16

FindLogin = Callable[[str], TokenLogin | None]


class DelegationTokens:
    """Made only where there is a secret key."""

    def __init__(self, policy: TokenPolicy) -> None:
        self.policy = policy
        self._tokens: Mapping[str, TokenInformation] = {}
        self._book = TokenBook(policy, ())
        self._logins: dict[tuple[str, str], TokenLogin] = {}  # By id and mechanism.

    def book(self, image: ClusterImage) -> TokenBook:
        """The tokens of an image; laid out anew only when they have changed."""
        if image.tokens is not self._tokens:
            self._tokens = image.tokens
            self._book = TokenBook(self.policy, image.tokens.values())
            self._logins = {
                key: login for key, login in self._logins.items() if key[0] in image.tokens
            }
        return self._book

    def login(
        self, image: ClusterImage, mechanism: str, token_id: str, *, now_ms: int
    ) -> TokenLogin | None:
        """What SCRAM needs to let a token's bearer in; None: it opens no door, or no more."""
        token = self.book(image).tokens.get(token_id)
        if token is None or token.is_expired(now_ms):
            return None
        known = self._logins.get((token_id, mechanism))
        if known is None:
            known = self.policy.login(token, mechanism, salt=secrets.token_bytes(_SALT_BYTES))
            self._logins[token_id, mechanism] = known
        return TokenLogin(
            credential=known.credential, owner=token.owner, expires_ms=token.expires_ms
        )

    def __repr__(self) -> str:
        return f"DelegationTokens({len(self._tokens)})"


def tokens_of(config: BrokerConfig) -> DelegationTokens | None:
    """None: without a secret key there are no delegation tokens."""
    key = config.delegation_token_secret_key
    if not key:
        return None
    return DelegationTokens(
        TokenPolicy(
            secret_key=str(key),
            max_lifetime_ms=config.delegation_token_max_lifetime_ms,
            expiry_time_ms=config.delegation_token_expiry_time_ms,
        )
    )


def enabled_tokens(context: RequestContext) -> DelegationTokens:
    """DelegationTokenDisabled where there is no secret key."""
    tokens = context.broker.tokens
    if tokens is None:
        raise DelegationTokenDisabled("Delegation Token feature is not enabled.")
    return tokens


def check_may_ask(context: RequestContext) -> None:
    """Whether the client proved who it is, by something else than a token."""
    session = context.session
    protocol = _protocol(context.broker.config, session)
    is_one_way = protocol == SSL and session.principal == ANONYMOUS
    if session.is_by_token or protocol == PLAINTEXT or is_one_way:
        raise UnsupportedByAuthentication(
            "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on "
            "delegation token authenticated channels."
        )


def check_may_create(context: RequestContext, owner: Principal) -> None:
    """Whether the client may have a token that makes its bearer the owner."""
    if str(owner) == context.session.principal or context.rights is None:
        return
    if not context.rights.may(AclOperation.CREATE_TOKENS, AclResourceType.USER, str(owner)):
        raise DelegationTokenAuthorization("Delegation Token authorization failed.")


def may_describe(context: RequestContext, token: TokenInformation) -> bool:
    """Whether the client may see a token that it neither owns nor renews."""
    rights = context.rights
    if rights is None:
        return True
    return rights.may(
        AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, token.token_id
    ) or rights.may(AclOperation.DESCRIBE_TOKENS, AclResourceType.USER, str(token.owner))


def _protocol(config: BrokerConfig, session: Session) -> str | None:
    """The protocol of the client's listener; None: only the broker that passed it on knows it,
    and has looked."""
    for listener in config.listeners:
        if listener.name == session.listener:
            return listener.security_protocol
    return None
