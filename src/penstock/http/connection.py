"""A connection of uvicorn's that ends when a request's head is too long or too slow.

uvicorn bounds neither with its fast parser: whoever sends headers without end, or one byte a
minute, would have memory and a connection of ours for as long as he likes.
"""

import re
from asyncio import TimerHandle, Transport
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)
_OFFER: Final = re.compile(rb"\r\nupgrade:[ \t]*h2c[ \t]*(?=\r\n|\Z)", re.IGNORECASE)


def without_offer(data: bytes) -> bytes:
    """A head that offers to go on with HTTP/2, without the offer, which nobody has to take.

    Java's HttpClient and curl make it. The parser would take what follows for another protocol's
    bytes, and the request would have lost its body.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    return _OFFER.sub(b"", head) + end + rest


class BoundedConnection(HttpToolsProtocol):
    """One client; the bounds are the same for all."""

    head_bytes_max: ClassVar[int] = 64 << 10
    head_timeout_s: ClassVar[float] = 10.0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_bytes = 0
        self._is_in_head = self._is_in_message = False
        self._head_timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_in_message and b"h2c" in data:
            data = without_offer(data)
        super().data_received(data)
        if not self._is_in_head:
            return
        self._head_bytes += len(data)
        if self._head_bytes > self.head_bytes_max and not self.transport.is_closing():
            self.transport.write(_TOO_LONG)
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes, self._is_in_head, self._is_in_message = 0, True, True
        if self._head_timer is None:
            self._expect_head()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._forget_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_in_message = False
        super().on_message_complete()

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()
