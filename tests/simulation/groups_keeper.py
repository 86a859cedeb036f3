"""A client that notes its place in a group of its own, without being a member of it.

It does so mostly when a coordinator is just losing its office: what is written then by a broker
that does not know yet is never copied, and must not be acknowledged.
"""

import asyncio
from collections.abc import Callable, Sequence

from tests.simulation.clients import Client
from tests.simulation.groups import GroupLedger, committing, look
from tests.simulation.groups_line import GROUP, Line
from tests.simulation.store import Ensemble, SimStore

from penstock.cluster.topics.names import CONSUMER_OFFSETS
from penstock.errors import ErrorCode
from penstock.meta.store import Op, Result

_IDLE_S = 1.5
_COMMITS_MAX = 6
_LOOKS = 0.8  # How often it looks what became of what was acknowledged.


class Keeper:
    def __init__(self, client: Client, ledger: GroupLedger, group_id: str) -> None:
        self._client = client
        self._ledger = ledger
        self._line = Line(client, group_id, GROUP)
        self._is_wanted = asyncio.Event()

    async def run(self) -> None:
        while not self._client.is_closing:
            await self._until_wanted()
            for _ in range(self._client.rng.randint(1, _COMMITS_MAX)):
                await self._commit(self._client.rng.choice(self._ledger.partitions))

    def mind(self, ensemble: Ensemble) -> None:
        """Be wanted whenever the state of a coordinator's partition is written."""
        wake: Callable[[], None] = self._is_wanted.set

        def observe(_store: SimStore, ops: Sequence[Op], _results: Sequence[Result]) -> None:
            if any(CONSUMER_OFFSETS in op.path and op.path.endswith("/state") for op in ops):
                self._client.process.call(wake)

        ensemble.observers.append(observe)

    async def _until_wanted(self) -> None:
        self._is_wanted.clear()
        try:
            async with asyncio.timeout(self._client.rng.expovariate(1 / _IDLE_S)):
                await self._is_wanted.wait()
        except TimeoutError:
            return

    async def _commit(self, partition: int) -> None:
        commit = self._ledger.begin(partition)
        told = await committing(self._line, self._ledger, commit)
        if told.error is not ErrorCode.NONE:
            self._ledger.history.violate(
                f"OffsetCommit of {self._client.name} failed with {told.error.name}"
            )
        if self._client.rng.random() < _LOOKS:
            await look(self._line, self._ledger, partition)

    async def prove(self) -> None:
        """I27, at the end."""
        for partition in self._ledger.partitions:
            await look(self._line, self._ledger, partition)
