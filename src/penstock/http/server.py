"""A server for one service inside our own event loop: entered, it listens; left, it stops.

Stopping takes no new connections, lets requests that are under way end within a limit, and ends
what is left. Signals stay with the process that enters it.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import uvicorn

from penstock.errors import ConfigError
from penstock.http.connection import BoundedConnection
from penstock.http.http2.choosing import ALPN, ChosenConnection

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_BACKLOG: Final = 512
_LOOK_S: Final = 0.01
_SOCKET_MESSAGE_BYTES_MAX: Final = 64 << 10  # Of what clients say on WebSockets.


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a server grants its clients."""

    connections_max: int = 1000
    idle_s: int = 75  # Between two requests of a connection.
    stop_s: int = 10  # For what is under way when the server stops.


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; ConfigError tells of an address that cannot be had.

    Made before anything else of a service starts, so that a port in use is told at once. An empty
    host means all interfaces, port 0 any free port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # What is accepted inherits it. An answer leaves in two writes, and the kernel would keep
        # the second for 40 ms, until the client has said that the first arrived.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    listener.setblocking(False)
    return listener


@asynccontextmanager
async def serving(
    app: "ASGIApp",
    listeners: Sequence[socket.socket],
    *,
    tls: ssl.SSLContext | None = None,
    limits: Limits | None = None,
    with_sockets: bool = False,  # Whether there are routes for WebSockets.
    with_http2: bool = False,  # Beside HTTP/1.1; docs/adr/0036-http2.md
) -> AsyncIterator[tuple[int, ...]]:
    """Serve for as long as it is entered; the ports, in the order of the listeners."""
    if with_http2 and tls is not None:
        tls.set_alpn_protocols(ALPN)
    connection = ChosenConnection if with_http2 else BoundedConnection
    server = _Server(_settings(app, tls, limits or Limits(), with_sockets, connection))
    ports = tuple(listener.getsockname()[1] for listener in listeners)
    running = asyncio.create_task(server.serve(sockets=list(listeners)), name="http server")
    try:
        while not (server.started or running.done()):
            await asyncio.sleep(_LOOK_S)
        yield ports
    finally:
        server.should_exit = True
        await running  # It raises what ended the server, should that have been something else.


class _Server(uvicorn.Server):
    """uvicorn's, without its own handling of signals."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def _settings(
    app: "ASGIApp",
    tls: ssl.SSLContext | None,
    limits: Limits,
    with_sockets: bool,
    connection: type[asyncio.Protocol],
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="none",
        http=connection,
        ws="websockets-sansio" if with_sockets else "none",  # docs/adr/0028-rest.md
        ws_max_size=_SOCKET_MESSAGE_BYTES_MAX,
        lifespan="off",  # A product enters what it needs around `serving`.
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.connections_max,
        timeout_keep_alive=limits.idle_s,
        timeout_graceful_shutdown=limits.stop_s,
        ssl_context_factory=None if tls is None else lambda _, __: tls,
    )
