"""The transaction coordinator: finds the shard of an id, logs what the rules say, ends the decided.

It is thin: what an event means is in `rules.py`, what is known in `shard.py`; leading and loading
are the shell's (`coordination/shell.py`). Here are the waits: for what was written to be safe, and
for markers to arrive. Nothing is answered and no marker is sent before everything the shard wrote
is on every in-sync replica.

A coordinator may be deposed without having heard of it, and then what it knows is old. Writing
tells: what it writes reaches no in-sync replica. A refusal writes nothing by itself, and clients do
not come again after it, so what it rests on is written once more, and it is told when that is safe.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from penstock.cluster.topics.names import TRANSACTION_STATE
from penstock.coordination.led_shard import CHUNK_BYTES, LedShard
from penstock.coordination.pauses import Pauses
from penstock.coordination.shell import CoordinatorShell, PartitionLookup
from penstock.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    InvalidRequest,
    InvalidTxnTimeout,
    ProtocolError,
    RetriableError,
)
from penstock.transactions import rules
from penstock.transactions.admission import Wait
from penstock.transactions.ending import mark_everywhere
from penstock.transactions.markers import MarkerSink, TransactionMarker
from penstock.transactions.shard import TransactionShard
from penstock.transactions.transaction import ProducerIdentity, TopicPartition, Transaction

log = logging.getLogger("kafka.coordinator.transaction.TransactionCoordinator")

_PATIENCE_S: Final = 0.1

Led = LedShard[TransactionShard]


class ProducerIdSource(Protocol):
    """Hands out producer ids, each only once."""

    async def take(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSettings:
    """The settings that matter here, as they hold now."""

    timeout_ms_max: int
    expiration_ms: int
    load_bytes: int  # How much of a log is read at a time, at most.


class TransactionCoordinator(CoordinatorShell[TransactionShard]):
    """Looks after the transactional ids whose partition of `__transaction_state` is led here."""

    def __init__(
        self,
        *,
        producer_ids: ProducerIdSource,
        partitions: PartitionLookup,
        markers: MarkerSink,
        settings: Callable[[], CoordinatorSettings],
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(topic=TRANSACTION_STATE, partitions=partitions, now_ms=now_ms, logger=log)
        self._producer_ids = producer_ids
        self._markers = markers
        self._settings = settings
        self._ends: dict[str, asyncio.Task[None]] = {}  # What is ending, by transactional id.

    # What the shell asks

    def _new_machine(self, led: Led) -> TransactionShard:
        return TransactionShard(led.log, report=partial(log.warning, "%s: %s", led.log))

    def _begin_serving(self, led: Led) -> None:
        """What an earlier leader decided is carried out by this one."""
        for ending in led.shard.ending():
            self._start_end(led, ending)

    def _chunk_bytes(self) -> int:
        return min(self._settings().load_bytes, CHUNK_BYTES)

    def led_shard(self, name: str) -> Led:
        if not name:
            raise InvalidRequest("a transactional id is at least one character long")
        return super().led_shard(name)

    def _start_end(self, led: Led, ending: Transaction) -> None:
        name = ending.transactional_id
        task = self._ends[name] = led.start_task(self._end(led, ending))
        task.add_done_callback(partial(self._forget_end, name))

    def _forget_end(self, name: str, task: "asyncio.Task[None]") -> None:
        if self._ends.get(name) is task:
            del self._ends[name]

    # Identities

    async def initialize(
        self, transactional_id: str, *, timeout_ms: int, expected: ProducerIdentity | None
    ) -> ProducerIdentity:
        """Make the caller the owner of the id, and fence off whoever was it before."""
        longest_ms = self._settings().timeout_ms_max
        if not 0 < timeout_ms <= longest_ms:
            raise InvalidTxnTimeout(
                f"a transaction timeout of {timeout_ms} ms is not within 1 and {longest_ms} ms"
            )
        try:
            return await self._own(transactional_id, timeout_ms, expected)
        except ConcurrentTransactions:
            # Clients come again after half a second; markers take far less than that.
            await self._wait_for_end(transactional_id, _PATIENCE_S)
            return await self._own(transactional_id, timeout_ms, expected)

    async def _own(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> ProducerIdentity:
        spare_id = None
        while True:
            led = self.led_shard(transactional_id)
            try:
                step = rules.initialize(
                    led.shard.get(transactional_id),
                    transactional_id=transactional_id,
                    timeout_ms=timeout_ms,
                    expected=expected,
                    spare_id=spare_id,
                    now_ms=self._now_ms(),
                )
            except ProtocolError as error:
                raise await _confirmed(led, transactional_id, error) from error
            if step is not None:
                break
            spare_id = await self._producer_ids.take()
        owner = await self._carry_out(led, transactional_id, step)
        log.info("%s is now producer %d, epoch %d (%s)", transactional_id, *owner, led.log)
        return owner

    async def _wait_for_end(self, transactional_id: str, timeout_s: float) -> None:
        self.led_shard(transactional_id)
        task = self._ends.get(transactional_id)
        if task is not None:
            await asyncio.wait([task], timeout=timeout_s)

    # Partitions

    def add_partitions(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Iterable[TopicPartition],
        *,
        client_version: int,
    ) -> Wait:
        """Make the partitions part of the transaction, which begins with the first.

        A refusal is raised here, or by the wait.
        """
        led = self.led_shard(transactional_id)
        try:
            step = rules.add_partitions(
                led.shard.get(transactional_id),
                identity,
                partitions,
                client_version=client_version,
                now_ms=self._now_ms(),
            )
        except ProtocolError as error:
            return _refuse(led, transactional_id, error)
        if step.after is not None:
            led.shard.store(step.after)
        return _wait(led)

    def verify(
        self, transactional_id: str, identity: ProducerIdentity, partition: TopicPartition
    ) -> Wait:
        """Make sure that the partition is part of the open transaction.

        A refusal is raised here, or by the wait.
        """
        found, wait = self.verify_all(transactional_id, identity, [partition])
        error = found.get(partition)
        if error is None:
            return wait
        if wait is None:
            raise error
        return partial(_raise_after, wait, error)

    def verify_all(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Iterable[TopicPartition],
    ) -> tuple[Mapping[TopicPartition, ProtocolError | None], Wait]:
        """Which of the partitions are part of the open transaction; None: it is.

        A refusal of them all is raised here, or by the wait, and then none of them is told of.
        """
        led = self.led_shard(transactional_id)
        try:
            found = rules.verify(led.shard.get(transactional_id), identity, partitions)
        except ProtocolError as error:
            return {}, _refuse(led, transactional_id, error)
        if any(found.values()):
            led.shard.restate(transactional_id)
        return found, _wait(led)

    # Ends

    async def end(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        *,
        is_commit: bool,
        client_version: int,
    ) -> ProducerIdentity:
        """Commit or abort; the identity to go on with. Markers follow after the answer."""
        spare_id = None
        while True:
            led = self.led_shard(transactional_id)
            try:
                step = rules.end(
                    led.shard.get(transactional_id),
                    identity,
                    is_commit=is_commit,
                    client_version=client_version,
                    spare_id=spare_id,
                    now_ms=self._now_ms(),
                )
            except ProtocolError as error:
                raise await _confirmed(led, transactional_id, error) from error
            if step is not None:
                return await self._carry_out(led, transactional_id, step)
            spare_id = await self._producer_ids.take()

    async def _carry_out(
        self, led: Led, transactional_id: str, step: rules.Step
    ) -> ProducerIdentity:
        if step.after is not None:
            self._store(led, step.after)
        else:  # That it has ended already counts only where it is known to this day.
            led.shard.restate(transactional_id)
        await led.log.until_settled()
        if isinstance(step.answer, ProtocolError):
            raise step.answer
        return step.answer

    def _store(self, led: Led, after: Transaction) -> None:
        led.shard.store(after)
        if after.state.is_preparing:
            self._start_end(led, after)

    async def _end(self, led: Led, ending: Transaction) -> None:
        """Tell every partition, then log that all know. Nothing else touches the id meanwhile."""
        await led.settle()
        marker = TransactionMarker(
            producer_id=ending.producer_id,
            producer_epoch=ending.producer_epoch,
            is_commit=ending.is_committed,
            coordinator_epoch=led.log.leader_epoch,
            transaction_version=ending.client_version,
        )
        if await mark_everywhere(marker, ending.partitions, self._markers):
            await self._complete(led, ending)
        else:
            log.warning("%s was fenced off while it ended %s", led.log, ending.transactional_id)

    async def _complete(self, led: Led, ending: Transaction) -> None:
        pauses = Pauses()
        while led.log.is_led:
            try:
                led.shard.store(rules.complete(ending, now_ms=self._now_ms()))
                return
            except ProtocolError as error:
                log.warning("%s cannot be completed yet: %s", ending.transactional_id, error)
            await pauses.pause()

    # By the clock

    def abort_timed_out(self) -> int:
        """Abort the transactions that are open for longer than they asked for; how many."""
        count = 0
        now_ms = self._now_ms()
        for led in self.loaded_shards():
            for known in led.shard.timed_out(now_ms=now_ms):
                try:
                    self._store(led, rules.time_out(known, now_ms=now_ms))
                except ProtocolError as error:
                    log.warning("%s cannot be aborted yet: %s", known.transactional_id, error)
                    break
                count += 1
                log.info("%s is aborted: it was open for too long", known.transactional_id)
        return count

    def forget_expired(self) -> int:
        """Forget the ids that nobody used for long; how many."""
        expiration_ms, now_ms = self._settings().expiration_ms, self._now_ms()
        count = 0
        for led in self.loaded_shards():
            try:
                count += led.shard.forget_expired(now_ms=now_ms, expiration_ms=expiration_ms)
            except ProtocolError as error:
                log.warning("%s keeps its expired ids for now: %s", led.log, error)
        return count

    # Looking

    def describe(self, transactional_id: str) -> Transaction:
        return self.led_shard(transactional_id).shard.described(transactional_id)

    def transactions(self) -> Iterator[Transaction]:
        """All that are coordinated here."""
        if self.is_loading:
            raise CoordinatorLoadInProgress("a part of the transaction log is being loaded")
        for led in self.loaded_shards():
            yield from led.shard.transactions.values()


def _wait(led: Led) -> Wait:
    """What is left to wait for before an answer that rests on the log counts."""
    return None if led.log.is_settled else led.log.until_settled


# Refusals


def _refuse(led: Led, transactional_id: str, error: ProtocolError) -> Wait:
    """Raise the error, at once or, where replicas must be heard first, in the wait."""
    if isinstance(error, RetriableError):
        raise error
    led.shard.restate(transactional_id)
    wait = _wait(led)
    if wait is None:
        raise error
    return partial(_raise_after, wait, error)


async def _raise_after(wait: Callable[[], Awaitable[None]], error: ProtocolError) -> None:
    await wait()
    raise error


async def _confirmed(led: Led, transactional_id: str, error: ProtocolError) -> ProtocolError:
    """The error, once it is known that it does not rest on an old state."""
    if not isinstance(error, RetriableError):
        led.shard.restate(transactional_id)
        await led.log.until_settled()
    return error
