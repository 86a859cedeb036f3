"""A transport that is not a plain socket, and balks at everything.

It shows that a connection needs nothing of the socket but what net/transport.py says.
"""

import os
import socket
from collections import deque
from typing import Any

from tests.support.waiting import can_be_read


class Balky:
    """Takes in everything at once, hands out a little, and wants the opposite now and then."""

    empties_at_once = False
    is_ready = True

    def __init__(
        self, sock: socket.socket, _peer: object, *, most: int = 7, must_hear: bool = True
    ) -> None:
        self._sock = sock
        self._most = most  # Bytes handed out at a time.
        self._inside = bytearray()
        self._receives = 0
        self._must_hear = must_hear  # Nothing is sent before the peer has said something more.
        self.wants_read = False
        self.wants_write = False

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def has_pending(self) -> bool:
        return self.wants_write or bool(self._inside)

    def receive_into(self, buffer: Any, /) -> int:
        self._receives += 1
        self.wants_write = self._receives % 3 == 0
        if self.wants_write:
            raise BlockingIOError
        if not self._inside:
            self._inside += self._sock.recv(1 << 16)
        with memoryview(buffer) as target:
            count = min(len(target), self._most, len(self._inside))
            target[:count] = self._inside[:count]
        del self._inside[:count]
        return count

    def send(self, data: bytes, /) -> int:
        return self.send_parts(deque([data]), 0)

    def send_parts(self, parts: "deque[Any]", skip: int) -> int:
        if self._must_hear:
            self.wants_read = not can_be_read(self._sock, 0)
            if self.wants_read:
                raise BlockingIOError
            self._must_hear = False
        return self._sock.send(memoryview(parts[0])[skip:][:5])

    def send_file(self, part: Any, skip: int, count: int) -> int:
        return os.sendfile(self.fileno(), part.fileno(), part.position + skip, min(count, 1000))

    def close(self) -> None:
        self._sock.close()
