"""What both sides of SCRAM share (RFC 5802, 7677): keys from a password, and the text of messages.

A server keeps no password but a credential: enough to check a proof and to give one of its own,
not enough to log in. Its text is the one Kafka keeps in `/config/users`.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Self

from penstock.errors import ConfigError, UnacceptableCredential
from penstock.security.sasl.outcome import SaslRefused

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MIN = 4_096
ITERATIONS_STORED_MAX = 16_384  # More would cost brokers' clients seconds at every connect.
TOKEN_EXTENSION = "tokenauth"
_FIELDS = ("salt", "stored_key", "server_key", "iterations")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramKeys:
    """What a salted password turns into."""

    client_key: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of(cls, hash_name: str, salted_password: bytes) -> Self:
        client_key = hmac.digest(salted_password, b"Client Key", hash_name)
        return cls(
            client_key=client_key,
            stored_key=hashlib.new(hash_name, client_key).digest(),
            server_key=hmac.digest(salted_password, b"Server Key", hash_name),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """What a broker knows of a user under one mechanism."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    @classmethod
    def from_salted(
        cls, mechanism: str, salted_password: bytes, *, salt: bytes, iterations: int
    ) -> Self:
        """From what AlterUserScramCredentials carries; the password stays with the tool."""
        check_iterations(mechanism, iterations)
        if not salted_password:  # Anybody could work out what it proves.
            raise UnacceptableCredential("The salted password must not be empty")
        keys = ScramKeys.of(HASHES[mechanism], salted_password)
        return cls(
            salt=salt,
            stored_key=keys.stored_key,
            server_key=keys.server_key,
            iterations=iterations,
        )

    @classmethod
    def from_password(
        cls, mechanism: str, password: str, *, salt: bytes, iterations: int = ITERATIONS_MIN
    ) -> Self:
        """Costs milliseconds: for tools and tokens, not for a broker at each connect."""
        salted = salted_password(mechanism, password, salt, iterations)
        return cls.from_salted(mechanism, salted, salt=salt, iterations=iterations)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read Kafka's form; ConfigError, without the text itself, when it is another."""
        fields = dict(part.partition("=")[::2] for part in text.split(","))
        if set(fields) != set(_FIELDS) or text.count(",") != len(_FIELDS) - 1:
            raise ConfigError(f"a SCRAM credential must hold {', '.join(_FIELDS)}")
        try:
            salt, stored, server = (
                base64.b64decode(fields[name], validate=True) for name in _FIELDS[:3]
            )
            iterations = int(fields["iterations"])
        except ValueError:  # binascii.Error is one.
            raise ConfigError("a SCRAM credential has a field that cannot be read") from None
        return cls(salt=salt, stored_key=stored, server_key=server, iterations=iterations)

    def text(self) -> str:
        """Kafka's form, in its order."""
        values = [base64_text(one) for one in (self.salt, self.stored_key, self.server_key)]
        return ",".join(
            f"{name}={value}"
            for name, value in zip(_FIELDS, [*values, str(self.iterations)], strict=True)
        )


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """The slow part, which makes guessing slow. The password is taken as it is written."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def check_iterations(mechanism: str, iterations: int) -> None:
    """UnacceptableCredential outside of what Kafka stores."""
    if iterations < ITERATIONS_MIN:
        raise UnacceptableCredential("Too few iterations")
    if iterations > ITERATIONS_STORED_MAX:
        raise UnacceptableCredential("Too many iterations")


def exclusive_or(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):  # ValueError: characters beyond ASCII.
        raise SaslRefused("a SCRAM message cannot be read") from None


def attributes(message: str) -> dict[str, str]:
    """`r=...,s=...,i=...`; values may hold `=`, never a comma."""
    found: dict[str, str] = {}
    for part in message.split(","):
        name, equals, value = part.partition("=")
        if not equals or not name.isascii() or not name.isalpha() or name in found:
            raise SaslRefused("a SCRAM message cannot be read")
        found[name] = value
    return found


def decode_text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SaslRefused("a SCRAM message is not text") from None


def escape_name(username: str) -> str:
    return username.replace("=", "=3D").replace(",", "=2C")


def unescape_name(name: str) -> str:
    """SaslRefused for an `=` that begins neither of the two escapes."""
    text = name.replace("=2C", ",")
    if "=" in text.replace("=3D", ""):
        raise SaslRefused("a user name with a stray `=`")
    return text.replace("=3D", "=")
