"""Transactional producers in the simulation, of both versions of the protocol (KIP-890).

Each goes through lives: one ends in the middle of whatever it does, or goes on as a zombie beside
the next, which takes its transactional id over. A life that learns that it was fenced off ends.
What a transaction must have come to is in the ledger before anybody can have seen it.
"""

import asyncio
from collections.abc import Callable, Sequence

from tests.simulation.clients import REQUEST_S, Client
from tests.simulation.groups_line import TRANSACTION, Line, Told
from tests.simulation.history import Place, Write
from tests.simulation.transactions_ledger import ABORTED, COMMITTED, Deal, Ledger

from penstock.errors import ErrorCode
from penstock.net.peers import PeerUnreachable
from penstock.protocol.apis import Response
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from penstock.records.batch import Record, build_batch

TIMEOUT_MS = 6_000
_INIT_VERSION = 4

_FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
# EndTxn's answer to a commit that comes after somebody else's abort.
_ENDED_OTHERWISE = frozenset({ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE})
# What a producer sends its batch again for. Coordinators' codes are not among them: clients of
# partitions do not know these.
_AGAIN = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
_AGAIN_V2 = _AGAIN | {ErrorCode.CONCURRENT_TRANSACTIONS}


class Fenced(Exception):
    """Somebody else has the transactional id."""


class Abortable(Exception):
    """This transaction is not to be committed; the next one may."""


class Life:
    """One process of a transactional producer, from taking the id over to being fenced off."""

    timeout_ms = TIMEOUT_MS
    impatience = 0.0  # How often it gives up waiting for a batch, aborts and goes on.

    def __init__(
        self, client: Client, ledger: Ledger, transactional_id: str, number: int, *, is_v2: bool
    ) -> None:
        self.client = client
        self.ledger = ledger
        self.name = f"{transactional_id}.{number}"
        self.is_v2 = is_v2
        self.transactional_id = transactional_id
        self.line = Line(client, transactional_id, TRANSACTION)
        self.producer_id, self.producer_epoch = -1, -1
        self.deal: Deal | None = None  # None: no transaction is open.
        self._added: set[Place] = set()
        self._sequences: dict[Place, int] = {}
        self._count = 0

    async def run(self) -> None:
        try:
            await self.take_over(is_new=True)
            while not self.client.is_closing:
                await self.client.nap(0.6)
                if not self.client.is_closing:
                    await self.turn()
        except Fenced:
            self.client.history.trace.note("fenced", self.name)

    async def take_over(self, *, is_new: bool) -> None:
        """A new life fences off the old; one that goes on says who it is (KIP-360)."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=-1 if is_new else self.producer_id,
            producer_epoch=-1 if is_new else self.producer_epoch,
        )
        told = await self.line.ask(request, version=_INIT_VERSION, code=_code)
        self.check(told, "InitProducerId")
        self._become(told.answer.producer_id, told.answer.producer_epoch)

    def _become(self, producer_id: int, producer_epoch: int) -> None:
        if (producer_id, producer_epoch) != (self.producer_id, self.producer_epoch):
            self._sequences.clear()
        self.producer_id, self.producer_epoch = producer_id, producer_epoch

    async def transact(self) -> Deal:
        """One transaction."""
        self._count += 1
        deal = self.deal = self.ledger.begin(f"{self.name}/{self._count}")
        self._added.clear()
        try:
            is_commit = await self.work(deal)
        except Abortable:
            await self._abort_and_go_on(deal)
        else:
            await self.end(deal, is_commit=is_commit)
        return deal

    async def turn(self) -> None:
        """What it does over and over."""
        await self.transact()

    async def work(self, deal: Deal) -> bool:
        """Write somewhere; whether to commit."""
        raise NotImplementedError

    async def _abort_and_go_on(self, deal: Deal) -> None:
        await self.end(deal, is_commit=False)
        if not self.is_v2:
            # A batch may be written or not, so its number is no good any more.
            await self.take_over(is_new=False)

    # The transaction's steps

    async def write(self, deal: Deal, place: Place, values: Sequence[bytes]) -> None:
        writes = [self._write(deal, place, value) for value in values]
        if not self.is_v2 and place not in self._added:
            await self._add(place)
        batch = self._batch(place, writes)
        gives_up = self.client.rng.random() < self.impatience
        patience_s = self.client.rng.choice((0.05, 0.2)) if gives_up else REQUEST_S
        while True:
            leader_epoch, leader = await self.client.leader(place)
            try:
                answer = await self._produce(leader, place, batch, timeout_s=patience_s)
            except PeerUnreachable:
                if gives_up:
                    raise Abortable from None
                self.client.forget_leader(place)
                await self.client.nap(0.05)
                continue
            error = ErrorCode(answer.error_code)
            if error in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                break
            self.client.forget_leader(place)
            if error not in (_AGAIN_V2 if self.is_v2 else _AGAIN):
                self.fail(error, f"Produce to {place} at leader epoch {leader_epoch}")
            await self.client.nap(0.05)
        self._sequences[place] = self._sequences.get(place, 0) + len(writes)
        for at, write in enumerate(writes):
            base = answer.base_offset
            self.client.history.end(write, "ok", base + at if base >= 0 else None)

    def _write(self, deal: Deal, place: Place, value: bytes) -> Write:
        self.ledger.write(deal, value, place)
        history = self.client.history
        write = Write(
            place=place,
            producer=self.name,
            number=len(history.writes),
            value=value,
            acks=-1,
            is_idempotent=True,
        )
        history.begin(write)
        return write

    def _batch(self, place: Place, writes: Sequence[Write]) -> bytes:
        now_ms = self.client.process.now_ms()
        return bytes(
            build_batch(
                [Record(at, now_ms, None, w.value, ()) for at, w in enumerate(writes)],
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                base_sequence=self._sequences.get(place, 0),
                is_transactional=True,
            )
        )

    async def _produce(
        self, leader: int, place: Place, batch: bytes, *, timeout_s: float
    ) -> PartitionProduceResponse:
        topic, number = place
        data = [PartitionProduceData(index=number, records=batch)]
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=2000,
            topic_data=[TopicProduceData(name=topic, partition_data=data)],
        )
        version = 12 if self.is_v2 else 9
        answer = await self.client.ask(leader, request, version=version, timeout_s=timeout_s)
        found: PartitionProduceResponse = answer.responses[0].partition_responses[0]
        return found

    async def _add(self, place: Place) -> None:
        topic, number = place
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[number])],
        )
        self.check(await self.line.ask(request, version=3, code=_code_of_added), "AddPartitions")
        self._added.add(place)

    async def end(self, deal: Deal, *, is_commit: bool) -> None:
        deal.is_commit_asked = is_commit
        self.client.history.trace.note("end", deal.name, is_commit)
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=is_commit,
        )
        told = await self.line.ask(request, version=5 if self.is_v2 else 3, code=_code)
        if told.error in _ENDED_OTHERWISE:
            # By the clock or by somebody else; it is not for this life to say which.
            told = told._replace(error=ErrorCode.PRODUCER_FENCED)
        if told.error in _FENCED and told.attempts == 1:
            self.ledger.end(deal, ABORTED)
        self.check(told, "EndTxn")
        self.ledger.end(deal, COMMITTED if is_commit else ABORTED)
        self.deal = None
        if self.is_v2:
            self._become(told.answer.producer_id, told.answer.producer_epoch)

    def check(self, told: Told, what: str) -> None:
        if told.error is not ErrorCode.NONE:
            self.fail(told.error, what)

    def fail(self, error: ErrorCode, what: str) -> None:
        """Nothing but being fenced off is for a client that does all in its order."""
        if error in _FENCED:
            raise Fenced
        self.client.history.violate(
            f"I35 {what} of {self.name}, producer {self.producer_id} epoch "
            f"{self.producer_epoch}, failed with {error.name}"
        )
        raise Abortable


class Banker(Life):
    """Writes the same to several partitions, or to none."""

    places: Sequence[Place] = ()

    async def work(self, deal: Deal) -> bool:
        rng = self.client.rng
        chosen = rng.sample(self.places, rng.randint(2, len(self.places)))
        for place in chosen:
            values = [f"{deal.name}/{place[1]}/{n}".encode() for n in range(rng.choice((1, 1, 2)))]
            await self.write(deal, place, values)
        return rng.random() < 0.8


class Lives:
    """One life after the other, and sometimes beside the other, under one transactional id."""

    def __init__(self, client: Client, make: Callable[[int], Life]) -> None:
        self._client = client
        self._make = make
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0

    @property
    def is_over(self) -> bool:
        return not self._tasks

    async def run(self) -> None:
        rng = self._client.rng
        while not self._client.is_closing:
            self._count += 1
            life = asyncio.create_task(self._make(self._count).run())
            self._tasks.add(life)
            life.add_done_callback(self._ended)
            await asyncio.wait([life], timeout=rng.expovariate(1 / 6))
            if self._client.is_closing:
                return
            if rng.random() < 0.6:
                life.cancel()
            # Long enough, now and then, for the clock to end what was left open.
            await self._client.nap(rng.choice((0.01, 0.5, 0.5, 6.0)))

    async def prove(self) -> None:
        """The id is of use again in a healthy cluster, where nobody else is there to fence it."""
        try:
            async with asyncio.timeout(60):
                while not await self._is_proved():
                    pass  # The clock may have ended what was held up by an answer that was lost.
        except TimeoutError:
            name = self._client.name
            self._client.history.violate(f"I24 {name} could not commit although all was well")

    async def _is_proved(self) -> bool:
        self._count += 1
        life = self._make(self._count)
        try:
            await life.take_over(is_new=True)
            while (await life.transact()).told != COMMITTED:
                pass
        except Fenced:
            return False
        return True

    def _ended(self, life: "asyncio.Task[None]") -> None:
        self._tasks.discard(life)
        if not life.cancelled() and (error := life.exception()) is not None:
            self._client.history.violate(f"{self._client.name} failed: {error!r}")


def _code(answer: Response) -> int:
    return int(answer.error_code)


def _code_of_added(answer: Response) -> int:
    results = answer.results_by_topic_v3_and_below
    return int(results[0].results_by_partition[0].partition_error_code)
