"""SASL as a client of Kafka does it: a handshake names the mechanism, then tokens are exchanged.

It speaks through `Ask`, so it knows no sockets. What a mechanism says is PLAIN's one line here, or
`sasl_scram`'s conversation.
"""

import secrets
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Protocol

from penstock.client.errors import AuthenticationError
from penstock.client.sasl_scram import HASHES, ScramClient
from penstock.errors import ErrorCode, error_for
from penstock.protocol.apis import Request, Response
from penstock.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

MECHANISMS = ("PLAIN", *HASHES)
_HANDSHAKE_VERSION = 1  # Version 0 would exchange the tokens outside of Kafka's frames.
_NONCE_BYTES = 24

Tokens = Generator[bytes, bytes, None]


class Ask(Protocol):
    """Sends a request, in the highest version both speak unless one is given."""

    def __call__(self, message: Request, version: int | None = None) -> Response:
        """The answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Who to be, and how to prove it. The password is never printed."""

    mechanism: str
    username: str
    password: str = field(repr=False)


def authenticate(credentials: Credentials, ask: Ask) -> int:
    """Prove who we are; the session's lifetime in ms, 0 for ever (KIP-368)."""
    _shake_hands(credentials.mechanism, ask)
    tokens = _plain(credentials) if credentials.mechanism == "PLAIN" else _scram(credentials)
    lifetime_ms = 0
    token = next(tokens)
    while True:
        answer = ask(SaslAuthenticateRequest(auth_bytes=token))
        assert isinstance(answer, SaslAuthenticateResponse)
        _check(credentials, answer)
        lifetime_ms = answer.session_lifetime_ms
        try:
            token = tokens.send(bytes(answer.auth_bytes))
        except StopIteration:
            return lifetime_ms


def _shake_hands(mechanism: str, ask: Ask) -> None:
    answer = ask(SaslHandshakeRequest(mechanism=mechanism), _HANDSHAKE_VERSION)
    assert isinstance(answer, SaslHandshakeResponse)
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(answer.mechanisms) or "none"
        raise AuthenticationError(
            f"the broker does not take sasl.mechanism={mechanism}; it takes: {offered}"
        )
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise AuthenticationError(
            "the broker's listener asks for no SASL: write security.protocol=PLAINTEXT or SSL"
        )
    if answer.error_code:
        raise error_for(answer.error_code)


def _check(credentials: Credentials, answer: SaslAuthenticateResponse) -> None:
    if answer.error_code == 0:
        return
    if answer.error_code != ErrorCode.SASL_AUTHENTICATION_FAILED:
        raise error_for(answer.error_code, answer.error_message or "")
    reason = answer.error_message or "no reason given"
    raise AuthenticationError(
        f"the broker refused user {credentials.username!r} ({credentials.mechanism}): {reason}"
    ) from error_for(answer.error_code, reason)


def _plain(credentials: Credentials) -> Tokens:
    yield b"\0".join([b"", credentials.username.encode(), credentials.password.encode()])


def _scram(credentials: Credentials) -> Tokens:
    client = ScramClient(
        credentials.mechanism,
        credentials.username,
        credentials.password,
        nonce=secrets.token_urlsafe(_NONCE_BYTES),
    )
    challenge = yield client.first()
    signature = yield client.final(challenge)
    client.verify(signature)
