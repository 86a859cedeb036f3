"""A real server with TLS and SASL on a real socket, just large enough to come in through.

It answers ApiVersions, SaslHandshake, SaslAuthenticate and Metadata. The server's side of SCRAM is
written out here from RFC 5802, apart from the client's, and can be told to cheat.
"""

import base64
import contextlib
import hashlib
import hmac
import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from penstock.errors import ErrorCode
from penstock.protocol.apis import ApiKey, Request, Response, request_class, supported_versions
from penstock.protocol.headers import decode_request_header, encode_response_header
from penstock.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from penstock.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from penstock.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

SALT = b"a salt of sixteen"
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_SERVED = (
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
)


@dataclass(slots=True, kw_only=True)
class Cheats:
    """What a false or careless broker could do in SCRAM."""

    iterations: int = 4096
    drop_client_nonce: bool = False
    signature: bytes | None = None  # None: the true one.
    extension: str = ""
    refuse: str = ""  # An error inside of SCRAM, as RFC 5802 has them.


@dataclass(slots=True, kw_only=True)
class SecuredServer:
    """Serves until closed. `passwords` empty: no SASL. `context` None: no TLS."""

    passwords: Mapping[str, str] = field(default_factory=dict)
    mechanisms: tuple[str, ...] = ("PLAIN", *_HASHES)
    context: ssl.SSLContext | None = None
    lifetime_ms: int = 0
    cheats: Cheats = field(default_factory=Cheats)
    asked: list[ApiKey] = field(default_factory=list)
    port: int = 0

    @contextlib.contextmanager
    def serving(self) -> Iterator["SecuredServer"]:
        """Listen on a free port for the time of the block."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            yield self
            listener.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = listener.accept()
                threading.Thread(target=self._talk, args=(plain,), daemon=True).start()

    def _talk(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError), plain:
            wrapped = self.context.wrap_socket(plain, server_side=True) if self.context else plain
            with wrapped:
                session = _Session(self)
                while True:
                    frame = _read(wrapped, struct.unpack(">i", _read(wrapped, 4))[0])
                    reply = session.reply(frame)
                    wrapped.sendall(struct.pack(">i", len(reply)) + reply)


class _Session:
    """One connection: it must authenticate before it asks for anything else."""

    def __init__(self, server: SecuredServer) -> None:
        self.server = server
        self.is_in = not server.passwords
        self.mechanism = ""
        self.scram: _ScramServer | None = None

    def reply(self, frame: bytes) -> bytes:
        header, at = decode_request_header(memoryview(frame))
        api, version = ApiKey(header.api_key), header.api_version
        self.server.asked.append(api)
        request = request_class(api).decode(frame, version, at)
        if not self.is_in and api is ApiKey.METADATA:
            raise EOFError("a broker hangs up on whoever did not authenticate")
        answer = self._answer(request)
        return encode_response_header(api, version, header.correlation_id) + answer.encode(version)

    def _answer(self, request: Request) -> Response:
        if isinstance(request, SaslHandshakeRequest):
            return self._shake_hands(request.mechanism)
        if isinstance(request, SaslAuthenticateRequest):
            return self._authenticate(bytes(request.auth_bytes))
        if request.api_key is ApiKey.METADATA:
            me = MetadataResponseBroker(node_id=0, host="127.0.0.1", port=self.server.port)
            return MetadataResponse(brokers=[me], controller_id=0, cluster_id="secured")
        ranges = {api: supported_versions(api) for api in _SERVED}
        keys = [
            ApiVersion(api_key=api, min_version=known[0], max_version=known[-1])
            for api, known in ranges.items()
        ]
        return ApiVersionsResponse(api_keys=keys)

    def _shake_hands(self, mechanism: str) -> SaslHandshakeResponse:
        if not self.server.passwords:
            code = ErrorCode.ILLEGAL_SASL_STATE
        elif mechanism not in self.server.mechanisms:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        else:
            code = ErrorCode.NONE
        self.mechanism, self.scram, self.is_in = mechanism, None, False
        return SaslHandshakeResponse(error_code=code, mechanisms=list(self.server.mechanisms))

    def _authenticate(self, token: bytes) -> SaslAuthenticateResponse:
        if self.mechanism == "PLAIN":
            _, user, password = token.decode().split("\0")
            self.is_in = self.server.passwords.get(user) == password
            return self._verdict(b"")
        if self.scram is None:
            self.scram = _ScramServer(_HASHES[self.mechanism], self.server)
            return SaslAuthenticateResponse(auth_bytes=self.scram.challenge(token))
        signature = self.scram.check(token)
        self.is_in = signature is not None
        return self._verdict(signature or b"")

    def _verdict(self, token: bytes) -> SaslAuthenticateResponse:
        if self.is_in:
            life = self.server.lifetime_ms
            return SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=life)
        return SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
            error_message="Authentication failed: Invalid username or password",
        )


class _ScramServer:
    """RFC 5802 as the broker sees it."""

    def __init__(self, hash_name: str, server: SecuredServer) -> None:
        self.hash_name = hash_name
        self.server = server
        self.said = ""
        self.password = ""

    def challenge(self, token: bytes) -> bytes:
        bare = token.decode().removeprefix("n,,")
        user, nonce = (part[2:] for part in bare.split(","))
        user = user.replace("=2C", ",").replace("=3D", "=")
        self.password = self.server.passwords.get(user, "\0")
        cheats = self.server.cheats
        if cheats.refuse:
            return f"e={cheats.refuse}".encode()
        nonce = ("" if cheats.drop_client_nonce else nonce) + "server-part"
        salt = base64.b64encode(SALT).decode()
        first = f"{cheats.extension}r={nonce},s={salt},i={cheats.iterations}"
        self.said = f"{bare},{first}"
        return first.encode()

    def check(self, token: bytes) -> bytes | None:
        without_proof, _, proof = token.decode().rpartition(",p=")
        said = f"{self.said},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(
            self.hash_name, self.password.encode(), SALT, self.server.cheats.iterations
        )
        stored = hashlib.new(self.hash_name, self._keyed(salted, b"Client Key")).digest()
        mask = self._keyed(stored, said)
        key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), mask, strict=True))
        if hashlib.new(self.hash_name, key).digest() != stored:
            return None
        signature = self._keyed(self._keyed(salted, b"Server Key"), said)
        shown = self.server.cheats.signature or signature
        return b"v=" + base64.b64encode(shown)

    def _keyed(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.hash_name)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data
