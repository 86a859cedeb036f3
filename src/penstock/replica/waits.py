"""Futures that complete when an offset is passed; a partition has some for each of its marks."""

import asyncio
import heapq

from penstock.errors import ProtocolError


class Waits:
    """Who waits for a mark to reach an offset, the lowest offset first."""

    __slots__ = ("_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, asyncio.Future[None]]] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, offset: int) -> "asyncio.Future[None]":
        """Completes once the mark is at the offset or above."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._heap, (offset, self._count, future))
        return future

    def complete(self, mark: int) -> None:
        while self._heap and self._heap[0][0] <= mark:
            future = heapq.heappop(self._heap)[2]
            if not future.done():
                future.set_result(None)

    def fail(self, error: ProtocolError) -> None:
        waiting, self._heap = self._heap, []
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(error)
                # Read here, because nobody does for a client that hung up: asyncio would log it.
                future.exception()
