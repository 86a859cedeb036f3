"""The client's side of SASL without any connection, against the broker's own side of it."""

import asyncio

import pytest

from penstock.errors import ErrorCode, ProtocolError
from penstock.protocol.apis import Request, Response
from penstock.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.security.sasl.client_exchange import Exchange, client_exchange
from penstock.security.sasl.client_tokens import Credentials
from penstock.security.sasl.outcome import SaslRefused
from penstock.security.sasl.plain import PlainServer, PlainUsers

ALICE = Credentials(mechanism="PLAIN", username="alice", password="pencil")


class PlainBroker:
    """Answers as a broker that knows alice, and keeps what it was asked."""

    def __init__(self, *, mechanisms: tuple[str, ...] = ("PLAIN",), lifetime_ms: int = 0) -> None:
        self.mechanisms = mechanisms
        self.lifetime_ms = lifetime_ms
        self.asked: list[tuple[type[Request], int | None]] = []
        self._server = PlainServer(PlainUsers({"alice": "pencil"}))

    def answer(self, request: Request) -> Response:
        if isinstance(request, SaslHandshakeRequest):
            known = request.mechanism in self.mechanisms
            code = 0 if known else int(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
            return SaslHandshakeResponse(error_code=code, mechanisms=list(self.mechanisms))
        assert isinstance(request, SaslAuthenticateRequest)
        try:
            done = self._server.step(bytes(request.auth_bytes))
        except SaslRefused as refused:
            return SaslAuthenticateResponse(
                error_code=int(ErrorCode.SASL_AUTHENTICATION_FAILED),
                error_message=refused.told,
                auth_bytes=b"",
            )
        return SaslAuthenticateResponse(
            error_code=0, auth_bytes=done.token, session_lifetime_ms=self.lifetime_ms
        )


def carried(exchange: Exchange, broker: PlainBroker) -> int:
    """As a client with a blocking connection carries it."""
    question = next(exchange)
    while True:
        broker.asked.append((type(question.request), question.version))
        try:
            question = exchange.send(broker.answer(question.request))
        except StopIteration as done:
            return int(done.value)


def test_the_handshake_names_the_mechanism_and_the_session_has_a_lifetime() -> None:
    broker = PlainBroker(lifetime_ms=60_000)
    assert carried(client_exchange(ALICE, nonce="n", host="h"), broker) == 60_000
    assert broker.asked == [(SaslHandshakeRequest, 1), (SaslAuthenticateRequest, None)]


def test_an_event_loop_carries_it_as_well() -> None:
    async def carry() -> int:
        exchange, broker = client_exchange(ALICE, nonce="n", host="h"), PlainBroker(lifetime_ms=5)
        question = next(exchange)
        while True:
            await asyncio.sleep(0)  # Where a broker would wait for the other's answer.
            try:
                question = exchange.send(broker.answer(question.request))
            except StopIteration as done:
                return int(done.value)

    assert asyncio.run(carry()) == 5


def test_a_wrong_password_is_refused_with_the_brokers_reason_and_without_the_password() -> None:
    wrong = Credentials(mechanism="PLAIN", username="alice", password="pencils")
    with pytest.raises(SaslRefused, match=r"refused user 'alice' \(PLAIN\): .*Invalid") as caught:
        carried(client_exchange(wrong, nonce="n", host="h"), PlainBroker())
    assert "pencils" not in str(caught.value)
    cause = caught.value.__cause__
    assert isinstance(cause, ProtocolError)
    assert cause.code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_mechanism_that_the_broker_lacks_is_told_with_those_it_has() -> None:
    broker = PlainBroker(mechanisms=("SCRAM-SHA-256", "SCRAM-SHA-512"))
    with pytest.raises(SaslRefused, match="it takes: SCRAM-SHA-256, SCRAM-SHA-512"):
        carried(client_exchange(ALICE, nonce="n", host="h"), broker)
    assert len(broker.asked) == 1


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.ILLEGAL_SASL_STATE, SaslRefused),
        (ErrorCode.UNKNOWN_SERVER_ERROR, ProtocolError),
    ],
)
def test_other_errors_of_a_handshake_are_told_as_they_are(
    code: ErrorCode, kind: type[Exception]
) -> None:
    exchange = client_exchange(ALICE, nonce="n", host="h")
    next(exchange)
    with pytest.raises(kind):
        exchange.send(SaslHandshakeResponse(error_code=int(code), mechanisms=[]))


def test_an_error_after_the_handshake_that_is_no_refusal_is_the_brokers_own() -> None:
    exchange = client_exchange(ALICE, nonce="n", host="h")
    next(exchange)
    exchange.send(SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"]))
    with pytest.raises(ProtocolError):
        exchange.send(
            SaslAuthenticateResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION), auth_bytes=b"")
        )
