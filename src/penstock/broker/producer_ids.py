"""Producer ids, handed out one by one from blocks that the metadata store reserves."""

import asyncio

from penstock.cluster.producer_ids import allocate_producer_ids
from penstock.meta.store import MetaStore


class ProducerIds:
    """Every id is given once in the life of the cluster; what a restart leaves over is skipped."""

    def __init__(self, *, store: MetaStore, broker_id: int) -> None:
        self._store = store
        self._broker_id = broker_id
        self._block = range(0)
        self._refill = asyncio.Lock()

    async def take(self) -> int:
        while not self._block:
            async with self._refill:
                if not self._block:
                    self._block = await allocate_producer_ids(self._store, self._broker_id)
        taken, self._block = self._block[0], self._block[1:]
        return taken
