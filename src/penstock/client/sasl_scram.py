"""SCRAM by RFC 5802 and 7677, the client's side: three messages, no secret on the wire.

Pure: tokens in, tokens out; the nonce comes from outside. The broker is checked as well as the
user: its nonce must carry on ours, and its signature proves that it knows the password too. User
names and passwords go as they are written, in UTF-8, because Kafka stores them so.
"""

import base64
import binascii
import hashlib
import hmac

from penstock.client.errors import AuthenticationError

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MIN = 4_096  # RFC 7677; fewer would let a false broker guess passwords cheaply.
ITERATIONS_MAX = 1_000_000  # A broker that asks for more wants to keep the client busy.
_NO_CHANNEL_BINDING = "n,,"


class ScramClient:
    """One authentication; `first`, `final` and `verify` in this order."""

    def __init__(self, mechanism: str, username: str, password: str, *, nonce: str) -> None:
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        self._first_bare = f"n={_escaped(username)},r={nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        """Who we are."""
        return (_NO_CHANNEL_BINDING + self._first_bare).encode()

    def final(self, server_first: bytes) -> bytes:
        """The proof that we know the password, bound to both nonces."""
        attributes = _attributes(server_first)
        nonce, salt, iterations = self._challenge(attributes)
        binding = base64.b64encode(_NO_CHANNEL_BINDING.encode()).decode()
        without_proof = f"c={binding},r={nonce}"
        said = ",".join([self._first_bare, server_first.decode(), without_proof]).encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._keyed(salted, b"Client Key")
        stored_key = hashlib.new(self._hash, client_key).digest()
        signature = self._keyed(stored_key, said)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._keyed(self._keyed(salted, b"Server Key"), said)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Whether the broker knew the password; without this anybody could play the broker."""
        attributes = _attributes(server_final)
        if "e" in attributes:
            raise AuthenticationError(f"the broker refused the user: {attributes['e']}")
        signature = _decoded(attributes.get("v", ""))
        if not hmac.compare_digest(signature, self._server_signature):
            raise AuthenticationError("the broker could not prove that it knows the password")

    def _challenge(self, attributes: dict[str, str]) -> tuple[str, bytes, int]:
        if "e" in attributes:
            raise AuthenticationError(f"the broker refused the user: {attributes['e']}")
        if "m" in attributes:
            raise AuthenticationError("the broker demands a SCRAM extension that is not known")
        nonce, salt, iterations = (attributes.get(name, "") for name in "rsi")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise AuthenticationError("the broker's answer does not carry on this client's nonce")
        count = int(iterations) if iterations.isascii() and iterations.isdigit() else 0
        if not ITERATIONS_MIN <= count <= ITERATIONS_MAX:
            raise AuthenticationError(
                f"the broker wants {iterations or 'no'} SCRAM iterations; between "
                f"{ITERATIONS_MIN} and {ITERATIONS_MAX} are accepted"
            )
        decoded = _decoded(salt)
        if not decoded:
            raise AuthenticationError("the broker sent no salt")
        return nonce, decoded, count

    def _keyed(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _escaped(username: str) -> str:
    return username.replace("=", "=3D").replace(",", "=2C")


def _attributes(message: bytes) -> dict[str, str]:
    """`r=...,s=...,i=...`; values may hold `=`, never a comma."""
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError:
        raise AuthenticationError("the broker sent a SCRAM message that is not text") from None
    found: dict[str, str] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals or len(name) != 1 or name in found:
            raise AuthenticationError("the broker sent a SCRAM message that cannot be read")
        found[name] = value
    return found


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise AuthenticationError("the broker sent a SCRAM message that cannot be read") from None
