"""PLAIN by RFC 4616: one message with the user and the password, so only good inside TLS.

The server knows its users from `user_NAME="password"` in the JAAS line. Passwords are compared by
their hashes, in a time that tells neither how much was right nor whether the user exists.
"""

import hashlib
import hmac
from collections.abc import Mapping

from penstock.errors import ConfigError
from penstock.security.principals import USER, Principal
from penstock.security.sasl.jaas import parse
from penstock.security.sasl.outcome import Authenticated, SaslRefused

PLAIN = "PLAIN"
_USER_OPTION = "user_"
_PARTS = 3  # Whom to act as, the user, the password.
_WRONG = "Authentication failed: Invalid username or password"
_OTHER_IDENTITY = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class PlainUsers:
    """Who may come in with which password; holds digests alone."""

    __slots__ = ("_digests",)

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._digests = {name: _digest(password) for name, password in passwords.items()}

    @classmethod
    def from_jaas(cls, text: str) -> "PlainUsers":
        """Read the line of PlainLoginModule."""
        options = parse(text)
        users = {
            name.removeprefix(_USER_OPTION): password
            for name, password in options.items()
            if name.startswith(_USER_OPTION)
        }
        if "" in users:
            raise ConfigError("sasl.jaas.config: user_ has no name")
        return cls(users)

    def is_right(self, name: str, password: str) -> bool:
        known = self._digests.get(name)
        # An unknown user is compared with something as well.
        same = hmac.compare_digest(known or bytes(hashlib.sha256().digest_size), _digest(password))
        return same and known is not None

    def __repr__(self) -> str:
        return f"PlainUsers({len(self._digests)} users)"


class PlainServer:
    """One authentication."""

    __slots__ = ("_users",)

    def __init__(self, users: PlainUsers) -> None:
        self._users = users

    def step(self, token: bytes) -> Authenticated:
        """The one message there is."""
        identity, name, password = _parts(token)
        if not self._users.is_right(name, password):
            raise SaslRefused("wrong user or password", told=_WRONG)
        if identity not in ("", name):
            raise SaslRefused("wants to act as another", told=_OTHER_IDENTITY)
        return Authenticated(principal=Principal(USER, name))


def plain_message(username: str, password: str) -> bytes:
    """What a client sends."""
    return b"\0".join([b"", username.encode(), password.encode()])


def _parts(token: bytes) -> tuple[str, str, str]:
    try:
        parts = token.decode().split("\0", _PARTS)
    except UnicodeDecodeError:
        raise SaslRefused("a PLAIN message that is not text", told=_WRONG) from None
    if len(parts) != _PARTS:
        raise _malformed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
    identity, name, password = parts
    if not name or not password:
        missing = "password" if name else "username"
        raise _malformed(f"Authentication failed: {missing} not specified")
    return identity, name, password


def _malformed(words: str) -> SaslRefused:
    """Told as it is, as in Kafka: it says nothing of any user."""
    return SaslRefused(words, told=words)


def _digest(password: str) -> bytes:
    return hashlib.sha256(password.encode(errors="surrogatepass")).digest()
