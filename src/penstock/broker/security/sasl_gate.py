"""SASL at a listener: nothing of a connection is served before it proved who it is.

A gate stands between a connection and the dispatcher. It takes ApiVersions, SaslHandshake and
SaslAuthenticate by itself, in the order Kafka has them, and hands everything on once the
principal is known. What a mechanism makes of a token is decided in `penstock.security.sasl`.
"""

import asyncio
import logging
import struct
import time
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

from penstock.errors import ErrorCode
from penstock.net.connection import Answer, CloseConnection, Dispatch, IncomingConnection
from penstock.net.session import Authentication, Session
from penstock.net.transport import Parts
from penstock.protocol.apis import ApiKey, Response, supported_versions
from penstock.protocol.headers import RequestHeader, decode_request_header, encode_response_header
from penstock.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from penstock.protocol.primitives import MalformedMessage
from penstock.security.sasl.outcome import (
    Authenticated,
    SaslRefused,
    SaslServer,
    invalid_credentials,
)
from penstock.telemetry.peer_log import PeerLog

peer_log = PeerLog(logging.getLogger("kafka.network.SocketServer"))

_KEY: Final = struct.Struct(">h")
_LENGTH: Final = struct.Struct(">i")
_HEADER_BYTES_MIN: Final = 8
_AGAIN_AFTER_S: Final = 1.0  # As Kafka: nobody authenticates again more often.

MakeServer = Callable[[], SaslServer]


class _Expects(Enum):
    """What comes next from somebody who has yet to prove who they are."""

    VERSIONS_OR_HANDSHAKE = "ApiVersions or SaslHandshake"
    HANDSHAKE = "SaslHandshake"
    TOKEN = "SaslAuthenticate"
    RAW_TOKEN = "a token without a header"  # After a handshake of version 0 (up to Kafka 0.11).


class _Login:
    """One authentication of one connection, from its first request to its end."""

    __slots__ = ("again_as", "expects", "mechanism", "server")

    def __init__(self, again_as: tuple[str, str] | None = None) -> None:
        # Principal and mechanism of before, neither of which may change; None: the first time.
        self.again_as = again_as
        self.expects = _Expects.VERSIONS_OR_HANDSHAKE if again_as is None else _Expects.HANDSHAKE
        self.mechanism = ""
        self.server: SaslServer | None = None


class SaslGate:
    """The dispatch of a listener with SASL."""

    def __init__(
        self,
        serve: Dispatch,
        mechanisms: Callable[[], Mapping[str, MakeServer]],
        *,
        frame_bytes_max: int,  # From then on when somebody is known.
        failure_delay_s: float,
        session_ms_max: Callable[[str], int],  # By mechanism; 0: a session need not be renewed.
        now_ms: Callable[[], int],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._serve = serve
        self._mechanisms = mechanisms
        self._frame_bytes_max = frame_bytes_max
        self._failure_delay_s = failure_delay_s
        self._session_ms_max = session_ms_max
        self._now_ms = now_ms
        self._now_s = now_s

    def __call__(self, connection: IncomingConnection, frame: memoryview) -> Answer:
        session = connection.session
        login = session.login
        if login is None:
            if session.mechanism:  # It came in by one.
                return self._serve_known(connection, frame)
            login = session.login = _Login()
        if session.authentication is Authentication.FAILED:
            raise CloseConnection("a request after a failed authentication")
        assert isinstance(login, _Login)
        if login.expects is _Expects.RAW_TOKEN:
            return self._take_token(connection, login, bytes(frame), _raw)
        return self._take_request(connection, login, frame)

    def _serve_known(self, connection: IncomingConnection, frame: memoryview) -> Answer:
        session = connection.session
        key = _KEY.unpack_from(frame)[0] if len(frame) >= _HEADER_BYTES_MIN else -1
        if key == ApiKey.SASL_HANDSHAKE and self._may_begin_again(session):
            session.authenticated_s = self._now_s()
            login = session.login = _Login((session.principal, session.mechanism))
            return self._take_request(connection, login, frame)
        if session.expires_s is not None and self._now_s() > session.expires_s:
            raise CloseConnection("its session has expired and it did not authenticate again")
        return self._serve(connection, frame)

    def _may_begin_again(self, session: Session) -> bool:
        """A session without an end is not renewed: its second handshake is a request too many."""
        is_due = self._now_s() - session.authenticated_s >= _AGAIN_AFTER_S
        return session.expires_s is not None and is_due

    # Requests

    def _take_request(
        self, connection: IncomingConnection, login: _Login, frame: memoryview
    ) -> Answer:
        if len(frame) < _HEADER_BYTES_MIN:
            raise CloseConnection(f"a request of {len(frame)} bytes has no header")
        (key,) = _KEY.unpack_from(frame)
        if key == ApiKey.API_VERSIONS and login.expects is _Expects.VERSIONS_OR_HANDSHAKE:
            return self._tell_versions(connection, login, frame)
        try:
            header, body_at = decode_request_header(frame)
            return self._take_step(connection, login, header, frame[body_at:])
        except MalformedMessage as error:
            raise CloseConnection(f"a malformed request before authentication: {error}") from None

    def _tell_versions(
        self, connection: IncomingConnection, login: _Login, frame: memoryview
    ) -> Answer:
        """Once; a client whose version was too new for us asks again, with an older one."""
        (version,) = _KEY.unpack_from(frame, _KEY.size)
        if version in supported_versions(ApiKey.API_VERSIONS):
            login.expects = _Expects.HANDSHAKE
        return self._serve(connection, frame)

    def _take_step(
        self, connection: IncomingConnection, login: _Login, header: RequestHeader, body: memoryview
    ) -> Answer:
        key, version = header.api_key, header.api_version
        is_handshake = key == ApiKey.SASL_HANDSHAKE and login.expects is not _Expects.TOKEN
        is_token = key == ApiKey.SASL_AUTHENTICATE and login.expects is _Expects.TOKEN
        if not is_handshake and not is_token:
            name = ApiKey(key).name if key in ApiKey.__members__.values() else str(key)
            raise CloseConnection(
                f"Unexpected Kafka request of type {name} during SASL authentication: "
                f"expected {login.expects.value}"
            )
        if version not in supported_versions(key):
            raise CloseConnection(f"version {version} of {ApiKey(key).name} is not served")
        if is_handshake:
            request = SaslHandshakeRequest.decode_prefix(body, version, 0)[0]
            return self._shake_hands(connection, login, request.mechanism, header)
        token = bytes(SaslAuthenticateRequest.decode_prefix(body, version, 0)[0].auth_bytes)
        return self._take_token(connection, login, token, _Framer(header))

    def _shake_hands(
        self, connection: IncomingConnection, login: _Login, wanted: str, header: RequestHeader
    ) -> Answer:
        offered = self._mechanisms()
        answer = SaslHandshakeResponse(mechanisms=list(offered))
        framed = _Framer(header)
        if wanted not in offered:
            answer.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            reason = f"Unsupported SASL mechanism {wanted!r}"
            return self._refuse(connection, reason, framed(answer))
        if login.again_as is not None and login.again_as[1] != wanted:
            reason = (
                f"SASL mechanism '{wanted}' requested by client is not supported for "
                f"re-authentication of mechanism '{login.again_as[1]}'"
            )
            answer.error_code = ErrorCode.ILLEGAL_SASL_STATE
            return self._refuse(connection, reason, framed(answer))
        login.mechanism = wanted
        login.server = offered[wanted]()
        login.expects = _Expects.TOKEN if header.api_version else _Expects.RAW_TOKEN
        return framed(answer)

    # Tokens

    def _take_token(
        self,
        connection: IncomingConnection,
        login: _Login,
        token: bytes,
        framed: Callable[[SaslAuthenticateResponse], Parts | None],
    ) -> Answer:
        assert login.server is not None
        try:
            outcome = login.server.step(token)
            if isinstance(outcome, Authenticated):
                self._check_unchanged(login, str(outcome.principal))
        except SaslRefused as refused:
            words = refused.told or invalid_credentials(
                login.mechanism, is_again=login.again_as is not None
            )
            answer = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=words
            )
            return self._refuse(connection, f"{login.mechanism}: {refused}", framed(answer))
        answer = SaslAuthenticateResponse(auth_bytes=outcome.token or b"")
        if isinstance(outcome, Authenticated):
            answer.session_lifetime_ms = self._let_in(connection, login, outcome)
        if outcome.token is None and framed is _raw:
            return None
        parts = framed(answer)
        assert parts is not None
        return parts

    def _check_unchanged(self, login: _Login, principal: str) -> None:
        if login.again_as is not None and login.again_as[0] != principal:
            before, after = (text.replace(":", ".", 1) for text in (login.again_as[0], principal))
            words = f"Cannot change principals during re-authentication from {before}: {after}"
            raise SaslRefused(words, told=words)

    def _let_in(self, connection: IncomingConnection, login: _Login, outcome: Authenticated) -> int:
        """The connection belongs to somebody; for how long, in ms, and 0 for ever."""
        session = connection.session
        lifetime_ms = self._lifetime_ms(login.mechanism, outcome)
        session.principal = str(outcome.principal)
        session.mechanism = login.mechanism
        session.is_by_token = outcome.is_by_token
        session.authentication = Authentication.DONE
        session.authenticated_s = self._now_s() if login.again_as else -_AGAIN_AFTER_S
        session.expires_s = None if lifetime_ms is None else self._now_s() + lifetime_ms / 1000
        session.login = None
        connection.frame_bytes_max = self._frame_bytes_max
        return lifetime_ms or 0

    def _lifetime_ms(self, mechanism: str, outcome: Authenticated) -> int | None:
        """None: as long as the connection."""
        limits = []
        if (most_ms := self._session_ms_max(mechanism)) > 0:
            limits.append(most_ms)
        if outcome.expires_ms is not None:
            limits.append(outcome.expires_ms - self._now_ms())
        return max(0, min(limits)) if limits else None

    # Refusals

    def _refuse(self, connection: IncomingConnection, reason: str, answer: Parts | None) -> Answer:
        """Told only after a while, and then the connection ends: guessing takes time (KIP-306)."""
        connection.session.authentication = Authentication.FAILED
        peer_log.info("Failed authentication with %s (%s)", connection.session.address, reason)
        connection.hold()
        return self._refuse_later(connection, answer)

    async def _refuse_later(
        self, connection: IncomingConnection, answer: Parts | None
    ) -> Parts | None:
        await asyncio.sleep(self._failure_delay_s)
        connection.finish()
        return answer


class _Framer:
    """Answers to a request, framed as its version has them."""

    __slots__ = ("_header",)

    def __init__(self, header: RequestHeader) -> None:
        self._header = header

    def __call__(self, answer: Response) -> Parts:
        key, version = self._header.api_key, self._header.api_version
        head = encode_response_header(key, version, self._header.correlation_id)
        body = answer.encode(version)
        return [_LENGTH.pack(len(head) + len(body)) + head + body]


def _raw(answer: Any) -> Parts | None:
    """A token alone; a refusal cannot be told in this form."""
    if answer.error_code:
        return None
    return [_LENGTH.pack(len(answer.auth_bytes)) + answer.auth_bytes]
