"""Threads for what takes long and touches nothing that others change.

Reading a request of a hundred thousand names, unpacking a batch, writing an answer about every
topic: done on the event loop, each of these would make all clients wait. Here they share the
processor with the loop instead. Only values go in and come out; whatever reads or changes logs,
groups or partitions stays on the loop. There are few threads, because each of them is one more
that the loop has to take Python's lock from.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

_THREADS: Final = 2


class SlowLane:
    """Open until `close`; the threads start with the first work."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "slow-lane")

    async def run(self, work: Callable[[], T]) -> T:
        """The result of the work, which is done even if the caller stops waiting."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
