"""TLS as a transport: an `ssl.SSLSocket` on the descriptor of the connection.

Python's ssl speaks of wanting to read or to write with errors of its own, hands out one record at
a time and must be offered the same bytes again after it balked. All of that ends here; whose
certificate a peer showed is for the one who made the transport to look at.
"""

import os
import socket
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NoReturn

from penstock.net.transport import FilePart, PeerRefused

# OpenSSL takes one record of 16 KB per call; four of them are gathered, and read from a file, at
# once. More did not make it faster.
_CHUNK_BYTES: Final = 64 * 1024
_LEFT_OVER_READS_MAX: Final = 4
_HANDSHAKE_RECORD: Final = 0x16  # What the first byte of whoever speaks TLS is.


class TlsFailed(PeerRefused):
    """TLS cannot go on with this peer."""


class TlsTransport:
    """The handshake is part of the first receive or send, and never waits."""

    __slots__ = (
        "_buffer",
        "_held",
        "_is_first",
        "_on_shaken",
        "_sock",
        "is_ready",
        "wants_read",
        "wants_write",
    )

    empties_at_once = False

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        *,
        server_hostname: str | None = None,  # None: we are the server.
        on_shaken: Callable[[ssl.SSLSocket], None] = lambda _sock: None,
    ) -> None:
        self._is_first = server_hostname is None  # Whether the peer has yet to say a first byte.
        self._sock = context.wrap_socket(
            sock,
            server_side=self._is_first,
            server_hostname=server_hostname,
            do_handshake_on_connect=False,
            suppress_ragged_eofs=True,
        )
        self._on_shaken = on_shaken
        self.is_ready = False
        self.wants_read = False
        self.wants_write = False
        self._held: memoryview | None = None  # Offered before, and to be offered again.
        self._buffer: bytearray | None = None  # For bytes of files; made when the first is sent.

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def has_pending(self) -> bool:
        return self.wants_write or self._sock.pending() > 0

    def receive_into(self, buffer: Any, /) -> int:
        self.wants_write = False
        try:
            if not self.is_ready and not self._shake():
                return 0
            return self._sock.recv_into(buffer)
        except ssl.SSLWantReadError:
            raise BlockingIOError from None
        except ssl.SSLWantWriteError:
            self.wants_write = True
            raise BlockingIOError from None
        except ssl.SSLError as error:
            self._fail(error)

    def send(self, data: bytes, /) -> int:
        if self._held is None:
            self._held = memoryview(data)[:_CHUNK_BYTES]
        return self._send_held()

    def send_parts(self, parts: "deque[Any]", skip: int) -> int:
        if self._held is None:
            self._held = self._gathered(parts, skip)
        return self._send_held()

    def send_file(self, part: FilePart, skip: int, count: int) -> int:
        if self._held is None:
            self._held = self._read_file(part, skip, min(count, _CHUNK_BYTES))
        return self._send_held()

    def close(self) -> None:
        with suppress(OSError, ValueError):
            if self.is_ready:
                self._sock.unwrap()  # Says goodbye, and does not wait for the other's.
            else:
                self._leave_nothing_unread()
        self._sock.close()

    def _leave_nothing_unread(self) -> None:
        """Or the system would tell the peer of a broken connection instead of the alert."""
        for _ in range(_LEFT_OVER_READS_MAX):
            if not socket.socket.recv(self._sock, _CHUNK_BYTES):
                return

    # Handshake

    def _shake(self) -> bool:
        """Go on with the handshake; False: the peer left without a word."""
        if self._is_first and not self._is_tls():
            return False
        self._sock.do_handshake()
        self._on_shaken(self._sock)
        self.is_ready = True
        return True

    def _is_tls(self) -> bool:
        first = socket.socket.recv(self._sock, 1, socket.MSG_PEEK)  # Of the bytes as they came.
        if not first:
            return False
        if first[0] != _HANDSHAKE_RECORD:
            raise TlsFailed("it does not speak TLS, as this listener does: a plaintext client?")
        self._is_first = False
        return True

    def _fail(self, error: ssl.SSLError) -> NoReturn:
        words = getattr(error, "verify_message", None) or error.reason or str(error)
        what = "TLS failed" if self.is_ready else "SSL handshake failed"
        raise TlsFailed(f"{what}: {words.lower().replace('_', ' ')}") from None

    # Sending

    def _send_held(self) -> int:
        self.wants_read = False
        held = self._held
        if not held:
            self._held = None
            return 0
        try:
            if not self.is_ready and not self._shake():
                raise TlsFailed("the peer left before the handshake")
            sent = self._sock.send(held)
        except ssl.SSLWantWriteError:
            raise BlockingIOError from None
        except ssl.SSLWantReadError:
            self.wants_read = True
            raise BlockingIOError from None
        except ssl.SSLError as error:
            self._fail(error)
        self._held = held[sent:] if sent < len(held) else None
        return sent

    def _gathered(self, parts: "deque[Any]", skip: int) -> memoryview:
        """The bytes at the head, together with the beginning of a file behind them."""
        chunks: list[Any] = []
        size = 0
        for part in parts:
            if not isinstance(part, (bytes, bytearray, memoryview)):
                return self._with_file(chunks, size, part)
            chunk = memoryview(part)[skip : skip + _CHUNK_BYTES - size]
            skip = 0
            chunks.append(chunk)
            size += len(chunk)
            if size == _CHUNK_BYTES:
                break
        return chunks[0] if len(chunks) == 1 else memoryview(b"".join(chunks))

    def _with_file(self, chunks: list[Any], size: int, part: FilePart) -> memoryview:
        room = min(_CHUNK_BYTES - size, len(part))
        return memoryview(b"".join([*chunks, os.pread(part.fileno(), room, part.position)]))

    def _read_file(self, part: FilePart, skip: int, count: int) -> memoryview:
        # Not by mmap: of a file that was cut short meanwhile it would end the process.
        if self._buffer is None:
            self._buffer = bytearray(_CHUNK_BYTES)
        target = memoryview(self._buffer)[:count]
        return target[: os.preadv(part.fileno(), [target], part.position + skip)]
