"""A service at its doors: the listeners of http and of https, and who watches them."""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from socket import socket
from typing import TYPE_CHECKING

from penstock.http.access import BasicSettings, HttpListener
from penstock.http.basic_auth import BasicAuth, read_users
from penstock.http.server import Limits, serving
from penstock.security.tls.contexts import TlsSettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp


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
    with_sockets: bool = False,
) -> AsyncIterator[tuple[int, ...]]:
    """Serve on all of them for as long as it is entered; the ports, http before https."""
    ports: tuple[int, ...] = ()
    async with AsyncExitStack() as stack:
        for scheme in ("http", "https"):
            its = [s for one, s in zip(listeners, sockets, strict=True) if one.scheme == scheme]
            if its:
                context = tls if scheme == "https" else None
                server = serving(app, its, tls=context, limits=limits, with_sockets=with_sockets)
                ports += await stack.enter_async_context(server)
        yield ports
