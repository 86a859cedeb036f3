"""A sink task's loop: consume, convert and transform, put, flush and commit.

Offsets are committed after the task has flushed what lies before them, so nothing is lost; a target
that can tell what it has seen before makes it exactly once.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from penstock.client.errors import CommitFailedError
from penstock.client.values import ConsumerRecord, OffsetAndMetadata, TopicPartition
from penstock.connect.errors.kinds import RetriableConnectError
from penstock.connect.plugins.contract import Config, Converter, ErrantRecordReporter, SinkTask
from penstock.connect.records import SinkRecord
from penstock.connect.running.channel import TaskChannel
from penstock.connect.running.counts import COMMITTED, NOT_COMMITTED, READ, SENT
from penstock.errors import PenstockError, RetriableError

_POLL_S = 0.5
_RETRY_MS = 3000


class SinkConverters(Protocol):
    """As much of `Converters` as it takes."""

    value: Converter


class SinkSteps(Protocol):
    """What lies between a topic's bytes and the task."""

    @property
    def converters(self) -> SinkConverters:
        """Those of the task."""

    def to_sink(self, record: "ConsumerRecord[bytes, bytes]") -> SinkRecord | None:
        """Converted and transformed; None: it was dropped, or put aside."""

    def settle(self) -> None:
        """Wait until what was put aside is safe."""


class SinkConsumer(Protocol):
    """As much of `Consumer` as it takes; what a poll returns is for `_made`."""

    def poll(self, timeout_s: float = ..., /) -> Iterable[Any]: ...
    def assignment(self) -> frozenset[TopicPartition]: ...
    def pause(self, partitions: Iterable[TopicPartition], /) -> None: ...
    def resume(self, partitions: Iterable[TopicPartition], /) -> None: ...
    def seek(self, partition: TopicPartition, offset: int, /) -> None: ...
    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], /) -> None: ...


class SinkContext:
    """What the task may ask."""

    def __init__(
        self,
        config: Config,
        consumer: SinkConsumer,
        reporter: ErrantRecordReporter | None,
    ) -> None:
        self.config = config
        self.errant_record_reporter = reporter
        self.seeks: dict[TopicPartition, int] = {}
        self.timeout_ms = _RETRY_MS
        self.commit_wanted = False
        self.paused: set[TopicPartition] = set()
        self._consumer = consumer

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._consumer.assignment()

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.seeks.update(offsets)

    def set_timeout_ms(self, timeout_ms: int) -> None:
        self.timeout_ms = max(0, timeout_ms)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = list(partitions)
        self.paused.update(wanted)
        self._consumer.pause(wanted)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = list(partitions)
        self.paused.difference_update(wanted)
        self._consumer.resume(wanted)

    def request_commit(self) -> None:
        self.commit_wanted = True


class SinkLoop:
    """Runs until the channel says stop; raises what ends the task."""

    def __init__(
        self,
        task: SinkTask,
        consumer: SinkConsumer,
        context: SinkContext,
        steps: SinkSteps,
        channel: TaskChannel,
        *,
        flush_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task = task
        self._consumer = consumer
        self._context = context
        self._steps = steps
        self._channel = channel
        self._flush_s = flush_s
        self._clock = clock
        self._flushed_s = clock()
        self._offsets: dict[TopicPartition, int] = {}  # After the last record that was put.
        self._committed: dict[TopicPartition, int] = {}
        self._waiting: list[Any] = []  # Refused for now; nothing is read meanwhile.
        self._waiting_next: dict[TopicPartition, int] = {}
        self._retry_s = 0.0
        self._is_paused = False
        self._failure: BaseException | None = None  # Raised while partitions came or went.

    # A RebalanceListener, called inside poll -----------------------------------------------------

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition], /) -> None:
        """These are the task's now."""
        self._guard(lambda: self._open(partitions))

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition], /) -> None:
        """Commit what is done, and let go."""
        self._guard(lambda: self._let_go(partitions, may_commit=True))

    def on_partitions_lost(self, partitions: Sequence[TopicPartition], /) -> None:
        """Others have them already."""
        self._guard(lambda: self._let_go(partitions, may_commit=False))

    # The loop ------------------------------------------------------------------------------------

    def run(self) -> None:
        """After `task.start` and `subscribe`."""
        while not self._channel.stopping.is_set():
            self._obey_pause()
            self._round()
        self._commit()
        self._task.close(self._consumer.assignment())

    def _round(self) -> None:
        self._apply_seeks()
        records = self._consumer.poll(_POLL_S)
        if self._failure is not None:
            raise self._failure
        if self._waiting:
            self._try_again()
        elif polled := list(records):
            self._take(polled)
        due = self._clock() - self._flushed_s >= self._flush_s
        if due or self._context.commit_wanted:
            self._commit()
        self._channel.tell_counts()

    def _take(self, polled: list[Any]) -> None:
        made, ends, count = self._made(polled)
        self._channel.count(READ, count)
        self._waiting, self._waiting_next = made, ends
        self._put()

    def _made(self, polled: list[Any]) -> tuple[list[Any], dict[TopicPartition, int], int]:
        """What goes to the task, where each partition then is, and how many records it was."""
        made = []
        ends: dict[TopicPartition, int] = {}
        for record in polled:
            one = self._steps.to_sink(record)
            ends[TopicPartition(record.topic, record.partition)] = record.offset + 1
            self._channel.tell_topic(record.topic)
            if one is not None:
                made.append(one)
        return made, ends, len(polled)

    def _deliver(self, waiting: list[Any]) -> int:
        """Hand all to the task; how many records it has taken."""
        self._task.put(waiting)
        return len(waiting)

    def _partition_of(self, waiting: Any) -> TopicPartition:
        return _source_of(waiting)

    def _try_again(self) -> None:
        if self._clock() >= self._retry_s:
            self._put()

    def _put(self) -> None:
        try:
            count = self._deliver(self._waiting)
        except RetriableConnectError:
            self._retry_s = self._clock() + self._context.timeout_ms / 1000
            self._consumer.pause(self._consumer.assignment())
            return
        self._channel.count(SENT, count)
        self._offsets.update(self._waiting_next)
        was_refused = self._retry_s > 0
        self._waiting, self._waiting_next, self._retry_s = [], {}, 0.0
        if was_refused and not self._is_paused:
            self._consumer.resume(self._consumer.assignment() - self._context.paused)

    def _obey_pause(self) -> None:
        wanted = self._channel.paused.is_set()
        if wanted == self._is_paused:
            return
        self._is_paused = wanted
        if wanted:
            self._commit()
            self._consumer.pause(self._consumer.assignment())
        elif not self._waiting:
            self._consumer.resume(self._consumer.assignment() - self._context.paused)
        self._channel.tell_state("PAUSED" if wanted else "RUNNING")

    def _apply_seeks(self) -> None:
        wanted, self._context.seeks = self._context.seeks, {}
        for partition, offset in wanted.items():
            if partition in self._consumer.assignment():
                self._consumer.seek(partition, offset)
                self._offsets[partition] = offset

    def _commit(self) -> None:
        self._flushed_s, self._context.commit_wanted = self._clock(), False
        self._steps.settle()
        wanted = dict(self._task.pre_commit(dict(self._offsets)))
        new = {at: end for at, end in wanted.items() if self._committed.get(at) != end}
        if not new:
            return
        try:
            self._consumer.commit({at: OffsetAndMetadata(end) for at, end in new.items()})
        except (CommitFailedError, RetriableError):
            self._channel.count(NOT_COMMITTED)
            return  # A rebalance was faster, or the brokers are away: the next one tells.
        self._channel.count(COMMITTED)
        self._committed.update(new)

    def _open(self, partitions: Sequence[TopicPartition]) -> None:
        self._task.open(partitions)
        self._apply_seeks()
        if self._is_paused or self._waiting:
            self._consumer.pause(partitions)

    def _let_go(self, partitions: Sequence[TopicPartition], *, may_commit: bool) -> None:
        if may_commit:
            self._commit()
        self._task.close(partitions)
        for at in partitions:
            self._offsets.pop(at, None)
            self._committed.pop(at, None)
            self._waiting_next.pop(at, None)
        gone = set(partitions)
        self._waiting = [one for one in self._waiting if self._partition_of(one) not in gone]

    def _guard(self, work: Callable[[], None]) -> None:
        """What the task raises inside of a callback is raised by the loop."""
        try:
            work()
        except PenstockError as error:
            self._failure = self._failure or error
        except Exception as error:  # noqa: BLE001  (whatever the task raises ends it)
            self._failure = self._failure or error


def _source_of(record: SinkRecord) -> TopicPartition:
    topic = record.original_topic or record.topic
    partition = record.partition if record.original_partition is None else record.original_partition
    return TopicPartition(topic, partition or 0)
