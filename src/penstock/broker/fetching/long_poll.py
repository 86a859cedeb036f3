"""How a task waits for partitions to grow by as much as a reader wants.

Only who reads very many partitions has a task; others wait as broker/waiting.py lets them.
"""

import asyncio


class LongPoll:
    """Counts growth until there is as much as the reader wants."""

    __slots__ = ("future", "missing")

    def __init__(self, missing: int, loop: asyncio.AbstractEventLoop) -> None:
        self.missing = missing
        self.future: asyncio.Future[None] = loop.create_future()

    def grown(self, size_bytes: int) -> None:
        self.missing -= size_bytes
        if self.missing <= 0:
            self.stop()

    def need(self, missing: int) -> None:
        """No more than so much is missing."""
        self.missing = min(self.missing, missing)

    def stop(self) -> None:
        if not self.future.done():
            self.future.set_result(None)
