"""Rows from the thread that makes them to the request that sends them, within bounds.

Whoever makes rows waits while many are on their way. A client that takes none of them for long is
cut off, and its request says so.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final, Generic, TypeVar

T = TypeVar("T")

WAITING_MAX: Final = 10_000
SLOW: Final = "The client takes its rows too slowly; it was cut off."


class PipeClosed(Exception):
    """Nobody wants rows any more."""


class RowPipe(Generic[T]):
    """One way, from one thread to one event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        slow_s: float,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self._loop = loop
        self._slow_s = slow_s
        self._waiting_max = waiting_max
        self._waiting: deque[T] = deque()
        self._room = threading.Condition()
        self._news = asyncio.Event()
        self.is_closed = False
        self.failure: str | None = None  # Why it ended, where that was not its end.

    def put(self, rows: Sequence[T]) -> None:
        """Hand rows over; waits for room. PipeClosed: nobody wants them."""
        with self._room:
            deadline_s = time.monotonic() + self._slow_s
            while len(self._waiting) >= self._waiting_max and not self.is_closed:
                if not self._room.wait(max(0.0, deadline_s - time.monotonic())):
                    self.end(SLOW)
            if self.is_closed:
                raise PipeClosed
            self._waiting.extend(rows)
        self._tell()

    def end(self, failure: str | None = None) -> None:
        """Nothing more comes; from any thread."""
        with self._room:
            if self.is_closed:
                return
            self.is_closed, self.failure = True, failure
            if failure == SLOW:
                self._waiting.clear()
            self._room.notify_all()
        self._tell()

    async def take(self) -> list[T] | None:
        """What waits, all of it; None: the end."""
        while True:
            with self._room:
                rows = list(self._waiting)
                self._waiting.clear()
                self._room.notify_all()
                self._news.clear()
                if rows:
                    return rows
                if self.is_closed:
                    return None
            await self._news.wait()

    def _tell(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)
