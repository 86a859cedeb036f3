"""Producer ids, handed out one by one from blocks that the metadata store reserves."""

import asyncio
from collections.abc import Callable

from penstock.cluster.producer_ids import allocate_producer_ids
from penstock.errors import CoordinatorNotAvailable
from penstock.meta.store import MetaError, MetaStore


class ProducerIds:
    """Every id is given once in the life of the cluster; what a restart leaves over is skipped."""

    def __init__(self, *, store: Callable[[], MetaStore], broker_id: int) -> None:
        self._store = store
        self._broker_id = broker_id
        self._block = range(0)
        self._refill = asyncio.Lock()

    async def take(self) -> int:
        while not self._block:
            await self.prepare()
        taken, self._block = self._block[0], self._block[1:]
        return taken

    async def prepare(self) -> None:
        """Have ids at hand, so that the store may be away when a producer asks for one."""
        async with self._refill:
            if not self._block:
                self._block = await self._reserve()

    async def _reserve(self) -> range:
        try:
            return await allocate_producer_ids(self._store(), self._broker_id)
        except MetaError as error:  # It may be back in a moment, and clients come again.
            raise CoordinatorNotAvailable(f"no producer ids can be reserved: {error}") from error
