"""Who may use a service: HTTP Basic (RFC 7617) against a file of users.

The file is the one that Confluent's services take by way of Jetty's `PropertyFileLoginModule`: a
line `name: password,role,role` for each user, the password plain or as `MD5:` and its digest. A
service checks before it routes; what supervises a service need not know a password.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from starlette.requests import HTTPConnection

from penstock.config.properties import read_properties
from penstock.errors import ConfigError
from penstock.http.errors import OPEN_PATHS, HttpError, Unauthorized

_DIGEST = "MD5:"
ANY_ROLE = "*"


class Forbidden(HttpError):
    """The user is known and has none of the roles that may come in."""

    status = 403


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpUser:
    """One line of the file."""

    password: str = field(repr=False)
    roles: frozenset[str] = frozenset()

    def has_password(self, given: str) -> bool:
        """Whether this is the password, in a time that does not tell how much of it is right."""
        if self.password.startswith(_DIGEST):
            digest = hashlib.md5(given.encode(), usedforsecurity=False).hexdigest()
            return hmac.compare_digest(digest, self.password.removeprefix(_DIGEST).lower())
        return hmac.compare_digest(given.encode(), self.password.encode())


def read_users(path: Path) -> dict[str, HttpUser]:
    """All users of a file; ConfigError names the line that is wrong."""
    users: dict[str, HttpUser] = {}
    for name, text in read_properties(path).items():
        password, *roles = (part.strip() for part in text.split(","))
        if not password:
            raise ConfigError(f"{path} has no password for {name}: write {name}: password,role")
        users[name] = HttpUser(password=password, roles=frozenset(filter(None, roles)))
    if not users:
        raise ConfigError(f"{path} has no users: write a line such as alice: password,admin")
    return users


class BasicAuth:
    """The check of one service: raises what the client is to be answered."""

    def __init__(
        self,
        users: Mapping[str, HttpUser],
        *,
        realm: str,
        roles: Iterable[str] = (ANY_ROLE,),
        open_paths: Iterable[str] = (),
    ) -> None:
        self._users = users
        self._realm = realm
        self._roles = frozenset(roles)
        self._open = frozenset((*OPEN_PATHS, *open_paths))

    def __call__(self, request: HTTPConnection) -> None:
        """Let the request through, or raise Unauthorized or Forbidden."""
        if unquote(request.scope["path"]) in self._open:
            return
        name, password = self._credentials(request.headers.get("authorization", ""))
        user = self._users.get(name)
        # A name that nobody has costs the same time as one with another password.
        right = (user or _NOBODY).has_password(password)
        if user is None or not right:
            raise Unauthorized("Basic", self._realm)
        if ANY_ROLE not in self._roles and not self._roles & user.roles:
            raise Forbidden(f"User {name} has none of the roles that may use this service.")

    def _credentials(self, header: str) -> tuple[str, str]:
        scheme, _, word = header.partition(" ")
        if scheme.lower() != "basic":
            raise Unauthorized("Basic", self._realm)
        try:
            name, colon, password = base64.b64decode(word, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            raise Unauthorized("Basic", self._realm) from None
        if not colon:
            raise Unauthorized("Basic", self._realm)
        return name, password


_NOBODY = HttpUser(password="nobody")
