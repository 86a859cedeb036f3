"""SASL as a client of Kafka does it: a handshake names the mechanism, then tokens are exchanged.

A generator of requests that takes the responses, so it knows neither socket nor event loop: a
client carries them over one connection, a broker that calls another over its own. What a mechanism
says is for `client_tokens`.
"""

from collections.abc import Generator
from dataclasses import dataclass

from penstock.errors import ErrorCode, error_for
from penstock.protocol.apis import Request, Response
from penstock.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.security.sasl.client_tokens import Proof, client_tokens
from penstock.security.sasl.outcome import SaslRefused

NONCE_BYTES = 24
_HANDSHAKE_VERSION = 1  # Version 0 would exchange the tokens outside of Kafka's frames.


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslQuestion:
    """The next request to send."""

    request: Request
    version: int | None  # None: the highest that both speak.


Exchange = Generator[SaslQuestion, Response, int]


def client_exchange(proof: Proof, *, nonce: str, host: str) -> Exchange:
    """Prove to the broker on this host who we are; it returns the session's lifetime.

    That is in ms, and 0 for ever (KIP-368).

    SaslRefused if one side does not believe the other; other errors of the broker as they are.
    """
    answer = yield SaslQuestion(
        request=SaslHandshakeRequest(mechanism=proof.mechanism), version=_HANDSHAKE_VERSION
    )
    assert isinstance(answer, SaslHandshakeResponse)
    _check_handshake(proof.mechanism, answer)
    tokens = client_tokens(proof, nonce=nonce, host=host)
    token = next(tokens)
    while True:
        answer = yield SaslQuestion(request=SaslAuthenticateRequest(auth_bytes=token), version=None)
        assert isinstance(answer, SaslAuthenticateResponse)
        _check_token(proof, answer)
        try:
            token = tokens.send(bytes(answer.auth_bytes))
        except StopIteration:
            return answer.session_lifetime_ms


def _check_handshake(mechanism: str, answer: SaslHandshakeResponse) -> None:
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(answer.mechanisms) or "none"
        raise SaslRefused(
            f"the broker does not take sasl.mechanism={mechanism}; it takes: {offered}"
        )
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise SaslRefused(
            "the broker's listener asks for no SASL: write security.protocol=PLAINTEXT or SSL"
        )
    if answer.error_code:
        raise error_for(answer.error_code)


def _check_token(proof: Proof, answer: SaslAuthenticateResponse) -> None:
    if answer.error_code == 0:
        return
    if answer.error_code != ErrorCode.SASL_AUTHENTICATION_FAILED:
        raise error_for(answer.error_code, answer.error_message or "")
    reason = answer.error_message or "no reason given"
    raise SaslRefused(
        f"the broker refused user {proof.username!r} ({proof.mechanism}): {reason}"
    ) from error_for(answer.error_code, reason)
