"""Who is told that bytes have come: all connections of a listener, in one callback of the loop.

asyncio makes a handle of every ready socket and runs each on its own, which costs as much as a
third of a small request's way through `net`. The sockets of a listener have an epoll of their own
instead; to the event loop it is one descriptor that is ready when any of them is. One turn serves
everybody who is ready at its beginning, up to a bound, as a turn of the loop does. Where the system
has no epoll, the loop is asked for each socket.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Final

TURN_MAX: Final = 1024  # Connections served before the rest of the broker gets its turn.
HAS_EPOLL: Final = hasattr(select, "epoll")


class Readers:
    """Callbacks by the descriptor whose bytes they wait for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, uses_epoll: bool = HAS_EPOLL) -> None:
        self.now_s = loop.time()  # When the present turn began, by the loop's clock.
        self._loop = loop
        self._uses_epoll = uses_epoll
        self._epoll: select.epoll | None = None  # None: nobody has come yet.
        self._callbacks: dict[int, Callable[[], None]] = {}

    def add(self, fd: int, callback: Callable[[], None]) -> None:
        """Call this whenever bytes wait in a socket, or its peer is gone."""
        self._callbacks[fd] = callback
        if self._uses_epoll:
            (self._epoll or self._open()).register(fd, select.EPOLLIN)
        else:
            self._loop.add_reader(fd, self._serve, fd)

    def remove(self, fd: int) -> None:
        """Call it no more, also where its bytes were already noticed in this turn."""
        del self._callbacks[fd]
        if self._epoll is not None:
            self._epoll.unregister(fd)
        else:
            self._loop.remove_reader(fd)

    def close(self) -> None:
        """Nobody waits any more."""
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None

    def note_time(self) -> None:
        """Look at the clock: somebody is served outside of a turn."""
        self.now_s = self._loop.time()

    def _open(self) -> select.epoll:
        epoll = self._epoll = select.epoll()
        self._loop.add_reader(epoll.fileno(), self._serve_ready)
        return epoll

    def _serve_ready(self) -> None:
        assert self._epoll is not None
        self.note_time()
        callback_of = self._callbacks.get
        for fd, _ in self._epoll.poll(0, TURN_MAX):
            callback = callback_of(fd)
            if callback is not None:  # Not one that somebody before it in this turn has closed.
                callback()

    def _serve(self, fd: int) -> None:
        self.note_time()
        callback = self._callbacks.get(fd)
        if callback is not None:
            callback()
