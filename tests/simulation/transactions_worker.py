"""Exactly once: read, write an answer, commit the offset, all in one transaction.

The group has no members: whoever owns the transactional id owns the work. A life begins where the
last committed transaction ended, so each record of the input is answered once, whatever happens.
"""

from collections.abc import Sequence
from typing import Any

from tests.simulation.clients import Client
from tests.simulation.groups_line import GROUP, Line
from tests.simulation.history import Place
from tests.simulation.transactions import Life
from tests.simulation.transactions_ledger import COMMITTED, Deal, Ledger
from tests.simulation.transactions_reader import CommittedReader

from penstock.protocol.apis import Response
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from penstock.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

GROUP_ID = "workers"
_RECORDS_MAX = 3


class Input(CommittedReader):
    """What is to be worked on, kept until it is taken."""

    def __init__(self, client: Client, place: Place) -> None:
        super().__init__(client, place)
        self.waiting: list[int] = []  # Offsets.

    def got(self, offset: int, value: bytes) -> None:
        self.waiting.append(offset)


class Worker(Life):
    """A life of the worker."""

    def __init__(
        self,
        client: Client,
        ledger: Ledger,
        transactional_id: str,
        number: int,
        *,
        is_v2: bool,
        source: Place,
        targets: Sequence[Place],
    ) -> None:
        super().__init__(client, ledger, transactional_id, number, is_v2=is_v2)
        self._source = source
        self._targets = targets
        self._group = Line(client, GROUP_ID, GROUP)
        self._input = Input(client, source)

    async def take_over(self, *, is_new: bool) -> None:
        await super().take_over(is_new=is_new)
        if is_new:
            await self._go_back()

    async def _go_back(self) -> None:
        self._input.position = max(await committed_offset(self._group, self._source), 0)
        self._input.waiting.clear()
        self.client.history.trace.note("works from", self.name, self._input.position)

    async def turn(self) -> None:
        while not self._input.waiting:
            if self.client.is_closing:
                return
            if not await self._input.poll():
                await self.client.nap(0.1)
        deal = await self.transact()
        if deal.told != COMMITTED or self.client.rng.random() < 0.2:
            await self._go_back()
        else:
            self._input.waiting = [at for at in self._input.waiting if at >= deal.next_input]

    async def work(self, deal: Deal) -> bool:
        taken = self._input.waiting[:_RECORDS_MAX]
        deal.inputs, deal.next_input = tuple(taken), taken[-1] + 1
        for offset in taken:
            target = self._targets[offset % len(self._targets)]
            await self.write(deal, target, [f"{deal.name}<-{offset}".encode()])
        await commit_offset(self, self._group, self._source, deal.next_input)
        return self.client.rng.random() < 0.9


async def commit_offset(life: Life, group: Line, place: Place, offset: int) -> None:
    """Make the offset part of the life's open transaction."""
    if not life.is_v2:
        await _add_offsets(life, group.key)
    topic, number = place
    partition = TxnOffsetCommitRequestPartition(
        partition_index=number, committed_offset=offset, committed_metadata=""
    )
    request = TxnOffsetCommitRequest(
        transactional_id=life.transactional_id,
        group_id=group.key,
        producer_id=life.producer_id,
        producer_epoch=life.producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    told = await group.ask(request, version=5 if life.is_v2 else 3, code=_code_of_partition)
    life.check(told, "TxnOffsetCommit")


async def _add_offsets(life: Life, group_id: str) -> None:
    request = AddOffsetsToTxnRequest(
        transactional_id=life.transactional_id,
        producer_id=life.producer_id,
        producer_epoch=life.producer_epoch,
        group_id=group_id,
    )
    told = await life.line.ask(request, version=3, code=lambda a: int(a.error_code))
    life.check(told, "AddOffsetsToTxn")


async def committed_offset(group: Line, place: Place) -> int:
    """What counts for sure, after everything that is being decided; -1: nothing yet."""
    topic, number = place
    request = OffsetFetchRequest(
        group_id=group.key,
        topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[number])],
        require_stable=True,
    )
    told = await group.ask(request, version=7, code=_code_of_fetch)
    if told.error:
        group.client.history.violate(f"OffsetFetch of {group.key} failed: {told.error.name}")
        return -1
    return int(_first_partition(told.answer).committed_offset)


def _first_partition(answer: Response) -> Any:
    return answer.topics[0].partitions[0]


def _code_of_partition(answer: Response) -> int:
    return int(_first_partition(answer).error_code)


def _code_of_fetch(answer: Response) -> int:
    return int(answer.error_code or _first_partition(answer).error_code)
