"""Producers that begin their next transaction at once, as busy applications do.

Each is alone with its transactional id and its group, and gives the coordinator a minute: there is
nobody to fence it off and no clock to end its transactions. So no error but one that passes is an
answer that Apache Kafka would give it (I35), and what it was told is what became of its offsets.
"""

import asyncio
from collections.abc import Sequence

from tests.simulation.clients import Client
from tests.simulation.groups_line import GROUP, Line
from tests.simulation.history import Place
from tests.simulation.transactions import Fenced, Life
from tests.simulation.transactions_ledger import COMMITTED, Deal, Ledger
from tests.simulation.transactions_worker import commit_offset, committed_offset

from penstock.errors import ErrorCode

_BURST_MAX = 6  # Transactions without a pause.


class Restless(Life):
    """Writes to several partitions at once and commits an offset, over and over."""

    timeout_ms = 60_000

    def __init__(
        self,
        client: Client,
        ledger: Ledger,
        *,
        is_v2: bool,
        places: Sequence[Place],
        source: Place,
    ) -> None:
        super().__init__(client, ledger, client.name, 1, is_v2=is_v2)
        self._places = places
        self._source = source
        self._group = Line(client, f"group-of-{client.name}", GROUP)
        self._committed = -1  # The offset of the last transaction that committed one.
        self._is_sure = True  # False: a clock went wrong, and ended a transaction early.
        self.is_over = False

    async def run(self) -> None:
        try:
            while not self.client.is_closing:
                await self._live()
        finally:
            self.is_over = True

    async def _live(self) -> None:
        try:
            await self.take_over(is_new=True)
            while not self.client.is_closing:
                await self.client.nap(0.8)
                for _ in range(self.client.rng.randint(1, _BURST_MAX)):
                    if not self.client.is_closing:
                        await self.turn()
        except Fenced:
            await self.client.nap(1.0)

    async def turn(self) -> None:
        deal = await self.transact()
        if deal.told == COMMITTED and deal.next_input >= 0:
            self._committed = deal.next_input

    async def work(self, deal: Deal) -> bool:
        rng = self.client.rng
        chosen = rng.sample(self._places, rng.randint(1, len(self._places)))
        steps = [self.write(deal, place, [f"{deal.name}/{place[1]}".encode()]) for place in chosen]
        if rng.random() < 0.6:
            deal.next_input = len(self.ledger.deals)
            steps.append(commit_offset(self, self._group, self._source, deal.next_input))
        await asyncio.gather(*steps)
        return rng.random() < 0.85

    def fail(self, error: ErrorCode, what: str) -> None:
        if self.client.history.trace.counts["skew"]:
            self._is_sure = False
        else:
            self.client.history.violate(
                f"I35 {what} of {self.name}, producer {self.producer_id} epoch "
                f"{self.producer_epoch}, failed with {error.name} although nobody else has its id"
            )
        raise Fenced

    async def prove(self) -> None:
        """Its group's offset is that of the last transaction that committed one."""
        found = await committed_offset(self._group, self._source)
        if self._is_sure and found != self._committed:
            self.client.history.violate(
                f"I27 {self.name} committed {self._committed}, and {found} is what counts"
            )
