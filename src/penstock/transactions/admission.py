"""Who may write into a partition within a transaction: asked once for each partition of each.

The leader asks the coordinator before it appends a producer's first batch of a transaction. An
older client has told the coordinator beforehand, and the leader makes sure of it (verification); a
newer one leaves it to the leader to tell (KIP-890). Once the transaction is open in the partition,
batches pass without a question until a marker ends it.

Two steps, so that the way of nearly all batches stays synchronous: `is_admitted` settles what can
be settled at once, and only for the rest the caller keeps a copy of its batch and goes `later`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from penstock.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidTxnState,
    NotCoordinator,
    OutOfOrderSequence,
    ProducerFenced,
    ProtocolError,
    RetriableError,
    TransactionAbortable,
    TransactionalIdAuthorization,
)
from penstock.replica.partition import Partition
from penstock.storage.producers import ProducerEntry
from penstock.transactions.guards import Guard, Guards, Key
from penstock.transactions.transaction import TV2, Identity, TopicPartition

T = TypeVar("T")

# What is left to wait for before an answer counts; None: nothing.
Wait = Callable[[], Awaitable[None]] | None

NO_SEQUENCE = -1


class Verifier(Protocol):
    """The coordinator of a transactional id, wherever it is; raises what the client is told."""

    def add_partitions(
        self,
        transactional_id: str,
        identity: Identity,
        partitions: Iterable[TopicPartition],
        *,
        client_version: int,
    ) -> Wait:
        """Make the partitions part of the transaction."""
        ...

    def verify(self, transactional_id: str, identity: Identity, partition: TopicPartition) -> Wait:
        """Make sure that the partition is part of the transaction."""
        ...


class Claim(NamedTuple):
    """What a request says about the batch it brings."""

    transactional_id: str | None
    identity: Identity
    first_sequence: int  # NO_SEQUENCE: coordinators write without numbers.
    adds_partition: bool  # The client leaves it to us to add the partition (version 2).
    knows_abortable: bool  # The client understands that it is to abort and go on.
    busy: type[RetriableError]  # What makes the client send the same request again.


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSettings:
    """The settings that matter here, as they hold now."""

    verifies: bool
    retry_pause_ms: int
    retry_ms_max: int


class Admission:
    """Asks for each partition's first batch of a transaction; remembers guards, and who waits."""

    def __init__(
        self,
        verifier: Verifier,
        *,
        guards: Guards,
        settings: Callable[[], AdmissionSettings],
        now_ms: Callable[[], int],
    ) -> None:
        self._verifier = verifier
        self._guards = guards
        self._settings = settings
        self._now_ms = now_ms
        self._waiting: dict[Key, asyncio.Task[Any]] = {}  # The last in each line.

    def announce(self, claims: Sequence[tuple[Partition, Claim]]) -> None:
        """Add several partitions of one producer in one go; whatever fails is met again later."""
        if len(claims) < 2:
            return
        transactional_id, identity = claims[0][1][:2]
        wanted = [
            (partition.topic, partition.partition)
            for partition, claim in claims
            if claim.identity == identity and not _is_open(partition, identity)
        ]
        if len(wanted) > 1 and transactional_id is not None:
            with suppress(ProtocolError):
                self._verifier.add_partitions(
                    transactional_id, identity, wanted, client_version=TV2
                )

    def is_admitted(self, partition: Partition, claim: Claim) -> bool:
        """True: append before awaiting anything. False: it takes time, go `later`."""
        key = _key(partition, claim)
        if key in self._waiting:
            return False
        if _is_open(partition, claim.identity):
            return True
        try:
            guard, wait = self._ask(partition, key, claim)
        except ConcurrentTransactions as error:
            if claim.adds_partition:
                return False
            raise _told(error, claim) from error
        except ProtocolError as error:
            raise _told(error, claim) from error
        if wait is not None:
            return False
        self._pass(key, guard)
        return True

    def later(
        self, partition: Partition, claim: Claim, append: Callable[[], T]
    ) -> "asyncio.Task[T]":
        """Append once the coordinator has answered; a producer's batches keep their order."""
        key = _key(partition, claim)
        turn = self._in_turn(partition, key, claim, append, before=self._waiting.get(key))
        task = asyncio.get_running_loop().create_task(turn)
        self._waiting[key] = task
        task.add_done_callback(lambda done: self._left(key, done))
        return task

    def _left(self, key: Key, done: "asyncio.Task[Any]") -> None:
        if self._waiting.get(key) is done:
            del self._waiting[key]

    async def _in_turn(
        self,
        partition: Partition,
        key: Key,
        claim: Claim,
        append: Callable[[], T],
        *,
        before: "asyncio.Task[Any] | None",
    ) -> T:
        if before is not None:
            await asyncio.wait([before])
        if not _is_open(partition, claim.identity):
            self._pass(key, await self._ask_until_free(partition, key, claim))
        return append()

    async def _ask_until_free(self, partition: Partition, key: Key, claim: Claim) -> Guard | None:
        """The last transaction may still be ending: worth a few pauses, and then an error."""
        settings = self._settings()
        waited_ms = 0
        while True:
            try:
                guard, wait = self._ask(partition, key, claim)
                if wait is not None:
                    await wait()
                return guard
            except ConcurrentTransactions as error:
                if waited_ms >= settings.retry_ms_max or not claim.adds_partition:
                    raise _told(error, claim) from error
            except ProtocolError as error:
                raise _told(error, claim) from error
            waited_ms += settings.retry_pause_ms
            await asyncio.sleep(settings.retry_pause_ms / 1000)

    def _ask(self, partition: Partition, key: Key, claim: Claim) -> tuple[Guard | None, Wait]:
        """No guard: nobody needs to be asked."""
        if claim.transactional_id is None:
            raise TransactionalIdAuthorization("a batch of a transaction came without its id")
        if not claim.adds_partition and not self._settings().verifies:
            return None, None
        identity = claim.identity
        entry = _entry(partition, identity)
        if entry is not None and identity.producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpoch(f"the epoch is {entry.producer_epoch} by now")
        guard = self._guards.put_up(
            key, identity.producer_epoch, claim.first_sequence, now_ms=self._now_ms()
        )
        if entry is None:
            _check_first_sequence(guard, claim)
        wanted = partition.topic, partition.partition
        if not claim.adds_partition:
            return guard, self._verifier.verify(claim.transactional_id, identity, wanted)
        return guard, self._verifier.add_partitions(
            claim.transactional_id, identity, [wanted], client_version=TV2
        )

    def _pass(self, key: Key, guard: Guard | None) -> None:
        if guard is None:
            return
        if not self._guards.stands(key, guard):
            raise InvalidTxnState("the transaction ended before this batch could be written")
        self._guards.drop(*key)


def _key(partition: Partition, claim: Claim) -> Key:
    return partition.topic, partition.partition, claim.identity.producer_id


def _entry(partition: Partition, identity: Identity) -> ProducerEntry | None:
    return partition.log.producer_state.table.entries.get(identity.producer_id)


def _is_open(partition: Partition, identity: Identity) -> bool:
    entry = _entry(partition, identity)
    return (
        entry is not None
        and entry.open_since is not None
        and entry.producer_epoch == identity.producer_epoch
    )


def _check_first_sequence(guard: Guard, claim: Claim) -> None:
    """The partition does not know the producer and would take any number for the first."""
    if claim.first_sequence == NO_SEQUENCE:
        return
    # In version 2 a transaction has an epoch of its own, and an epoch begins with 0.
    lowest = 0 if claim.adds_partition else guard.lowest_sequence
    if claim.first_sequence > lowest:
        raise OutOfOrderSequence(
            f"sequence number {claim.first_sequence} came where {lowest} comes first"
        )


def _told(error: ProtocolError, claim: Claim) -> ProtocolError:
    """A coordinator's error in words that the client of a partition understands."""
    if isinstance(error, ProducerFenced):
        return InvalidProducerEpoch(str(error))
    if isinstance(error, TransactionAbortable) and not claim.knows_abortable:
        return InvalidTxnState(str(error))
    if isinstance(error, ConcurrentTransactions) and claim.adds_partition:
        return error
    if isinstance(
        error,
        CoordinatorLoadInProgress
        | CoordinatorNotAvailable
        | NotCoordinator
        | ConcurrentTransactions,
    ):
        return claim.busy(f"the transaction could not be verified: {error}")
    return error
