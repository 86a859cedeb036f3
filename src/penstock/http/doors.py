"""A service at its doors: the listeners of http and of https, and who watches them."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from socket import socket
from typing import TYPE_CHECKING

from penstock.http.access import AccessSettings, BasicSettings, BearerSettings, HttpListener
from penstock.http.basic_auth import BasicAuth, read_users
from penstock.http.bearer_auth import BearerAuth
from penstock.http.server import Limits, serving
from penstock.http.service import Guard
from penstock.security.sasl.token_keys import BearerTokens, check_keys_url
from penstock.security.tls.contexts import TlsSettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp


@asynccontextmanager
async def guarding(access: AccessSettings | None) -> AsyncIterator[Guard | None]:
    """Who watches the door while it is entered; None: whoever reaches it may use the service."""
    match access:
        case None:
            yield None
        case BasicSettings():
            yield BasicAuth(
                read_users(access.users_file),
                realm=access.realm,
                roles=access.roles,
                open_paths=access.open_paths,
            )
        case BearerSettings():
            async with _believing(access) as guard:
                yield guard


@asynccontextmanager
async def _believing(access: BearerSettings) -> AsyncIterator[Guard]:
    check_keys_url("oauthbearer.jwks.endpoint.url", access.keys_url)
    tokens = BearerTokens(
        access.rules,
        now_ms=lambda: time.time_ns() // 1_000_000,
        url=access.keys_url,
        refresh_s=access.refresh_s,
    )
    fetching = asyncio.create_task(tokens.keep_fresh(), name="keys of bearer tokens")
    try:
        yield BearerAuth(tokens, realm=access.realm, open_paths=access.open_paths)
    finally:
        fetching.cancel()
        await asyncio.wait({fetching})


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
    with_http2: bool = False,
) -> AsyncIterator[tuple[int, ...]]:
    """Serve on all of them for as long as it is entered; the ports, http before https."""
    ports: tuple[int, ...] = ()
    async with AsyncExitStack() as stack:
        for scheme in ("http", "https"):
            its = [s for one, s in zip(listeners, sockets, strict=True) if one.scheme == scheme]
            if its:
                context = tls if scheme == "https" else None
                server = serving(
                    app,
                    its,
                    tls=context,
                    limits=limits,
                    with_sockets=with_sockets,
                    with_http2=with_http2,
                )
                ports += await stack.enter_async_context(server)
        yield ports
