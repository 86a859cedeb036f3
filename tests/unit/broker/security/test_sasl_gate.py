"""The gate of a listener with SASL, through real sockets; a dispatcher that echoes is behind it."""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.net.test_listener import Peer, connected, framed, serving

from penstock.broker.security import sasl_gate
from penstock.broker.security.sasl_gate import SaslGate
from penstock.errors import ErrorCode
from penstock.net import connection
from penstock.net.connection import IncomingConnection
from penstock.net.listener import Listener
from penstock.protocol.apis import ApiKey, Request, response_class
from penstock.protocol.headers import decode_response_header, encode_request_header
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest
from penstock.security.principals import USER, Principal
from penstock.security.sasl.outcome import Authenticated, Challenge, SaslRefused
from penstock.security.sasl.plain import PlainServer, PlainUsers, plain_message
from penstock.telemetry.peer_log import PeerLog

USERS = PlainUsers({"alice": "secret", "bob": "hush"})
GOOD = plain_message("alice", "secret")


class TwoSteps:
    """A mechanism of two messages whose credential ends."""

    def __init__(self) -> None:
        self._is_second = False

    def step(self, token: bytes) -> Challenge | Authenticated:
        if token == b"bad":
            raise SaslRefused("for the log alone")
        if not self._is_second:
            self._is_second = True
            return Challenge(token=b"go on")
        last = None if token == b"quiet" else b"welcome"
        return Authenticated(
            token=last, principal=Principal(USER, token.decode()), expires_ms=5_000
        )


MECHANISMS: Mapping[str, Callable[[], Any]] = {
    "PLAIN": lambda: PlainServer(USERS),
    "TWO": TwoSteps,
}


class Clock:
    def __init__(self) -> None:
        self.s = 1000.0


def guarded(
    scenario: Callable[[Listener], Awaitable[None]],
    *,
    session_ms_max: int = 0,
    clock: Clock | None = None,
) -> list[str]:
    """Run a scenario; who was served, in order."""
    served: list[str] = []

    def echo(connection: IncomingConnection, frame: memoryview) -> list[Any]:
        served.append(connection.session.principal)
        return [framed(bytes(frame))]

    clock = clock or Clock()
    gate = SaslGate(
        echo,
        lambda: MECHANISMS,
        frame_bytes_max=1 << 20,
        failure_delay_s=0.01,
        session_ms_max=lambda _mechanism: session_ms_max,
        now_ms=lambda: 1_000,
        now_s=lambda: clock.s,
    )
    serving(gate, scenario)
    return served


def frame_of(request: Request, version: int) -> bytes:
    return framed(encode_request_header(request.api_key, version, 7, "c") + request.encode(version))


async def ask(peer: Peer, request: Request, version: int) -> Any:
    peer.send(frame_of(request, version))
    answer = await peer.answer()
    number, at = decode_response_header(memoryview(answer), request.api_key, version)
    assert number == 7
    return response_class(request.api_key).decode(answer, version, at)


async def log_in(peer: Peer, token: bytes = GOOD) -> Any:
    answer = await ask(peer, SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert (answer.error_code, answer.mechanisms) == (0, ["PLAIN", "TWO"])
    return await ask(peer, SaslAuthenticateRequest(auth_bytes=token), 2)


BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def test_after_a_proof_everything_is_served_under_the_name() -> None:
    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.send(frame_of(ApiVersionsRequest(), 0))
        await peer.answer()
        answer = await log_in(peer)
        assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
        for _ in range(2):
            peer.send(frame_of(BEAT, 4))
            await peer.answer()

    assert guarded(scenario) == ["User:ANONYMOUS", "User:alice", "User:alice"]


@pytest.mark.parametrize(
    "first",
    [
        frame_of(BEAT, 4),
        frame_of(SaslAuthenticateRequest(auth_bytes=GOOD), 2),
        frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1) + frame_of(BEAT, 4),
        frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1) * 2,
        frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1) + frame_of(ApiVersionsRequest(), 0),
        framed(struct.pack(">hhih", ApiKey.SASL_HANDSHAKE, 9, 7, -1)),
        framed(struct.pack(">hhih", 999, 0, 7, -1)),
        framed(b"abc"),
    ],
)
def test_what_comes_too_early_closes_the_connection(first: bytes) -> None:
    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.send(first)
        await peer.reader.read(-1)
        assert not listener.connections

    assert guarded(scenario) == []


def test_a_wrong_password_is_told_after_a_while_and_the_connection_ends(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sasl_gate, connection):  # A flood before this one may have used up their lines.
        monkeypatch.setattr(module, "peer_log", PeerLog(connection.log))
    told: list[Any] = []

    async def scenario(listener: Listener) -> None:
        for token in (plain_message("alice", "no"), plain_message("nobody", "secret")):
            peer = await connected(listener)
            told.append(await log_in(peer, token))
            assert await peer.is_closed()

    with caplog.at_level(logging.INFO):
        assert guarded(scenario) == []
    assert told[0].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert told[0] == told[1]
    assert caplog.text.count("Failed authentication with") == 2


def test_what_follows_a_wrong_password_in_one_breath_is_not_served() -> None:
    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        wrong = SaslAuthenticateRequest(auth_bytes=plain_message("alice", "no"))
        right = SaslAuthenticateRequest(auth_bytes=GOOD)
        handshake = frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        peer.send(handshake + frame_of(wrong, 2) + frame_of(right, 2) + frame_of(BEAT, 4))
        await peer.reader.read(-1)

    assert guarded(scenario) == []


def test_an_unknown_mechanism_is_told_which_there_are() -> None:
    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        answer = await ask(peer, SaslHandshakeRequest(mechanism="GSSAPI"), 1)
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ["PLAIN", "TWO"]
        assert await peer.is_closed()

    guarded(scenario)


def test_old_clients_send_bare_tokens() -> None:
    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        await ask(peer, SaslHandshakeRequest(mechanism="TWO"), 0)
        for said, answer in ((b"me", b"go on"), (b"dave", b"welcome")):
            peer.send(framed(said))
            assert await peer.answer() == answer
        peer.send(frame_of(BEAT, 4))
        await peer.answer()
        bad = await connected(listener)
        await ask(bad, SaslHandshakeRequest(mechanism="TWO"), 0)
        bad.send(framed(b"bad"))
        assert await bad.is_closed()

    assert guarded(scenario) == ["User:dave"]


@pytest.mark.parametrize(("most_ms", "least_ms"), [(0, 4_000), (3_000, 3_000), (9_000, 4_000)])
def test_a_session_lasts_as_long_as_its_credential_and_the_setting_allow(
    most_ms: int, least_ms: int
) -> None:
    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        assert (await log_in(peer)).session_lifetime_ms == most_ms
        peer = await connected(listener)
        await ask(peer, SaslHandshakeRequest(mechanism="TWO"), 1)
        await ask(peer, SaslAuthenticateRequest(auth_bytes=b"x"), 2)
        answer = await ask(peer, SaslAuthenticateRequest(auth_bytes=b"x"), 2)
        assert answer.session_lifetime_ms == least_ms

    guarded(scenario, session_ms_max=most_ms)


def test_whoever_does_not_authenticate_again_in_time_is_closed() -> None:
    clock = Clock()

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        await log_in(peer)
        clock.s += 2.9
        peer.send(frame_of(BEAT, 4))
        await peer.answer()
        assert (await log_in(peer)).error_code == 0
        clock.s += 2.9
        peer.send(frame_of(BEAT, 4))
        await peer.answer()
        clock.s += 0.2
        peer.send(frame_of(BEAT, 4))
        assert await peer.is_closed()

    assert guarded(scenario, session_ms_max=3_000, clock=clock) == ["User:alice"] * 2


def test_a_second_authentication_may_come_late_but_not_too_often() -> None:
    clock = Clock()

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        await log_in(peer)
        clock.s += 10
        assert (await log_in(peer)).error_code == 0
        handshake = frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        peer.send(handshake)  # Within the second: it goes where other requests go.
        assert framed(await peer.answer()) == handshake

    assert guarded(scenario, session_ms_max=3_000, clock=clock) == ["User:alice"]


def test_a_session_without_an_end_is_not_renewed() -> None:
    handshake = frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1)

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        await log_in(peer)
        peer.send(handshake)  # It goes where other requests go, which refuse it.
        assert framed(await peer.answer()) == handshake

    assert guarded(scenario) == ["User:alice"]


def test_versions_are_told_once() -> None:
    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        for version in (99, 0):  # Who asked in too new a version may ask again.
            peer.send(framed(struct.pack(">hhih", ApiKey.API_VERSIONS, version, 7, -1)))
            await peer.answer()
        peer.send(frame_of(ApiVersionsRequest(), 0))
        assert await peer.is_closed()

    assert guarded(scenario) == ["User:ANONYMOUS"] * 2


@pytest.mark.parametrize(
    ("mechanism", "token", "code"),
    [
        ("PLAIN", plain_message("bob", "hush"), ErrorCode.SASL_AUTHENTICATION_FAILED),
        ("TWO", b"", ErrorCode.ILLEGAL_SASL_STATE),
    ],
)
def test_nobody_becomes_another_by_authenticating_again(
    mechanism: str, token: bytes, code: ErrorCode
) -> None:
    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        await log_in(peer)
        answer = await ask(peer, SaslHandshakeRequest(mechanism=mechanism), 1)
        if not answer.error_code:
            answer = await ask(peer, SaslAuthenticateRequest(auth_bytes=token), 2)
            assert "Cannot change principals" in answer.error_message
        assert answer.error_code == code
        assert await peer.is_closed()

    assert guarded(scenario, session_ms_max=3_000) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=6))
def test_no_bytes_come_through_without_a_proof(frames: list[bytes]) -> None:
    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.send(b"".join(map(framed, frames)))
        peer.writer.write_eof()
        await asyncio.wait_for(peer.reader.read(-1), 60)

    shown = [frame for frame in frames if frame[:2] != b"\x00\x12"]  # Not ApiVersions.
    assert len(guarded(scenario)) <= len(frames) - len(shown)


def test_a_last_token_that_needs_no_answer_is_answered_only_as_a_request() -> None:
    """As Java's Kerberos: a client of Kafka 0.10 takes what comes next for another answer."""

    async def scenario(listener: Listener) -> None:
        raw = await connected(listener)
        await ask(raw, SaslHandshakeRequest(mechanism="TWO"), 0)
        raw.send(framed(b"first"))
        assert await raw.answer() == b"go on"
        raw.send(framed(b"quiet") + frame_of(BEAT, 0))
        assert bytes(await raw.answer()) == frame_of(BEAT, 0)[4:]
        peer = await connected(listener)
        await ask(peer, SaslHandshakeRequest(mechanism="TWO"), 1)
        await ask(peer, SaslAuthenticateRequest(auth_bytes=b"first"), 2)
        answer = await ask(peer, SaslAuthenticateRequest(auth_bytes=b"quiet"), 2)
        assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b"")

    assert guarded(scenario) == ["User:quiet"]
