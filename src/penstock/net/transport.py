"""What a connection sends its bytes through: the plain socket, or something that encrypts them.

Frames, turns and limits are the business of net/connection.py and net/outgoing.py, which are the
same for every transport. A transport never blocks. When it can do nothing now it raises
BlockingIOError, and says what has to happen first: usually a reader waits for bytes and a writer
for room, but what encrypts may have to write before it can read, and the other way round.
"""

import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

_IOV_MAX: Final = 512
# A piece of a file this small is read and sent with the bytes around it: that is two calls of the
# system instead of three, and small packets need not be put together.
_READ_BYTES_MAX: Final = 8 * 1024
# So much of such pieces is read for one call: what the socket does not take is read again.
_READ_AHEAD_BYTES_MAX: Final = 128 * 1024


class FilePart(Protocol):
    """A piece of a file that is sent without passing through memory."""

    @property
    def position(self) -> int: ...

    def __len__(self) -> int: ...

    def fileno(self) -> int: ...


class PeerRefused(OSError):
    """The transport cannot agree with its peer; the message is the one log line.

    The peer may have been told why, and should hear it before the connection ends.
    """


Parts: TypeAlias = list[Any]  # bytes-like objects and FileParts, in the order to be sent


class Transport(Protocol):
    """Bytes to and from one peer."""

    # Whether a read that got less than it asked for found everything there is. What decrypts
    # hands out a record at a time, and its connection has to ask until it gets BlockingIOError.
    empties_at_once: bool

    @property
    def is_ready(self) -> bool:
        """Whether both sides have agreed on how they talk, and frames can come."""
        ...

    @property
    def wants_read(self) -> bool:
        """Whether the last send raised BlockingIOError because bytes of the peer must come."""
        ...

    @property
    def wants_write(self) -> bool:
        """Whether the last receive raised BlockingIOError because there was no room to send."""
        ...

    @property
    def has_pending(self) -> bool:
        """Whether a receive would get further although the socket has nothing new."""
        ...

    def fileno(self) -> int: ...

    def receive_into(self, buffer: Any, /) -> int:
        """Fill a buffer as far as there are bytes; 0: the peer has closed."""
        ...

    def send(self, data: bytes, /) -> int:
        """Send bytes; how many were taken. The rest is offered again with `send_parts`."""
        ...

    def send_parts(self, parts: "deque[Any]", skip: int) -> int:
        """Send the run of bytes at the head, without the first `skip`; how many were taken.

        That may be fewer, or more where files behind them, or the beginning of one, went along.
        """
        ...

    def send_file(self, part: FilePart, skip: int, count: int) -> int:
        """Send up to `count` bytes of a file from `skip` on; 0: the file has ended."""
        ...

    def close(self) -> None: ...


class PlainTransport:
    """The socket itself: what is received is copied once, and files not at all."""

    __slots__ = ("_fd", "_sock", "receive_into", "send")

    empties_at_once = True
    is_ready = True
    wants_read = False
    wants_write = False
    has_pending = False

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._fd = sock.fileno()
        # No call of ours in between.
        self.receive_into: Callable[[Any], int] = sock.recv_into
        self.send: Callable[[bytes], int] = sock.send

    def fileno(self) -> int:
        return self._fd

    def send_parts(self, parts: "deque[Any]", skip: int) -> int:
        chunks: list[Any] = []
        read = 0
        for part in parts:
            if len(chunks) == _IOV_MAX:
                break
            if not isinstance(part, (bytes, bytearray, memoryview)):
                size = len(part)
                read += size
                if size > _READ_BYTES_MAX or read > _READ_AHEAD_BYTES_MAX:
                    break
                part = _read(part)
            chunks.append(part)
        # More follows when a file part ends the run: let the kernel fill its packets.
        flags = socket.MSG_MORE if len(chunks) < len(parts) else 0
        if skip:
            chunks[0] = memoryview(chunks[0])[skip:]
        if len(chunks) == 1:
            return self._sock.send(chunks[0], flags)
        return self._sock.sendmsg(chunks, (), flags)

    def send_file(self, part: FilePart, skip: int, count: int) -> int:
        return os.sendfile(self._fd, part.fileno(), part.position + skip, count)

    def close(self) -> None:
        self._sock.close()


def _read(part: FilePart) -> bytes:
    size = len(part)
    data = os.pread(part.fileno(), size, part.position)
    if len(data) < size:
        # The size was promised already; a shorter file would desynchronise the peer.
        raise OSError(f"the log file ended {size - len(data)} bytes early")
    return data
