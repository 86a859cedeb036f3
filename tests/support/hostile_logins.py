"""What somebody sends who has no password: noise, logins cut and mutated, and what was overheard.

All chance comes from one seed. No conversation ends in a login: passwords are wrong, bearer tokens
are not signed, and what was overheard of SCRAM was said to a nonce that never comes again.
"""

import base64
import json
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.mutation import Mutator

from penstock.protocol.apis import ApiKey, Request, supported_versions
from penstock.protocol.headers import encode_request_header
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest
from penstock.security.sasl.bearer import bearer_message
from penstock.security.sasl.outcome import Challenge
from penstock.security.sasl.plain import plain_message
from penstock.security.sasl.scram import ScramCredential
from penstock.security.sasl.scram_client import ScramClient
from penstock.security.sasl.scram_server import ScramServer, ScramUsers

USER, PASSWORD = "alice", "the right password"
SALT, ITERATIONS = b"salt of tests", 4096
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_WRONG = ("", "PLAI", "plain", "GSSAPI", "SCRAM-SHA-1", "EXTERNAL", "Ü" * 300, "\0")
_LENGTHS = (0, -1, -(2**31), 2**31 - 1, 524_289, 104_857_600)


@dataclass(frozen=True, slots=True)
class Conversation:
    """All that one connection sends, and in how many frames."""

    data: bytes
    frames: int


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def frame_of(request: Request, version: int) -> bytes:
    head = encode_request_header(request.api_key, version, 1, "fuzz")
    return framed(head + request.encode(version))


class HostileLogins:
    """Conversations without end."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._handshakes = [
            frame_of(SaslHandshakeRequest(mechanism=mechanism), version)
            for mechanism in MECHANISMS
            for version in (0, 1)
        ]
        self._first = [
            frame_of(ApiVersionsRequest(client_software_name="a", client_software_version="1"), v)
            for v in supported_versions(ApiKey.API_VERSIONS)
        ]
        self._tokens = list(_tokens())
        self._proofs = [
            frame_of(SaslAuthenticateRequest(auth_bytes=token), version)
            for token in self._tokens
            for version in supported_versions(ApiKey.SASL_AUTHENTICATE)
        ]
        other = [frame_of(MetadataRequest(topics=None), version) for version in (1, 8, 12)]
        self._good = [*self._handshakes, *self._first, *self._proofs, *other]
        self._mutator = Mutator(seed, self._good)

    def cut_everywhere(self) -> Iterator[Conversation]:
        """Every good frame, ended before each of its bytes, with and without owning up to it."""
        for handshake in (b"", self._handshakes[0], self._handshakes[1]):
            for good in filter(_is_short, self._good):
                for end in range(len(good)):
                    count = 2 if handshake else 1
                    yield Conversation(handshake + good[:end], count)
                    if end > 4:
                        yield Conversation(handshake + framed(good[4:end]), count)

    def conversation(self) -> Conversation:
        """The next one, by chance."""
        way = self._chance.choice((self._noise, self._mutated, self._replayed, self._lied))
        return way()

    def _noise(self) -> Conversation:
        noise = self._chance.randbytes(self._chance.choice((1, 3, 4, 7, 20, 200, 3000)))
        return Conversation(noise if self._chance.random() < 0.5 else framed(noise), 1)

    def _mutated(self) -> Conversation:
        """Some good frames, and then a wrong one, which may be of any step."""
        begun = self._chance.choice(((), (self._first,), (self._handshakes,)))
        frames = [self._chance.choice(kind) for kind in begun]
        wrong = [self._mutator.frame() for _ in range(self._chance.randrange(1, 4))]
        return Conversation(b"".join([*frames, *wrong]), len(frames) + len(wrong))

    def _replayed(self) -> Conversation:
        """What was overheard, said again: in order, out of order, to another mechanism, raw."""
        version = self._chance.randrange(2)
        mechanism = self._chance.choice((*MECHANISMS, *_WRONG))
        frames = [frame_of(SaslHandshakeRequest(mechanism=mechanism), version)]
        for _ in range(self._chance.randrange(1, 5)):
            if version == 0:
                frames.append(framed(self._chance.choice(self._tokens)))
            else:
                frames.append(self._chance.choice(self._proofs))
        return Conversation(b"".join(frames), len(frames))

    def _lied(self) -> Conversation:
        """A length that nobody keeps."""
        length = struct.pack(">i", self._chance.choice(_LENGTHS))
        begun = self._chance.choice((b"", self._handshakes[1]))
        rest = self._chance.randbytes(self._chance.randrange(40))
        return Conversation(begun + length + rest, 2 if begun else 1)


def _is_short(frame: bytes) -> bool:
    return len(frame) < 500


def _tokens() -> Iterator[bytes]:
    """Proofs that were right once, or never."""
    yield b""
    yield plain_message(USER, "a wrong password")
    yield plain_message("nobody", "x")
    yield b"\0" * 10
    yield plain_message(USER, "x" * 5000)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        yield from _overheard(mechanism)
    header = base64.urlsafe_b64encode(json.dumps({"alg": "RS256"}).encode()).rstrip(b"=")
    yield bearer_message(f"{header.decode()}.e30.c2lnbmVk")
    yield b"\x01"


def _overheard(mechanism: str) -> Iterator[bytes]:
    """A login that went well, with other nonces than will ever come again."""
    users = ScramUsers(credential=lambda _user: credential(mechanism), decoy_key=b"decoy")
    server = ScramServer(mechanism, users, nonce="yesterdays")
    client = ScramClient(mechanism, USER, PASSWORD, nonce="the-clients")
    yield client.first()
    challenge = server.step(client.first())
    assert isinstance(challenge, Challenge)
    final = client.final(challenge.token)
    server.step(final)  # It was right.
    yield final


def credential(mechanism: str) -> ScramCredential:
    return ScramCredential.from_password(mechanism, PASSWORD, salt=SALT, iterations=ITERATIONS)
