"""Producers as the protocol knows them: they retry, die, come back, and old requests turn up late.

Each transaction of each producer is an `Attempt`; what it wrote and how it was told to have ended
is what the histories are checked against.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tests.unit.transactions.world import DATA, Lost, World

from penstock.errors import ErrorCode
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.records.batch import Record, build_batch
from penstock.transactions.transaction import ProducerIdentity

TIMEOUT_MS = 5_000
RETRIED = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
}


class GaveUp(Exception):
    """No answer came in time; the request may still be on its way."""


class Refused(Exception):
    """The broker said no, and the same request would get the same answer."""


class End(Enum):
    """How an attempt ended, as far as its producer knows."""

    NEVER_ASKED = "open"  # It never asked for a commit, so nothing may ever be seen.
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"  # All or nothing.


@dataclass
class Attempt:
    """One transaction: what was written and confirmed, and how it ended."""

    values: list[tuple[tuple[str, int], bytes]] = field(default_factory=list)
    end: End = End.NEVER_ASKED


@dataclass
class Owned:
    """An identity that was handed out, and how long the state log was then."""

    transactional_id: str
    identity: ProducerIdentity
    logged: int


class Producer:
    """One process with a transactional id, in one of the two protocol versions."""

    def __init__(
        self,
        world: World,
        name: str,
        transactional_id: str,
        *,
        is_version_2: bool,
        attempts: list[Attempt],
        owned: list[Owned],
        logged: Callable[[], int],
    ) -> None:
        self._world = world
        self._random = world.random
        self._name = name
        self._transactional_id = transactional_id
        self._is_version_2 = is_version_2
        self._attempts = attempts
        self._owned = owned
        self._logged = logged
        self._identity: ProducerIdentity | None = None
        self._sequences: dict[tuple[str, int], int] = {}
        self._value_count = 0

    async def run(self, transactions: int) -> None:
        """Some transactions; a producer that is fenced begins anew or is gone for good."""
        while transactions > 0:
            try:
                await self._become_owner()
                while transactions > 0:
                    transactions -= 1
                    await self._transaction()
                    await self._pause(0.05)
            except Refused:
                if self._random.random() < 0.3:
                    return
                if self._random.random() < 0.5:
                    self._identity = None  # A new process with the same configuration.

    async def _become_owner(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id, transaction_timeout_ms=TIMEOUT_MS
        )
        if self._identity is not None:
            request.producer_id, request.producer_epoch = self._identity
            self._identity = None  # If it is refused, the next try is a new process.
        answer = await self._ask(request, 4)
        self._own(ProducerIdentity(answer.producer_id, answer.producer_epoch))

    def _own(self, identity: ProducerIdentity) -> None:
        self._identity = identity
        self._sequences.clear()
        self._owned.append(Owned(self._transactional_id, identity, self._logged()))

    async def _transaction(self) -> None:
        attempt = Attempt()
        self._attempts.append(attempt)
        try:
            for _ in range(self._random.randint(1, 3)):
                await self._write(attempt, self._random.choice(DATA))
        except GaveUp:
            await self._begin_again(attempt)
            return
        if self._random.random() < 0.1:
            await self._pause(2 * TIMEOUT_MS / 1000)  # Long enough to be timed out.
        if self._random.random() < 0.05:
            raise Refused  # The process dies in the middle, and another one takes over.
        await self._end(attempt, is_commit=self._random.random() < 0.7)

    async def _begin_again(self, attempt: Attempt) -> None:
        """Abort, and get an epoch that a batch still on its way does not have."""
        await self._end(attempt, is_commit=False)
        if not self._is_version_2:
            await self._become_owner()

    async def _write(self, attempt: Attempt, where: tuple[str, int]) -> None:
        assert self._identity is not None
        if not self._is_version_2:
            await self._add(where)
        self._value_count += 1
        value = f"{self._name}:{self._value_count}".encode()
        sequence = self._sequences.get(where, 0)
        batch = build_batch(
            [Record(0, self._world.now_ms(), None, value)],
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=-1,
            timeout_ms=3_000,
            topic_data=[
                TopicProduceData(
                    name=where[0],
                    partition_data=[
                        PartitionProduceData(index=where[1], records=memoryview(batch))
                    ],
                )
            ],
        )
        attempt.values.append((where, value))
        await self._ask(
            request,
            12 if self._is_version_2 else 9,
            code=_produce_code,
            may_come_late=True,
            may_give_up=True,
        )
        self._sequences[where] = sequence + 1

    async def _add(self, where: tuple[str, int]) -> None:
        assert self._identity is not None
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=self._identity.producer_id,
            v3_and_below_producer_epoch=self._identity.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=where[0], partitions=[where[1]])],
        )
        await self._ask(request, 3, code=_add_code, may_come_late=True)

    async def _end(self, attempt: Attempt, *, is_commit: bool) -> None:
        assert self._identity is not None
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            committed=is_commit,
        )
        if is_commit:
            attempt.end = End.UNKNOWN
        # In version 1 a late commit cannot be told from the next one: that is why there is a 2.
        try:
            answer = await self._ask(
                request,
                5 if self._is_version_2 else 3,
                may_come_late=self._is_version_2,
                may_give_up=self._random.random() < 0.3,
            )
        except GaveUp:
            self._identity = None
            raise Refused from None  # The process dies, and nobody asks how it ended.
        attempt.end = End.COMMITTED if is_commit else End.ABORTED
        if self._is_version_2:
            self._own(ProducerIdentity(answer.producer_id, answer.producer_epoch))

    # Over an unreliable network

    async def _ask(
        self,
        request: Any,
        version: int,
        *,
        code: Callable[[Any], int] = lambda answer: int(answer.error_code),
        may_come_late: bool = False,
        may_give_up: bool = False,
    ) -> Any:
        patience_s = self._random.random() if may_give_up else None
        while True:
            try:
                if may_come_late and self._random.random() < 0.1:
                    self._deliver_late(request, version)
                    if self._random.random() < 0.5:
                        raise Lost
                answer = await self._world.ask(request, version, patience_s=patience_s)
                if self._random.random() < 0.1:
                    raise Lost
            except Lost:
                if may_give_up and self._random.random() < 0.3:
                    raise GaveUp from None
                await self._pause(0.2)
                continue
            error = ErrorCode(code(answer))
            if error is ErrorCode.NONE:
                return answer
            if error not in RETRIED:
                raise Refused(error.name)
            await self._pause(0.1)

    def _deliver_late(self, request: Any, version: int) -> None:
        async def late() -> None:
            await self._pause(3.0)
            try:
                await self._world.ask(request, version)
            except Lost:
                return

        self._late = asyncio.ensure_future(late())

    async def _pause(self, longest_s: float) -> None:
        await asyncio.sleep(self._random.random() * longest_s)


def _produce_code(answer: Any) -> int:
    (topic,) = answer.responses
    (partition,) = topic.partition_responses
    return int(partition.error_code)


def _add_code(answer: Any) -> int:
    (topic,) = answer.results_by_topic_v3_and_below
    (partition,) = topic.results_by_partition
    return int(partition.partition_error_code)
