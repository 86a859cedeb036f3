"""A source task's loop: poll, transform and convert, produce, commit.

Exactly once (KIP-618): records and the offset record go out in one transaction, so after a crash
the offsets that are read say exactly which records are in the topics. The transactional id is the
task's own; whoever starts the task fences all who ran it before. Otherwise offsets are written when
the records before them are acknowledged: after a crash some come twice, none is lost.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from penstock.client.producer.polled import Outcome, StoredAt
from penstock.client.values import ProducerRecord
from penstock.connect.errors.kinds import RetriableConnectError
from penstock.connect.plugins.contract import Config, SourceTask
from penstock.connect.records import SourceRecord
from penstock.connect.running.channel import TaskChannel
from penstock.connect.running.counts import COMMITTED, NOT_COMMITTED, POLLED, WRITTEN
from penstock.connect.running.passed_places import PassedPlaces
from penstock.connect.running.source_offsets import OffsetKeeper, SourceOffsets
from penstock.errors import PenstockError

Polled = TypeVar("Polled")
Polled_contra = TypeVar("Polled_contra", contravariant=True)

_PAUSE_S = 1.0
_RETRY_S = 0.3
_FLUSH_S = 120.0
_CHUNK = 500  # Records that are converted before they are sent.
_PENDING_MAX = 20_000  # Records that no broker has acknowledged yet.


class Boundary(StrEnum):
    """Where transactions end: with each poll, after a time, or where the connector says."""

    POLL = "poll"
    INTERVAL = "interval"
    CONNECTOR = "connector"


class SourceSteps(Protocol):
    """What lies between a task's records and the producer."""

    def to_producer(self, record: SourceRecord) -> ProducerRecord[bytes, bytes] | None:
        """Transformed and converted; None: it was dropped, or put aside."""


class SourceProducer(Protocol):
    """As much of `LoopProducer` as it takes; an outcome comes into the dict under its number."""

    def send(
        self, record: ProducerRecord[bytes, bytes], outcomes: MutableMapping[int, Any], number: int
    ) -> None: ...
    def serve(self) -> None: ...
    def wait_for(
        self, outcomes: MutableMapping[int, Any], number: int, timeout_s: float
    ) -> Outcome: ...
    def flush(self, timeout_s: float) -> None: ...
    def begin_transaction(self) -> None: ...
    def commit_transaction(self) -> None: ...
    def abort_transaction(self) -> None: ...


class PollSender(Protocol[Polled_contra]):
    """One of the ways to get records and offsets out."""

    def send(self, polled: Sequence[Polled_contra], /) -> None:
        """Take what one poll brought."""

    def tend(self, *, at_end: bool = False) -> None:
        """Do what is due; `at_end`: everything, because the task pauses or stops."""

    def give_up(self) -> None:
        """Drop what is not done, because the task failed."""


class SourceTransactions:
    """`SourceTaskContext.transaction`: what the task wishes for."""

    def __init__(self) -> None:
        self.commit_batch = False
        self.abort_batch = False
        self.commit_at: list[SourceRecord] = []
        self.abort_at: list[SourceRecord] = []

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        if record is None:
            self.commit_batch = True
        else:
            self.commit_at.append(record)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        if record is None:
            self.abort_batch = True
        else:
            self.abort_at.append(record)

    def clear(self) -> None:
        """After the batch that they were about."""
        self.commit_batch = self.abort_batch = False
        self.commit_at.clear()
        self.abort_at.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext:
    """What the task may ask."""

    config: Config
    offset_reader: SourceOffsets
    transaction: SourceTransactions | None


class SourceLoop(Generic[Polled]):
    """Runs until the channel says stop; raises what ends the task."""

    def __init__(
        self,
        poll: Callable[[], Sequence[Polled] | None],
        sender: PollSender[Polled],
        channel: TaskChannel,
    ) -> None:
        self._poll = poll
        self._sender = sender
        self._channel = channel

    def run(self) -> None:
        """After `task.start`."""
        try:
            while not self._channel.stopping.is_set():
                if self._channel.paused.is_set():
                    self._sit_out_pause()
                    continue
                self._round()
            self._sender.tend(at_end=True)
        except BaseException:
            self._sender.give_up()
            raise

    def _round(self) -> None:
        try:
            polled = self._poll()
        except RetriableConnectError:
            self._channel.changed.wait(_RETRY_S)
            self._channel.changed.clear()
            polled = None
        if polled:
            self._channel.count(POLLED, self._count(polled))
            self._sender.send(polled)
        self._sender.tend()
        self._channel.tell_counts()

    def _count(self, polled: Sequence[Polled]) -> int:
        """How many records they are."""
        return len(polled)

    def _sit_out_pause(self) -> None:
        self._sender.tend(at_end=True)
        self._channel.tell_state("PAUSED")
        while self._channel.paused.is_set() and not self._channel.stopping.is_set():
            self._channel.changed.wait(_PAUSE_S)
            self._channel.changed.clear()
            self._sender.tend(at_end=True)  # The producer has its chores, such as fresh tokens.
        if not self._channel.stopping.is_set():
            self._channel.tell_state("RUNNING")


class AcknowledgedSender:
    """At least once: offsets follow the records that brokers have acknowledged."""

    def __init__(
        self,
        task: SourceTask,
        connector: str,
        producer: SourceProducer,
        steps: SourceSteps,
        keeper: OffsetKeeper,
        channel: TaskChannel,
        *,
        flush_s: float,
        tolerates: bool = False,  # Whether a record that no broker takes is left out.
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task = task
        self._connector = connector
        self._producer = producer
        self._keeper = keeper
        self._out = _WayOut(steps, producer, channel)
        self._channel = channel
        self._flush_s = flush_s
        self._tolerates = tolerates
        self._clock = clock
        self._flushed_s = clock()
        self._pending: deque[SourceRecord] = deque()
        self._first = 0  # The number of the first that is pending.
        self._outcomes: dict[int, Outcome | None] = {}  # None: it was dropped before it was sent.
        self._passed = PassedPlaces()

    def send(self, records: Sequence[SourceRecord]) -> None:
        for first in range(0, len(records), _CHUNK):
            chunk = records[first : first + _CHUNK]
            self._out.send(chunk, self._outcomes, self._first + len(self._pending))
            self._pending += chunk
        while len(self._pending) > _PENDING_MAX:
            if self._first not in self._outcomes:
                self._producer.wait_for(self._outcomes, self._first, _FLUSH_S)
            self._settle()

    def tend(self, *, at_end: bool = False) -> None:
        if at_end:
            self._producer.flush(_FLUSH_S)
        else:
            self._producer.serve()
        self._settle()
        if at_end or self._clock() - self._flushed_s >= self._flush_s:
            self._keep()

    def give_up(self) -> None:
        self._pending.clear()

    def _settle(self) -> None:
        """Pass on from the first record up to one that has no outcome."""
        outcomes, pending = self._outcomes, self._pending
        written = 0
        try:
            while self._first in outcomes:
                outcome = outcomes.pop(self._first)
                if isinstance(outcome, PenstockError) and not self._tolerates:
                    raise outcome
                self._first += 1
                record = pending.popleft()
                self._passed.add(record)
                stored = outcome if isinstance(outcome, StoredAt) else None
                written += stored is not None
                self._tell(record, stored)
        finally:
            self._channel.count(WRITTEN, written)

    def _tell(self, record: SourceRecord, stored: StoredAt | None) -> None:
        self._task.commit_record(
            record,
            partition=None if stored is None else stored.partition,
            offset=None if stored is None else stored.offset,
        )

    def _keep(self) -> None:
        self._flushed_s = self._clock()
        notes = self._passed.notes(self._connector)
        if notes:
            try:
                self._keeper.keep(notes)
            except PenstockError:
                self._channel.count(NOT_COMMITTED)
                raise
            self._channel.count(COMMITTED)
            self._passed.clear()
            self._task.commit()


class TransactionalSender:
    """Exactly once: each transaction has records and the offsets behind them."""

    def __init__(
        self,
        task: SourceTask,
        connector: str,
        producer: SourceProducer,  # With a transactional id, ready for transactions.
        steps: SourceSteps,
        channel: TaskChannel,
        *,
        offset_topic: str,
        boundary: Boundary,
        interval_s: float,
        wishes: SourceTransactions | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task = task
        self._connector = connector
        self._producer = producer
        self._out = _WayOut(steps, producer, channel)
        self._channel = channel
        self._offset_topic = offset_topic
        self._boundary = boundary
        self._interval_s = interval_s
        self._wishes = wishes
        self._clock = clock
        self._begun_s: float | None = None  # None: no transaction is open.
        self._sent: list[SourceRecord] = []
        self._outcomes: dict[int, Outcome | None] = {}  # By the place in `_sent`.
        self._written = 0
        self._passed = PassedPlaces()

    def send(self, records: Sequence[SourceRecord]) -> None:
        if self._wishes is None:
            self._send(records)
            if self._boundary is Boundary.POLL:
                self._commit()
            return
        for record in records:
            self._send((record,))
            self._obey_at(record)
        self._obey_batch()

    def tend(self, *, at_end: bool = False) -> None:
        self._producer.serve()
        if self._begun_s is None or self._boundary is Boundary.CONNECTOR:
            return  # What a connector has not ended is dropped at the end, and read again.
        if at_end or self._clock() - self._begun_s >= self._interval_s:
            self._commit()

    def give_up(self) -> None:
        self._abort()

    def _send(self, records: Sequence[SourceRecord]) -> None:
        self._begin()
        for first in range(0, len(records), _CHUNK):
            chunk = records[first : first + _CHUNK]
            self._written += self._out.send(chunk, self._outcomes, len(self._sent))
            for record in chunk:
                self._passed.add(record)
            self._sent += chunk

    def _begin(self) -> None:
        if self._begun_s is None:
            self._producer.begin_transaction()
            self._begun_s = self._clock()

    def _obey_at(self, record: SourceRecord) -> None:
        assert self._wishes is not None
        if any(one is record for one in self._wishes.abort_at):
            self._skip()
        elif any(one is record for one in self._wishes.commit_at):
            self._commit()

    def _obey_batch(self) -> None:
        assert self._wishes is not None
        if self._wishes.abort_batch:
            self._skip()
        elif self._wishes.commit_batch:
            self._commit()
        self._wishes.clear()

    def _skip(self) -> None:
        """Drop the records of the open transaction, and keep that they were passed."""
        if self._begun_s is None:
            return
        passed, dropped = self._passed, self._sent
        self._abort()
        self._begin()
        self._passed, self._sent = passed, dropped
        self._commit()

    def _commit(self) -> None:
        if self._begun_s is None:
            return
        notes = self._passed.notes(self._connector)
        for at, note in enumerate(notes, start=len(self._sent)):
            record = ProducerRecord(topic=self._offset_topic, value=note.value, key=note.key)
            self._producer.send(record, self._outcomes, at)
        try:
            self._producer.commit_transaction()
        except PenstockError:
            self._channel.count(NOT_COMMITTED)
            raise
        self._channel.count(COMMITTED)
        self._channel.count(WRITTEN, self._written)
        sent, outcomes = self._sent, self._outcomes
        self._forget()
        self._tell(sent, outcomes)
        self._task.commit()

    def _tell(self, sent: list[SourceRecord], outcomes: Mapping[int, Outcome | None]) -> None:
        """Tell the task of each record; a task that does not listen is not called."""
        if type(self._task).commit_record is SourceTask.commit_record:
            return
        for at, record in enumerate(sent):
            stored = outcomes.get(at)  # Of what was committed, an outcome is never an error.
            if isinstance(stored, StoredAt):
                self._task.commit_record(record, partition=stored.partition, offset=stored.offset)
            else:
                self._task.commit_record(record, partition=None, offset=None)

    def _abort(self) -> None:
        begun = self._begun_s
        self._forget()
        if begun is None:
            return
        try:
            self._producer.abort_transaction()
        except PenstockError:
            return  # Whoever starts next aborts it.

    def _forget(self) -> None:
        """No transaction is open. Reports that are still to come go to the dict that was."""
        self._begun_s, self._written = None, 0
        self._sent, self._outcomes, self._passed = [], {}, PassedPlaces()


class _WayOut:
    """Transforms and converts some records, then sends them one behind the other.

    Were each sent as soon as it is converted, the producer would wake for each, and send many small
    batches.
    """

    def __init__(self, steps: SourceSteps, producer: SourceProducer, channel: TaskChannel) -> None:
        self._steps = steps
        self._producer = producer
        self._channel = channel
        self._topics: set[str] = set()  # Those that were told.

    def send(
        self,
        records: Sequence[SourceRecord],
        outcomes: MutableMapping[int, Outcome | None],
        first: int,
    ) -> int:
        """How many were sent; one that was dropped has the outcome None."""
        made = [self._steps.to_producer(record) for record in records]
        send, sent = self._producer.send, 0
        for number, one in enumerate(made, start=first):
            if one is None:
                outcomes[number] = None
                continue
            send(one, outcomes, number)
            sent += 1
            if one.topic not in self._topics:
                self._topics.add(one.topic)
                self._channel.tell_topic(one.topic)
        return sent
