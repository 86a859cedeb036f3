"""SCRAM by RFC 5802 and 7677, the client's side: three messages, no secret on the wire.

Pure: tokens in, tokens out; the nonce comes from outside. The broker is checked as well as the
user: its nonce must carry on ours, and its signature proves that it knows the password too. User
names and passwords go as they are written, in UTF-8, because Kafka stores them so.
"""

import hmac

from penstock.security.sasl.outcome import SaslRefused
from penstock.security.sasl.scram import (
    HASHES,
    ITERATIONS_MIN,
    TOKEN_EXTENSION,
    ScramKeys,
    attributes,
    base64_text,
    decode_base64,
    decode_text,
    escape_name,
    exclusive_or,
    salted_password,
)

ITERATIONS_MAX = 1_000_000  # A broker that asks for more wants to keep the client busy.
_NO_CHANNEL_BINDING = "n,,"


class ScramClient:
    """One authentication; `first`, `final` and `verify` in this order."""

    def __init__(
        self, mechanism: str, username: str, password: str, *, nonce: str, is_token: bool = False
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        extension = f",{TOKEN_EXTENSION}=true" if is_token else ""
        self._first_bare = f"n={escape_name(username)},r={nonce}{extension}"
        self._server_signature = b""

    def first(self) -> bytes:
        """Who we are."""
        return (_NO_CHANNEL_BINDING + self._first_bare).encode()

    def final(self, server_first: bytes) -> bytes:
        """The proof that we know the password, bound to both nonces."""
        text = decode_text(server_first)
        nonce, salt, iterations = self._challenge(attributes(text))
        without_proof = f"c={base64_text(_NO_CHANNEL_BINDING.encode())},r={nonce}"
        said = ",".join([self._first_bare, text, without_proof]).encode()
        hash_name = HASHES[self._mechanism]
        keys = ScramKeys.of(
            hash_name, salted_password(self._mechanism, self._password, salt, iterations)
        )
        proof = exclusive_or(keys.client_key, hmac.digest(keys.stored_key, said, hash_name))
        self._server_signature = hmac.digest(keys.server_key, said, hash_name)
        return f"{without_proof},p={base64_text(proof)}".encode()

    def verify(self, server_final: bytes) -> None:
        """Whether the broker knew the password; without this anybody could play the broker."""
        found = attributes(decode_text(server_final))
        if "e" in found:
            raise SaslRefused(f"the broker refused the user: {found['e']}")
        signature = decode_base64(found.get("v", ""))
        if not hmac.compare_digest(signature, self._server_signature):
            raise SaslRefused("the broker could not prove that it knows the password")

    def _challenge(self, found: dict[str, str]) -> tuple[str, bytes, int]:
        if "e" in found:
            raise SaslRefused(f"the broker refused the user: {found['e']}")
        if "m" in found:
            raise SaslRefused("the broker demands a SCRAM extension that is not known")
        nonce, salt, iterations = (found.get(name, "") for name in "rsi")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise SaslRefused("the broker's answer does not carry on this client's nonce")
        count = int(iterations) if iterations.isascii() and iterations.isdigit() else 0
        if not ITERATIONS_MIN <= count <= ITERATIONS_MAX:
            raise SaslRefused(
                f"the broker wants {iterations or 'no'} SCRAM iterations; between "
                f"{ITERATIONS_MIN} and {ITERATIONS_MAX} are accepted"
            )
        decoded = decode_base64(salt)
        if not decoded:
            raise SaslRefused("the broker sent no salt")
        return nonce, decoded, count
