"""The transaction coordinator: finds the shard of an id, logs what the rules say, ends the decided.

It is thin: what an event means is in `rules.py`, what is known in `shard.py`. Here are the waits:
for a state log to load, for what was written to be safe, for markers to arrive. Nothing is answered
and no marker is sent before everything the shard wrote is on every in-sync replica.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from penstock.cluster.image import ClusterImage
from penstock.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidRequest,
    InvalidTxnTimeout,
    NotCoordinator,
    ProtocolError,
)
from penstock.replica.partition import Partition
from penstock.replica.state_log import StateLog, partition_for
from penstock.transactions import rules
from penstock.transactions.admission import Wait
from penstock.transactions.ending import Pauses, mark_everywhere
from penstock.transactions.markers import Marker, MarkerSink
from penstock.transactions.shard import Shard
from penstock.transactions.transaction import Identity, TopicPartition, Transaction

log = logging.getLogger("kafka.coordinator.transaction.TransactionCoordinator")

STATE_TOPIC: Final = "__transaction_state"

_PATIENCE_S: Final = 0.1
_LOAD_SLICE_BYTES: Final = 1 << 16  # A few milliseconds of work; other requests run in between.


class Hosted(Protocol):
    """The partitions on this broker."""

    def get(self, topic: str, partition: int) -> Partition | None: ...


class ProducerIdSource(Protocol):
    """Hands out producer ids, each only once."""

    async def take(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSettings:
    """The settings that matter here, as they hold now."""

    timeout_ms_max: int
    expiration_ms: int
    load_bytes: int  # How much of a log is read at a time, at most.


class _Led:
    """A shard and the log behind it, for one leader epoch."""

    __slots__ = ("ends", "is_loading", "log", "shard", "tasks")

    def __init__(self, state_log: StateLog) -> None:
        self.log = state_log
        self.shard = Shard(state_log, report=partial(log.warning, "%s: %s", state_log))
        self.is_loading = True
        self.tasks: set[asyncio.Task[None]] = set()  # Loading, and what is ending.
        self.ends: dict[str, asyncio.Task[None]] = {}  # What is ending, by transactional id.

    @property
    def wait(self) -> Wait:
        return None if self.log.is_settled else self.log.until_settled


class TransactionCoordinator:
    """Looks after the transactional ids whose partition of `__transaction_state` is led here."""

    def __init__(
        self,
        *,
        producer_ids: ProducerIdSource,
        partitions: Hosted,
        markers: MarkerSink,
        settings: Callable[[], CoordinatorSettings],
        now_ms: Callable[[], int],
    ) -> None:
        self._producer_ids = producer_ids
        self._partitions = partitions
        self._markers = markers
        self._settings = settings
        self._now_ms = now_ms
        self._partition_count = 0  # Of the state topic; 0: it is not there yet.
        self._led: dict[int, _Led] = {}

    # Leadership

    def take_image(self, image: ClusterImage) -> None:
        """Lead what this broker leads now."""
        made = image.topics.get(STATE_TOPIC)
        self._partition_count = 0 if made is None else len(made.partitions)
        for number in set(self._led) | set(range(self._partition_count)):
            self._follow(number, self._partitions.get(STATE_TOPIC, number))

    def _follow(self, number: int, hosted: Partition | None) -> None:
        led = self._led.get(number)
        if led is not None and (hosted is not led.log.partition or not led.log.is_led):
            self._resign(number)
            led = None
        if led is None and hosted is not None and hosted.is_leader:
            self._lead(hosted)

    def _lead(self, partition: Partition) -> None:
        """Load the log of a partition, then answer for its ids."""
        led = _Led(StateLog(partition, now_ms=self._now_ms, report=log.error))
        self._led[partition.partition] = led
        if partition.log.log_start_offset == partition.log.log_end_offset:
            led.is_loading = False
        else:
            self._start(led, self._load(led))

    def _resign(self, number: int) -> None:
        """Somebody else leads it: forget everything, and leave the rest of the work to them."""
        for task in tuple(self._led.pop(number).tasks):
            task.cancel()

    def close(self) -> None:
        """Stop; whatever is ending goes on when the logs are loaded again."""
        for number in tuple(self._led):
            self._resign(number)

    async def _load(self, led: _Led) -> None:
        """Replay the log, and serve it once no record of it can be lost (no earlier)."""
        pauses = Pauses()
        while not await self._replayed(led):
            await pauses.pause()
        await _settle(led)
        led.is_loading = False
        log.info("Loaded %d transactional ids from %s", len(led.shard.transactions), led.log)
        for ending in led.shard.ending():
            self._start_end(led, ending)

    async def _replayed(self, led: _Led) -> bool:
        """False: the log cannot be read now, and half of it is as good as nothing."""
        led.shard.transactions.clear()
        try:
            chunk_bytes = min(self._settings().load_bytes, _LOAD_SLICE_BYTES)
            for chunk in led.log.replay(chunk_bytes=chunk_bytes):
                for header, records in chunk:
                    if not header.is_control:
                        for record in records:
                            led.shard.replay(record.key, record.value)
                await asyncio.sleep(0)
        except ProtocolError as error:
            log.error("%s cannot be loaded now: %s", led.log, error)
            return False
        return True

    def _start(self, led: _Led, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        led.tasks.add(task)
        task.add_done_callback(partial(_done, led))
        return task

    def _start_end(self, led: _Led, ending: Transaction) -> None:
        task = self._start(led, self._end(led, ending))
        led.ends[ending.transactional_id] = task
        task.add_done_callback(lambda _: led.ends.pop(ending.transactional_id, None))

    # Identities

    async def initialize(
        self, transactional_id: str, *, timeout_ms: int, expected: Identity | None
    ) -> Identity:
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
            await self._until_ended(transactional_id, _PATIENCE_S)
            return await self._own(transactional_id, timeout_ms, expected)

    async def _own(
        self, transactional_id: str, timeout_ms: int, expected: Identity | None
    ) -> Identity:
        spare_id = None
        while True:
            led = self._find(transactional_id)
            step = rules.initialize(
                led.shard.get(transactional_id),
                transactional_id=transactional_id,
                timeout_ms=timeout_ms,
                expected=expected,
                spare_id=spare_id,
                now_ms=self._now_ms(),
            )
            if step is not None:
                break
            spare_id = await self._producer_ids.take()
        owner = await self._carry_out(led, step)
        log.info("%s is now producer %d, epoch %d (%s)", transactional_id, *owner, led.log)
        return owner

    async def _until_ended(self, transactional_id: str, timeout_s: float) -> None:
        task = self._find(transactional_id).ends.get(transactional_id)
        if task is not None:
            await asyncio.wait([task], timeout=timeout_s)

    # Partitions

    def add_partitions(
        self,
        transactional_id: str,
        identity: Identity,
        partitions: Iterable[TopicPartition],
        *,
        client_version: int,
    ) -> Wait:
        """Make the partitions part of the transaction, which begins with the first."""
        led = self._find(transactional_id)
        step = rules.add_partitions(
            led.shard.get(transactional_id),
            identity,
            partitions,
            client_version=client_version,
            now_ms=self._now_ms(),
        )
        if step.after is not None:
            led.shard.store(step.after)
        return led.wait

    def verify(self, transactional_id: str, identity: Identity, partition: TopicPartition) -> Wait:
        """Make sure that the partition is part of the open transaction."""
        found, wait = self.verify_all(transactional_id, identity, [partition])
        error = found[partition]
        if error is not None:
            raise error
        return wait

    def verify_all(
        self, transactional_id: str, identity: Identity, partitions: Iterable[TopicPartition]
    ) -> tuple[Mapping[TopicPartition, ProtocolError | None], Wait]:
        """Which of the partitions are part of the open transaction; None: it is."""
        led = self._find(transactional_id)
        found = rules.verify(led.shard.get(transactional_id), identity, partitions)
        return found, led.wait

    # Ends

    async def end(
        self, transactional_id: str, identity: Identity, *, is_commit: bool, client_version: int
    ) -> Identity:
        """Commit or abort; the identity to go on with. Markers follow after the answer."""
        spare_id = None
        while True:
            led = self._find(transactional_id)
            step = rules.end(
                led.shard.get(transactional_id),
                identity,
                is_commit=is_commit,
                client_version=client_version,
                spare_id=spare_id,
                now_ms=self._now_ms(),
            )
            if step is not None:
                return await self._carry_out(led, step)
            spare_id = await self._producer_ids.take()

    async def _carry_out(self, led: _Led, step: rules.Step) -> Identity:
        if step.after is not None:
            self._store(led, step.after)
        await led.log.until_settled()
        if isinstance(step.answer, ProtocolError):
            raise step.answer
        return step.answer

    def _store(self, led: _Led, after: Transaction) -> None:
        led.shard.store(after)
        if after.state.is_preparing:
            self._start_end(led, after)

    async def _end(self, led: _Led, ending: Transaction) -> None:
        """Tell every partition, then log that all know. Nothing else touches the id meanwhile."""
        await _settle(led)
        marker = Marker(
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

    async def _complete(self, led: _Led, ending: Transaction) -> None:
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
        for led in self._loaded():
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
        for led in self._loaded():
            try:
                count += led.shard.forget_expired(now_ms=now_ms, expiration_ms=expiration_ms)
            except ProtocolError as error:
                log.warning("%s keeps its expired ids for now: %s", led.log, error)
        return count

    # Looking

    def describe(self, transactional_id: str) -> Transaction:
        return self._find(transactional_id).shard.described(transactional_id)

    def transactions(self) -> Iterator[Transaction]:
        """All that are coordinated here."""
        if any(led.is_loading for led in self._led.values()):
            raise CoordinatorLoadInProgress("a part of the transaction log is being loaded")
        for led in self._loaded():
            yield from led.shard.transactions.values()

    def _loaded(self) -> list[_Led]:
        return [led for led in self._led.values() if led.log.is_led and not led.is_loading]

    def _find(self, transactional_id: str) -> _Led:
        if not transactional_id:
            raise InvalidRequest("a transactional id is at least one character long")
        if not self._partition_count:
            raise CoordinatorNotAvailable(f"{STATE_TOPIC} is not there yet")
        led = self._led.get(partition_for(transactional_id, self._partition_count))
        if led is None or not led.log.is_led:
            raise NotCoordinator(f"this broker does not coordinate {transactional_id}")
        if led.is_loading:
            raise CoordinatorLoadInProgress(f"{led.log} is being loaded")
        return led


async def _settle(led: _Led) -> None:
    """Wait until all that was written is safe, however long too few replicas are in sync.

    Nobody asks again for a log to be loaded, or for a decided transaction to be carried out.
    """
    pauses = Pauses()
    while True:
        try:
            await led.log.until_settled()
        except ProtocolError as error:
            if not led.log.is_led:
                raise
            log.warning("%s waits for its replicas: %s", led.log, error)
        else:
            return
        await pauses.pause()


def _done(led: _Led, task: "asyncio.Task[None]") -> None:
    led.tasks.discard(task)
    error = None if task.cancelled() else task.exception()
    if isinstance(error, ProtocolError):
        log.info("%s: stopped, since %s", led.log, error)
    elif error is not None:
        log.error("%s: failed unexpectedly", led.log, exc_info=error)
