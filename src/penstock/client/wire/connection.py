"""One connection to one broker: a request goes out, its answer comes back, on the caller's thread.

For everything librdkafka has no call for, and for all of Admin. It knows frames, headers and
versions; which broker to ask, and whether to ask again, is for `cluster`.
"""

import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from penstock.client.errors import (
    AuthenticationError,
    BrokerUnreachableError,
    ClientError,
    KafkaTimeoutError,
)
from penstock.errors import ConfigError, ErrorCode, UnsupportedVersion, error_for
from penstock.protocol.apis import ApiKey, Request, Response, response_class, supported_versions
from penstock.protocol.headers import decode_response_header, encode_request_header
from penstock.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.protocol.primitives import MalformedMessage

if TYPE_CHECKING:  # Only a secured connection pays for what it takes.
    from penstock.client.wire.security import Security

R = TypeVar("R", bound=Response)

# An answer larger than this is not an answer; real ones are bounded by what was asked for.
RESPONSE_BYTES_MAX = 256 * 1024 * 1024
_SIZE = struct.Struct(">i")
_INT16 = struct.Struct(">h")
_TLS_ALERT = b"\x15\x03"
# A session that ends is renewed when this share of it has passed, as Kafka's clients do.
_SESSION_SHARE = 0.85


class Posted(NamedTuple):
    """A request under way."""

    api_key: ApiKey
    version: int
    correlation_id: int


class BrokerConnection:
    """A connection that has agreed with its broker on versions. Not for several threads."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str = "penstock",
        timeout_s: float = 30.0,
        *,
        response_bytes_max: int = RESPONSE_BYTES_MAX,
        security: "Security | None" = None,
    ) -> None:
        self.host = host
        self.port = port
        self.client_id = client_id
        self.timeout_s = timeout_s
        self.response_bytes_max = response_bytes_max
        self.security = security
        self._correlation_id = 0
        self._under_way = 0
        self._renew_at_s: float | None = None  # None: the session does not end.
        self._socket = self._connect()
        try:
            self.api_versions = self._negotiate()
            self._authenticate()
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self.host}:{self.port}"

    def versions(self, api_key: int) -> range:
        """The versions of an API that both sides speak, lowest to highest; maybe none."""
        theirs, ours = self.broker_versions.get(api_key, range(0)), supported_versions(api_key)
        if not theirs or not ours:
            return range(0)
        return range(max(theirs[0], ours[0]), min(theirs[-1], ours[-1]) + 1)

    @property
    def broker_versions(self) -> Mapping[int, range]:
        """What the broker said it speaks."""
        keys = self.api_versions.api_keys
        return {key.api_key: range(key.min_version, key.max_version + 1) for key in keys}

    def request(
        self, message: Request, version: int | None = None, *, timeout_s: float | None = None
    ) -> Response:
        """Send in the highest version both speak, or in a given one, and wait for the answer."""
        if version is None:
            version = self._highest(message.api_key)
        return self._exchange(message, version, self.timeout_s if timeout_s is None else timeout_s)

    def ask(
        self,
        message: Request,
        expect: type[R],
        version: int | None = None,
        *,
        timeout_s: float | None = None,
    ) -> R:
        """`request`, with the class of the answer known to the type checker."""
        answer = self.request(message, version, timeout_s=timeout_s)
        assert isinstance(answer, expect)
        return answer

    @property
    def is_open(self) -> bool:
        """Whether nobody closed it; the other side may have."""
        return self._socket.fileno() >= 0

    def close(self) -> None:
        """Give the socket back; may be called twice."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _connect(self) -> socket.socket:
        try:
            connected = socket.create_connection((self.host, self.port), timeout=self.timeout_s)
        except OSError as error:
            raise BrokerUnreachableError(
                f"Connection to {self.address} could not be established. Is a broker running there?"
            ) from error
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.security is not None and self.security.tls is not None:
            from penstock.client.wire.tls import shake_hands

            return shake_hands(self.security.tls, connected, self.host, self.address)
        return connected

    def _negotiate(self) -> ApiVersionsResponse:
        """Ask what the broker speaks; an older one says so in version 0 (KIP-511)."""
        from penstock import __version__

        version = supported_versions(ApiKey.API_VERSIONS)[-1]
        question = ApiVersionsRequest(
            client_software_name="penstock", client_software_version=__version__
        )
        answer = self._exchange(question, version, self.timeout_s)
        assert isinstance(answer, ApiVersionsResponse)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            named = {key.api_key: key.max_version for key in answer.api_keys}
            version = min(version, named.get(ApiKey.API_VERSIONS, 0))
            answer = self._exchange(question, version, self.timeout_s)
            assert isinstance(answer, ApiVersionsResponse)
        if answer.error_code:
            raise error_for(answer.error_code)
        return answer

    def _authenticate(self) -> None:
        """Say who we are where the listener asks for it; again before a session ends (KIP-368)."""
        if self.security is None or self.security.credentials is None:
            return
        from penstock.client.wire.sasl import authenticate

        self._renew_at_s = None
        try:
            lifetime_ms = authenticate(self.security.credentials, self.request, host=self.host)
        except AuthenticationError as error:
            self.close()
            raise AuthenticationError(f"Authentication at {self.address} failed: {error}") from (
                error.__cause__ or error
            )
        if lifetime_ms > 0:
            self._renew_at_s = time.monotonic() + lifetime_ms / 1000 * _SESSION_SHARE

    def _highest(self, api_key: ApiKey) -> int:
        shared = self.versions(api_key)
        if not shared:
            name = api_key.name.title().replace("_", "")
            raise UnsupportedVersion(f"The broker {self.address} does not serve {name} requests.")
        return shared[-1]

    def _exchange(self, message: Request, version: int, timeout_s: float) -> Response:
        return self.take(self.post(message, version, timeout_s=timeout_s), timeout_s=timeout_s)

    def post(
        self, message: Request, version: int | None = None, *, timeout_s: float | None = None
    ) -> "Posted":
        """Send and do not wait. Several may be under way; their answers are taken in order."""
        if self._is_session_ending():
            self._authenticate()
        if version is None:
            version = self._highest(message.api_key)
        timeout_s = self.timeout_s if timeout_s is None else timeout_s
        self._correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        posted = Posted(message.api_key, version, self._correlation_id)
        header = encode_request_header(*posted, self.client_id)
        body = message.encode(version)
        with self._breaking(posted, timeout_s):
            self._socket.settimeout(timeout_s)
            self._socket.sendall(_SIZE.pack(len(header) + len(body)) + header + body)
        self._under_way += 1
        return posted

    def take(
        self, posted: "Posted", *, timeout_s: float | None = None, bytes_expected: int = 0
    ) -> Response:
        """The answer to the oldest request under way.

        Up to `bytes_expected` are received in one piece of memory, without growing it.
        """
        timeout_s = self.timeout_s if timeout_s is None else timeout_s
        deadline_s = time.monotonic() + timeout_s
        with self._breaking(posted, timeout_s):
            frame = self._receive_frame(deadline_s, bytes_expected)
        self._under_way -= 1
        return self._decode(frame, posted)

    def _is_session_ending(self) -> bool:
        """Answers come in order, so a renewal must wait until none is under way."""
        if self._renew_at_s is None or self._under_way:
            return False
        return time.monotonic() >= self._renew_at_s

    @contextmanager
    def _breaking(self, posted: "Posted", timeout_s: float) -> Iterator[None]:
        """What goes wrong with the socket ends the connection, and is said in our words."""
        try:
            yield
        except TimeoutError as error:
            self.close()  # Its answer may still come; it must not be taken for another's.
            name = posted.api_key.name.title().replace("_", "")
            raise KafkaTimeoutError(
                f"{self.address} did not answer a {name} request within {timeout_s:g} s."
            ) from error
        except OSError as error:
            self.close()
            alert = str(getattr(error, "reason", None) or "")
            if "ALERT" in alert or "CERTIFICATE" in alert:
                # In TLS 1.3 a broker looks at our certificate when the handshake is over for us.
                words = alert.lower().replace("_", " ")
                raise AuthenticationError(f"{self.address} ended the TLS session: {words}.") from (
                    error
                )
            raise BrokerUnreachableError(f"The connection to {self.address} broke.") from error

    def _receive_frame(self, deadline_s: float, bytes_expected: int) -> memoryview:
        lead = self._receive(4, deadline_s)
        (size,) = _SIZE.unpack(lead)
        if not 4 <= size <= self.response_bytes_max:
            self.close()
            hint = " It speaks TLS: set security.protocol." if lead[:2] == _TLS_ALERT else ""
            raise BrokerUnreachableError(
                f"{self.address} does not answer as a Kafka broker does.{hint}"
            )
        if size <= bytes_expected:
            return self._receive_whole(size, deadline_s)
        return self._receive(size, deadline_s)

    def _receive_whole(self, size: int, deadline_s: float) -> memoryview:
        data = memoryview(bytearray(size))
        at = 0
        while at < size:
            self._socket.settimeout(max(0.001, deadline_s - time.monotonic()))
            received = self._socket.recv_into(data[at:])
            if not received:
                raise ConnectionError("end of stream")
            at += received
        return data

    def _receive(self, size: int, deadline_s: float) -> memoryview:
        # The buffer grows with what has come, so a lying length costs no memory.
        data = bytearray()
        while len(data) < size:
            self._socket.settimeout(max(0.001, deadline_s - time.monotonic()))
            chunk = self._socket.recv(min(size - len(data), 1 << 20))
            if not chunk:
                raise ConnectionError("end of stream")
            data += chunk
        return memoryview(data)

    def _decode(self, frame: memoryview, posted: "Posted") -> Response:
        api_key, version, expected = posted
        try:
            correlation_id, body = decode_response_header(frame, api_key, version)
            if correlation_id != expected:
                raise MalformedMessage("an answer to another request")
            if api_key == ApiKey.API_VERSIONS and _is_refusal(frame, body):
                version = 0
            return response_class(api_key).decode(frame, version, body)
        except MalformedMessage as error:
            self.close()
            raise ClientError(f"{self.address} sent what cannot be read: {error}") from error


def parse_addresses(bootstrap: str) -> list[tuple[str, int]]:
    """`host:port,host:port` as pairs; ConfigError says which entry is wrong."""
    found = [_parse_address(entry.strip()) for entry in bootstrap.split(",") if entry.strip()]
    if not found:
        raise ConfigError("bootstrap.servers is empty: write host:port, or several with commas")
    return found


def _parse_address(entry: str) -> tuple[str, int]:
    entry = entry.rpartition("://")[2]  # Some write the listener's protocol in front.
    host, colon, port = entry.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"{entry!r} in bootstrap.servers is not of the form host:port")
    return host, int(port)


def _is_refusal(frame: memoryview, body: int) -> bool:
    if len(frame) < body + 2:
        return False
    (code,) = _INT16.unpack_from(frame, body)
    return bool(code == ErrorCode.UNSUPPORTED_VERSION)
