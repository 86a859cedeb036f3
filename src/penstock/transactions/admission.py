"""Who may write into a partition within a transaction: asked once for each partition of each.

The leader asks the coordinator before it appends a producer's first batch of a transaction. An
older client has told the coordinator beforehand, and the leader makes sure of it (verification); a
newer one leaves it to the leader to tell (KIP-890). Once the transaction is open in the partition,
batches pass without a question until a marker ends it.

Two steps, so that the way of nearly all batches stays synchronous: `is_admitted` settles what can
be settled at once, and only for the rest the caller keeps a copy of its batch and does `line_up`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

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
from penstock.storage.producers.producers import ProducerEntry
from penstock.transactions.guards import Guard, Guards, Key
from penstock.transactions.transaction import TV2, ProducerIdentity, TopicPartition

# What is left to wait for before an answer counts; None: nothing.
Wait = Callable[[], Awaitable[None]] | None

NO_SEQUENCE = -1


class Verifier(Protocol):
    """The coordinator of a transactional id, wherever it is; raises what the client is told."""

    def add_partitions(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Iterable[TopicPartition],
        *,
        client_version: int,
    ) -> Wait:
        """Make the partitions part of the transaction."""
        ...

    def verify(
        self, transactional_id: str, identity: ProducerIdentity, partition: TopicPartition
    ) -> Wait:
        """Make sure that the partition is part of the transaction."""
        ...


class BatchClaim(NamedTuple):
    """What a request says about the batch it brings."""

    transactional_id: str | None
    identity: ProducerIdentity
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
        self._waiting: dict[Key, PlaceInLine] = {}  # The last in each line.

    def announce(self, claims: Sequence[tuple[Partition, BatchClaim]]) -> None:
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

    def is_admitted(self, partition: Partition, claim: BatchClaim) -> bool:
        """True: append before awaiting anything. False: it takes time, `line_up`."""
        key = _key(partition, claim)
        if key in self._waiting:
            return False
        if _is_open(partition, claim.identity):
            return True
        guard = self._guard(partition, key, claim)
        if guard is None:
            return True
        try:
            wait = self._ask(partition, claim, guard)
        except ConcurrentTransactions as error:
            if claim.adds_partition:
                return False
            raise _told(error, claim) from error
        except ProtocolError as error:
            raise _told(error, claim) from error
        if wait is not None:
            return False
        self._guards.drop(key, claim.identity.producer_epoch)
        return True

    def line_up(self, partition: Partition, claim: BatchClaim) -> "PlaceInLine":
        """A place behind the producer's batches that wait already, to be entered later.

        The guard is put up now, also for a batch that waits behind others: a marker that comes
        before its turn ends its transaction as well.
        """
        key = _key(partition, claim)
        guard = self._guard(partition, key, claim)
        turn = PlaceInLine(self, partition, claim, guard, before=self._waiting.get(key))
        self._waiting[key] = turn
        return turn

    def leave(self, turn: "PlaceInLine", *, is_written: bool) -> None:
        """The turn is over; the last in line leaves the way free for the next batch."""
        key = _key(turn.partition, turn.claim)
        if self._waiting.get(key) is turn:
            del self._waiting[key]
            if is_written:
                self._guards.drop(key, turn.claim.identity.producer_epoch)

    async def ask(self, partition: Partition, claim: BatchClaim, guard: Guard) -> None:
        """Ask the coordinator; on return the batch is to be appended before anything else."""
        self._check_stands(guard, partition, claim)
        await self._ask_until_free(partition, claim, guard)
        self._check_stands(guard, partition, claim)

    async def _ask_until_free(self, partition: Partition, claim: BatchClaim, guard: Guard) -> None:
        """The last transaction may still be ending: worth a few pauses, and then an error."""
        settings = self._settings()
        waited_ms = 0
        while True:
            try:
                wait = self._ask(partition, claim, guard)
                if wait is not None:
                    await wait()
                return
            except ConcurrentTransactions as error:
                if waited_ms >= settings.retry_ms_max or not claim.adds_partition:
                    raise _told(error, claim) from error
            except ProtocolError as error:
                raise _told(error, claim) from error
            waited_ms += settings.retry_pause_ms
            await asyncio.sleep(settings.retry_pause_ms / 1000)

    def _guard(self, partition: Partition, key: Key, claim: BatchClaim) -> Guard | None:
        """Put up before anything is asked; None: nobody needs to be asked."""
        if claim.transactional_id is None:
            raise TransactionalIdAuthorization("a batch of a transaction came without its id")
        if not claim.adds_partition and not self._settings().verifies:
            return None
        _check_epoch(partition, claim)
        return self._guards.put_up(
            key,
            claim.identity.producer_epoch,
            claim.first_sequence,
            leader_epoch=partition.leader_epoch,
            now_ms=self._now_ms(),
        )

    def _check_stands(self, guard: Guard, partition: Partition, claim: BatchClaim) -> None:
        """What was granted must not be over, and not be in doubt.

        An end that came with a later epoch is told by that epoch: clients go on after it with a
        new transaction, while INVALID_TXN_STATE is the end of some of them (KAFKA-19690).
        """
        if guard.is_over:
            _check_epoch(partition, claim)
            raise InvalidTxnState("the transaction ended before this batch could be written")
        key, epoch = _key(partition, claim), claim.identity.producer_epoch
        if guard.leader_epoch != partition.leader_epoch or not self._guards.stands(
            key, epoch, guard
        ):
            raise claim.busy("a marker may have come unnoticed while the coordinator was asked")

    def _ask(self, partition: Partition, claim: BatchClaim, guard: Guard) -> Wait:
        if _entry(partition, claim.identity) is None:
            _check_first_sequence(guard, claim)
        transactional_id, identity = claim.transactional_id or "", claim.identity
        wanted = partition.topic, partition.partition
        if not claim.adds_partition:
            return self._verifier.verify(transactional_id, identity, wanted)
        return self._verifier.add_partitions(
            transactional_id, identity, [wanted], client_version=TV2
        )


class PlaceInLine:
    """One batch's place in the line of its producer, entered with `async with`.

    Inside, the batch is let in, and must be appended before anything is awaited. Whoever lines up
    and never enters must `leave`, or the next in line waits for ever.
    """

    def __init__(
        self,
        admission: Admission,
        partition: Partition,
        claim: BatchClaim,
        guard: Guard | None,  # None: nobody needs to be asked.
        *,
        before: "PlaceInLine | None",  # None: it is the first in line.
    ) -> None:
        self.partition = partition
        self.claim = claim
        self._admission = admission
        self._guard = guard
        self._before = None if before is None else before._is_over
        self._is_over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> None:
        """Wait for those before, and for the coordinator; raises what the client is told."""
        try:
            if self._before is not None:
                await asyncio.wait([self._before])
            if self._guard is not None and not _is_open(self.partition, self.claim.identity):
                await self._admission.ask(self.partition, self.claim, self._guard)
        except BaseException:
            self.leave()
            raise

    async def __aexit__(self, error: type[BaseException] | None, *_: object) -> None:
        self.leave(is_written=error is None)

    def leave(self, *, is_written: bool = False) -> None:
        """Let the next in line go on; once is enough."""
        if not self._is_over.done():
            self._is_over.set_result(None)
            self._admission.leave(self, is_written=is_written)

    def end(self, _task: "asyncio.Task[Any]") -> None:
        """The task that was to enter has ended, perhaps before it began."""
        self.leave()


def _key(partition: Partition, claim: BatchClaim) -> Key:
    return partition.topic, partition.partition, claim.identity.producer_id


def _entry(partition: Partition, identity: ProducerIdentity) -> ProducerEntry | None:
    return partition.log.producer_state.table.entries.get(identity.producer_id)


def _is_open(partition: Partition, identity: ProducerIdentity) -> bool:
    entry = _entry(partition, identity)
    return (
        entry is not None
        and entry.open_since is not None
        and entry.producer_epoch == identity.producer_epoch
    )


def _check_epoch(partition: Partition, claim: BatchClaim) -> None:
    entry = _entry(partition, claim.identity)
    if entry is not None and claim.identity.producer_epoch < entry.producer_epoch:
        raise InvalidProducerEpoch(f"the epoch is {entry.producer_epoch} by now")


def _check_first_sequence(guard: Guard, claim: BatchClaim) -> None:
    """The partition does not know the producer and would take any number for the first."""
    if claim.first_sequence == NO_SEQUENCE:
        return
    # In version 2 a transaction has an epoch of its own, and an epoch begins with 0.
    lowest = 0 if claim.adds_partition else guard.lowest_sequence
    if claim.first_sequence > lowest:
        raise OutOfOrderSequence(
            f"sequence number {claim.first_sequence} came where {lowest} comes first"
        )


def _told(error: ProtocolError, claim: BatchClaim) -> ProtocolError:
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
