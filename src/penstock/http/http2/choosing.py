"""A connection of either version: TLS has agreed on one, or the first bytes tell.

In cleartext a client that knows of HTTP/2 begins with its preface; nobody is asked to upgrade.
"""

import asyncio
from typing import Any, ClassVar, Final

from uvicorn.config import Config
from uvicorn.server import ServerState

from penstock.http.connection import BoundedConnection
from penstock.http.http2.connection import Http2Connection

ALPN: Final = ("h2", "http/1.1")
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class ChosenConnection(asyncio.Protocol):
    """Hands a connection over as soon as its version is known."""

    first_bytes_timeout_s: ClassVar[float] = 10.0

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._loop = _loop or asyncio.get_running_loop()
        self._parts = {"config": config, "server_state": server_state, "app_state": app_state}
        self._connections = server_state.connections
        self._first = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's: with TLS the version is known by now."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._hand_over(is_http2=tls.selected_alpn_protocol() == "h2")
            return
        self._connections.add(self)  # type: ignore[arg-type]  # Whoever can be shut down.
        self._timer = self._loop.call_later(self.first_bytes_timeout_s, transport.close)

    def data_received(self, data: bytes) -> None:
        """asyncio's: the first bytes."""
        self._first += data
        if len(self._first) < len(_PREFACE) and _PREFACE.startswith(self._first):
            return
        self._leave()
        self._hand_over(is_http2=self._first.startswith(_PREFACE))

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's: before its version was known."""
        self._leave()

    def shutdown(self) -> None:
        """uvicorn's: the server stops."""
        self._transport.close()

    def _leave(self) -> None:
        self._connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hand_over(self, *, is_http2: bool) -> None:
        made: asyncio.Protocol
        kind: Any = Http2Connection if is_http2 else BoundedConnection
        made = kind(**self._parts, _loop=self._loop)
        self._transport.set_protocol(made)
        made.connection_made(self._transport)
        if self._first:
            made.data_received(self._first)
