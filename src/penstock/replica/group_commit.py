"""Records on disk before they count (`flush.on.ack`), with one flush for many appends.

A partition has at most one flush under way, in a thread. Whatever is appended meanwhile waits for
the next one, which serves it all at once; so the busier a disk, the more each flush brings home.
What a flush does is storage's; what follows from it, the partition's.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.errors import KafkaStorage

if TYPE_CHECKING:
    from penstock.replica.partition import Partition


class GroupCommit:
    """Asked on the event loop; `is_on` is the setting, which may change at any time."""

    def __init__(self, is_on: Callable[[], bool] = lambda: False) -> None:
        self.is_on = is_on
        self._under_way: dict[Partition, asyncio.Task[None]] = {}

    def want(self, partition: "Partition") -> None:
        """Bring the partition's log to the disk, and tell it how far."""
        if partition not in self._under_way:
            task = asyncio.create_task(self._flush(partition), name=f"flush of {partition}")
            self._under_way[partition] = task

    async def _flush(self, partition: "Partition") -> None:
        try:
            while self.is_on() and not partition.is_on_disk:
                await asyncio.to_thread(partition.log.flush)
                partition.on_flush()
        except KafkaStorage as error:
            partition.on_flush_failed(error)
        finally:
            self._under_way.pop(partition, None)
        if not self.is_on():  # Whoever waited for the disk need not any more.
            partition.on_flush()
