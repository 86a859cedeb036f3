"""Keys with which workers sign what they ask of each other (KIP-507), and the signatures.

The leader makes a key, writes it to the config topic, and makes another one when it is old. Who can
read that topic can ask in the name of a worker; nobody else can.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.connect.herder.refusals import RequestRefused
from penstock.connect.store.config_records import LogEntry
from penstock.connect.store.json_text import encode

SIGNATURE = "X-Connect-Authorization"
ALGORITHM = "X-Connect-Request-Signature-Algorithm"
ALGORITHMS = {
    "HmacSHA1": hashlib.sha1,
    "HmacSHA256": hashlib.sha256,
    "HmacSHA384": hashlib.sha384,
    "HmacSHA512": hashlib.sha512,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """A key as the config topic has it."""

    key: bytes
    algorithm: str
    created_ms: int

    @classmethod
    def made(cls, algorithm: str, now_ms: int) -> "SessionKey":
        """A new one, as long as the algorithm can use."""
        size = ALGORITHMS[algorithm]().digest_size
        return cls(key=secrets.token_bytes(size), algorithm=algorithm, created_ms=now_ms)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "SessionKey | None":
        """What a record says; None: no key that can be used."""
        try:
            key = base64.b64decode(str(document["key"]), validate=True)
            return cls(
                key=key,
                algorithm=str(document["algorithm"]),
                created_ms=int(document["creation-timestamp"]),
            )
        except (KeyError, TypeError, ValueError, binascii.Error):
            return None

    def record(self) -> LogEntry:
        """For the config topic."""
        document = {
            "key": base64.b64encode(self.key).decode(),
            "algorithm": self.algorithm,
            "creation-timestamp": self.created_ms,
        }
        return LogEntry(b"session-key", encode(document))

    def is_old(self, now_ms: int, ttl_ms: int, algorithm: str) -> bool:
        """Whether the leader must make another one; a lifetime of 0 is for ever."""
        is_over = ttl_ms > 0 and now_ms >= self.created_ms + ttl_ms
        return is_over or self.algorithm != algorithm

    def signed(self, body: bytes, algorithm: str) -> dict[str, str]:
        """The headers of a request with this body."""
        return {SIGNATURE: base64.b64encode(self._mac(body, algorithm)).decode(),
                ALGORITHM: algorithm}  # fmt: skip

    def is_signature(self, signature: bytes, body: bytes, algorithm: str) -> bool:
        """Whether somebody with this key has signed the body."""
        return hmac.compare_digest(signature, self._mac(body, algorithm))

    def _mac(self, body: bytes, algorithm: str) -> bytes:
        return hmac.new(self.key, body, ALGORITHMS[algorithm]).digest()


def check_signature(
    key: SessionKey | None, headers: Mapping[str, str], body: bytes, allowed: tuple[str, ...]
) -> None:
    """RequestRefused, in Apache's words, if a request between workers is from somebody else."""
    signature, algorithm = headers.get(SIGNATURE), headers.get(ALGORITHM)
    if signature is None or algorithm is None:
        raise RequestRefused(400, "Internal request missing required signature")
    if algorithm not in allowed:
        raise RequestRefused(
            400,
            f"This worker does not support the '{algorithm}' key signing algorithm used by other"
            f" workers. This worker is currently configured to use: [{', '.join(allowed)}]. Check"
            " that all workers' configuration files permit the same set of signature algorithms,"
            " and correct any misconfigured worker and restart it.",
        )
    if key is None:
        raise RequestRefused(
            503,
            "This worker is still starting up and has not been able to read a session key from the"
            " config topic yet",
        )
    try:
        given = base64.b64decode(signature, validate=True)
    except (ValueError, binascii.Error) as error:
        raise RequestRefused(400, str(error)) from None
    if not key.is_signature(given, body, algorithm):
        raise RequestRefused(403, "Internal request contained invalid signature.")
