"""One request of an HTTP/2 connection, as an ASGI application sees it.

A body is acknowledged as the application takes it, so a client sends no more than the windows
hold. An answer waits for the client's windows, so a client that does not read holds up whoever
makes the answer, and nothing piles up here.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

    from penstock.http.http2.connection import Http2Connection

log = logging.getLogger("penstock.http")

# What belongs to a connection of HTTP/1.1 must not be said here (RFC 9113, 8.2.2).
_OF_CONNECTION: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
_WITHOUT_BODY: Final = frozenset({204, 304})


class Http2Request:
    """A request with its answer."""

    def __init__(
        self, connection: "Http2Connection", stream_id: int, scope: dict[str, Any]
    ) -> None:
        self._connection = connection
        self._h2 = connection.h2
        self._id = stream_id
        self._scope = scope
        self._body = bytearray()
        self._unacknowledged = 0
        self._has_ended = False  # The body is all here.
        self._is_taken = False  # And the application knows that.
        self._is_gone = False  # The client wants no answer any more.
        self._is_begun = False
        self._is_answered = False
        self._has_no_body = False
        self._changed = asyncio.Event()  # More of the body is here, or the client has gone.
        self._may_send = asyncio.Event()

    async def run(self, app: "ASGIApp") -> None:
        """Answer it; whatever goes wrong ends this request alone."""
        try:
            await app(self._scope, self._receive, self._send)
            if not self._is_answered:
                self._reset(ErrorCodes.INTERNAL_ERROR)
        except Exception:
            log.exception("A request failed")
            await self._apologise()
        except BaseException:
            self._reset(ErrorCodes.CANCEL)
            raise
        finally:
            self._acknowledge()
            self._connection.forget(self._id)

    def take(self, data: bytes, flow_controlled_bytes: int) -> None:
        """A piece of the body."""
        self._body += data
        self._unacknowledged += flow_controlled_bytes
        self._changed.set()

    def end_body(self) -> None:
        """There is no more of it."""
        self._has_ended = True
        self._changed.set()

    def leave(self) -> None:
        """The client has gone."""
        self._is_gone = True
        self._changed.set()
        self._may_send.set()

    def wake(self) -> None:
        """There may be room for more of the answer."""
        self._may_send.set()

    async def _receive(self) -> "Message":
        while not (self._is_gone or self._is_answered):
            if self._body or (self._has_ended and not self._is_taken):
                body = bytes(self._body)
                self._body.clear()
                self._acknowledge()
                self._is_taken = self._has_ended
                return {"type": "http.request", "body": body, "more_body": not self._has_ended}
            self._changed.clear()
            await self._changed.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: "Message") -> None:
        if self._is_gone:
            return
        try:
            if message["type"] == "http.response.start":
                self._begin(message)
            elif message["type"] == "http.response.body":
                body = b"" if self._has_no_body else message.get("body", b"")
                await self._send_body(body)
                if not message.get("more_body", False):
                    self._finish()
        except ProtocolError:
            self.leave()  # The client took the request back while it was answered.

    def _begin(self, message: "Message") -> None:
        status: int = message["status"]
        headers = [
            (name.lower(), value)
            for name, value in message.get("headers", ())
            if name.lower() not in _OF_CONNECTION
        ]
        self._is_begun = True
        self._has_no_body = self._scope["method"] == "HEAD" or status in _WITHOUT_BODY
        self._h2.send_headers(self._id, [(b":status", str(status).encode()), *headers])
        self._connection.flush()

    async def _send_body(self, body: bytes) -> None:
        left = memoryview(body)
        while left and not self._is_gone:
            room = self._room()
            if room <= 0:
                self._may_send.clear()
                await self._may_send.wait()
                continue
            self._h2.send_data(self._id, bytes(left[:room]))
            self._connection.flush()
            left = left[room:]

    def _room(self) -> int:
        if self._connection.is_write_paused:
            return 0
        return min(self._h2.local_flow_control_window(self._id), self._h2.max_outbound_frame_size)

    def _finish(self) -> None:
        if self._is_gone:
            return
        self._h2.end_stream(self._id)
        self._is_answered = True
        if not self._has_ended:
            self._connection.end_later(self._id)
        self._connection.flush()
        self._changed.set()

    async def _apologise(self) -> None:
        if self._is_begun or self._is_gone:
            self._reset(ErrorCodes.INTERNAL_ERROR)
            return
        kind = [(b"content-type", b"text/plain; charset=utf-8")]
        await self._send({"type": "http.response.start", "status": 500, "headers": kind})
        await self._send({"type": "http.response.body", "body": b"Internal Server Error"})

    def _reset(self, code: ErrorCodes) -> None:
        """End the stream without an answer, or in the midst of one."""
        if self._is_gone or self._is_answered:
            return
        self.leave()
        try:
            self._h2.reset_stream(self._id, code)
        except ProtocolError:
            return  # It has ended meanwhile.
        self._connection.flush()

    def _acknowledge(self) -> None:
        """Let the client send as much again as was taken."""
        count, self._unacknowledged = self._unacknowledged, 0
        if count == 0:
            return
        try:
            self._h2.acknowledge_received_data(count, self._id)
        except ProtocolError:
            return  # The connection has ended.
        self._connection.flush()
