"""`sasl.jaas.config`: the line in which Java clients keep a user and a password.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="al" password="x";

The class and the flag say nothing that sasl.mechanism does not say; the options are what counts.
"""

import re
from dataclasses import dataclass, field

from penstock.errors import ConfigError

_OPTION = re.compile(
    r"""\s* (?P<name>[\w.@-]+) \s* = \s*
        (?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>(?:[^'\\]|\\.)*)' | (?P<bare>[^\s;"']+) )
        \s*""",
    re.VERBOSE | re.DOTALL,
)
_LEAD = re.compile(
    r"\s*(?:[\w.$]+LoginModule\s+)?(?:(?:required|requisite|sufficient|optional)\s+)?",
    re.IGNORECASE,
)
_KEY = "sasl.jaas.config"
_WANTED = f'{_KEY} must hold username="..." and password="..."'


@dataclass(frozen=True, slots=True, kw_only=True)
class JaasLogin:
    """Who to be, and how to prove it. The password is never printed."""

    username: str
    password: str = field(repr=False)
    is_token: bool  # `tokenauth`: the name is a delegation token's id, the password its HMAC.


def login_of(text: str) -> JaasLogin:
    """What authenticates; ConfigError, without the text itself, if it is not there."""
    options = parse(text)
    if "username" not in options or "password" not in options:
        raise ConfigError(_WANTED)
    return JaasLogin(
        username=options["username"],
        password=options["password"],
        is_token=options.get("tokenauth", "false").lower() == "true",
    )


def user_and_password(text: str) -> tuple[str, str]:
    """The same for whoever cannot come by a delegation token."""
    login = login_of(text)
    if login.is_token:
        raise ConfigError(f"{_KEY}: delegation tokens (tokenauth) are not served here")
    return login.username, login.password


def parse(text: str) -> dict[str, str]:
    """The options of the one login module that a client may have."""
    options: dict[str, str] = {}
    lead = _LEAD.match(text)
    at = lead.end() if lead else 0
    while match := _OPTION.match(text, at):
        options[match["name"]] = _plain(match)
        at = match.end()
    if text[at:].strip() not in ("", ";"):
        raise ConfigError(f"{_WANTED}; it cannot be read from character {at} on")
    return options


def _plain(match: re.Match[str]) -> str:
    quoted = match["double"] if match["double"] is not None else match["single"]
    if quoted is None:
        return match["bare"]
    return re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
