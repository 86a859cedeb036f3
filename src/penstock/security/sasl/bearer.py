"""OAUTHBEARER by RFC 7628: the client shows a token that an issuer both sides believe gave it.

A token that is refused is answered with a piece of JSON; the client owns up with one byte, and only
then is the exchange over. Whether a token is good is for `web_tokens` to say, through `validate`.
"""

import json
import re
from collections.abc import Callable, Generator, Mapping

from penstock.security.principals import USER, Principal
from penstock.security.sasl.outcome import Authenticated, Challenge, SaslRefused
from penstock.security.sasl.scram import escape_name, unescape_name
from penstock.security.sasl.web_tokens import ReadToken, WebTokenRefused

OAUTHBEARER = "OAUTHBEARER"
_SEPARATOR = "\x01"
_OWNING_UP = b"\x01"
_INVALID = "invalid_token"
_BEARER = re.compile(r"bearer +([-_.a-zA-Z0-9]+)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")


class BearerServer:
    """One authentication."""

    __slots__ = ("_reason", "_refused", "_validate")

    def __init__(self, validate: Callable[[str], ReadToken]) -> None:
        self._validate = validate
        self._refused: str | None = None  # What the client was told when its token was refused.
        self._reason = ""  # Why it was, for the log.

    def step(self, token: bytes) -> Challenge | Authenticated:
        """The client's message, or its one byte after a refusal."""
        if self._refused is not None:
            words = f"the token was refused: {self._reason}"
            raise SaslRefused(words, told=self._refused)
        identity, bearer = _read_message(token)
        try:
            found = self._validate(bearer)
        except WebTokenRefused as refused:
            self._reason = str(refused)
            self._refused = json.dumps({"status": _INVALID}, separators=(",", ":"))
            return Challenge(token=self._refused.encode())
        if identity not in ("", found.name):
            words = (
                f"Authentication failed: Client requested an authorization id ({identity}) "
                f"that is different from the token's principal name ({found.name})"
            )
            raise SaslRefused(words, told=words)
        return Authenticated(principal=Principal(USER, found.name), expires_ms=found.expires_ms)


def bearer_message(
    token: str, *, identity: str = "", extensions: Mapping[str, str] | None = None
) -> bytes:
    """What a client sends first."""
    pairs = {"auth": f"Bearer {token}", **(extensions or {})}
    wanted = f"a={escape_name(identity)}" if identity else ""
    text = "".join(f"{name}={value}{_SEPARATOR}" for name, value in pairs.items())
    return f"n,{wanted},{_SEPARATOR}{text}{_SEPARATOR}".encode()


def bearer_tokens(
    token: str, *, extensions: Mapping[str, str] | None = None
) -> Generator[bytes, bytes, None]:
    """The client's conversation: nothing to say after a good token, one byte after a bad one."""
    answer = yield bearer_message(token, extensions=extensions)
    if answer:
        yield _OWNING_UP
        raise SaslRefused(f"the broker refused the token: {answer.decode(errors='replace')}")


def _read_message(message: bytes) -> tuple[str, str]:
    """Who the client wants to be, and its token."""
    try:
        header, _, rest = message.decode("ascii").partition(_SEPARATOR)
    except UnicodeDecodeError:
        raise SaslRefused("Invalid OAUTHBEARER client first message") from None
    flag, *wanted = header.split(",")
    if flag != "n" or len(wanted) != 2 or wanted[1] or not rest.endswith(_SEPARATOR):
        raise SaslRefused("Invalid OAUTHBEARER client first message")
    if wanted[0] and not wanted[0].startswith("a="):
        raise SaslRefused("Invalid OAUTHBEARER client first message")
    found = _BEARER.fullmatch(_pairs(rest[:-1]).get("auth", ""))
    if found is None:
        raise SaslRefused("Invalid OAUTHBEARER client first message: 'auth' not specified")
    return unescape_name(wanted[0].removeprefix("a=")), found[1]


def _pairs(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(_SEPARATOR):
        if not part:
            continue
        name, equals, value = part.partition("=")
        if not equals or name in found or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise SaslRefused("Invalid OAUTHBEARER client first message")
        found[name] = value
    return found
