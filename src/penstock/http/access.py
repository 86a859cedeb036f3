"""Where a service listens and whom it lets in: the settings that all services share.

Listeners are `http` or `https`; `ssl.*` has Kafka's names, with Confluent's words for client
certificates; HTTP Basic is what `authentication.*` asks for.
"""

import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.config.listeners import split_address
from penstock.errors import ConfigError
from penstock.http.basic_auth import BasicAuth, read_users
from penstock.http.server import Limits, serving
from penstock.security.tls.contexts import TlsSettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

LISTENER_FORM: Final = "http://host:port or https://host:port"
ACCESS_DEFAULTS: Final = {
    "authentication.method": "NONE",
    "authentication.realm": "",
    "authentication.roles": "*",
    "authentication.skip.paths": "",
    "authentication.users.file": "",
}
TLS_SETTINGS: Final = frozenset(
    {
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.client.authentication",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        *(
            f"ssl.keystore.{word}"
            for word in ("certificate.chain", "key", "location", "password", "type")
        ),
        *(f"ssl.truststore.{word}" for word in ("certificates", "location", "password", "type")),
    }
)


class HttpListener(NamedTuple):
    """One place to listen on."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicSettings:
    """HTTP Basic, where it is asked for."""

    users_file: Path
    realm: str
    roles: tuple[str, ...]
    open_paths: tuple[str, ...]


def read_listeners(text: str) -> tuple[HttpListener, ...]:
    """What `listeners` says; ConfigError if it cannot be understood."""
    found = []
    for entry in _words(text):
        scheme, host, port = split_address("listeners", entry, LISTENER_FORM)
        if scheme.lower() not in ("http", "https"):
            raise ConfigError(f"listeners has {entry}: write {LISTENER_FORM}")
        found.append(HttpListener(scheme.lower(), host, port))
    if not found:
        raise ConfigError(f"listeners is empty: write {LISTENER_FORM}")
    return tuple(found)


def read_tls(chosen: Mapping[str, str]) -> TlsSettings | None:
    """What `ssl.*` says; None if it says nothing."""
    given = {name: text for name, text in chosen.items() if name.startswith("ssl.") and text}
    if "ssl.client.authentication" in given:  # Confluent's name for it, with words in capitals.
        given["ssl.client.auth"] = given.pop("ssl.client.authentication").lower()
    if given.get("ssl.client.auth") in ("true", "false"):
        given["ssl.client.auth"] = "required" if given["ssl.client.auth"] == "true" else "none"
    return TlsSettings.read(given) if given else None


def read_basic(chosen: Mapping[str, str], realm: str) -> BasicSettings | None:
    """What `authentication.*` says; `realm` is its name where none is given."""
    method = chosen["authentication.method"].upper()
    if method == "NONE":
        return None
    if method != "BASIC":
        raise ConfigError(f"authentication.method={method} is neither NONE nor BASIC")
    if not chosen["authentication.users.file"]:
        raise ConfigError("authentication.users.file is missing")
    return BasicSettings(
        users_file=Path(chosen["authentication.users.file"]),
        realm=chosen["authentication.realm"] or realm,
        roles=_words(chosen["authentication.roles"]) or ("*",),
        open_paths=_words(chosen["authentication.skip.paths"]),
    )


def guard_of(basic: BasicSettings | None) -> BasicAuth | None:
    """Who watches the door; None: whoever reaches the port may use the service."""
    if basic is None:
        return None
    users = read_users(basic.users_file)
    return BasicAuth(users, realm=basic.realm, roles=basic.roles, open_paths=basic.open_paths)


def server_context(
    tls: TlsSettings | None, listeners: Sequence[HttpListener]
) -> ssl.SSLContext | None:
    """For the listeners of https, if there are any; ConfigError if they cannot be served."""
    if not any(one.scheme == "https" for one in listeners):
        return None
    return (tls or TlsSettings.read({})).server_context()


@asynccontextmanager
async def serving_all(
    app: "ASGIApp",
    listeners: Sequence[HttpListener],
    sockets: Sequence[socket],
    *,
    tls: ssl.SSLContext | None,
    limits: Limits | None = None,
) -> AsyncIterator[tuple[int, ...]]:
    """Serve on all of them for as long as it is entered; the ports, http before https."""
    ports: tuple[int, ...] = ()
    async with AsyncExitStack() as stack:
        for scheme in ("http", "https"):
            its = [s for one, s in zip(listeners, sockets, strict=True) if one.scheme == scheme]
            if its:
                context = tls if scheme == "https" else None
                server = serving(app, its, tls=context, limits=limits)
                ports += await stack.enter_async_context(server)
        yield ports


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))
