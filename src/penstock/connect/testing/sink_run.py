"""One task of a sink, run by hand.

    with SinkRun(LampSink, {"topics": "t", "lamp": "1"}) as run:
        run.produce("t", b"on", key=b"lamp")
        run.deliver()                       # put, not yet flushed.
        run.crash()                         # What was not committed is brought again.
        run.deliver()
        run.commit()
        assert run.committed == {("t", 0): 1}

Converters and transforms are those of a worker. Records that the target refuses are in `dead`, if
`errors.tolerance=all` says so.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from penstock.client.headers import record_headers
from penstock.client.values import ConsumerRecord
from penstock.connect.errors.kinds import RetriableConnectError
from penstock.connect.plugins.contract import SinkConnector, SinkTask
from penstock.connect.records import SinkRecord
from penstock.connect.running.steps import Converters, TransformRow
from penstock.connect.testing.checks import STRINGS, task_config
from penstock.records.topic_partition import TopicPartition

_TIMEOUT_S = 60.0
_RETRY_S = 0.1


class SinkRun:
    """A sink's task with the topics it reads; `with` starts and stops it."""

    def __init__(
        self,
        connector: type[SinkConnector],
        config: Mapping[str, str],
        *,
        converters: Mapping[str, str] = STRINGS,
    ) -> None:
        self.connector = connector
        self.config = task_config(connector, config, task=0, tasks_max=1)
        self.committed: dict[tuple[str, int], int] = {}
        self.dead: list[tuple[SinkRecord, Exception]] = []
        self.retries = 0  # How often the task said: later.
        self.errant_record_reporter = (
            self if config.get("errors.tolerance", "none") == "all" else None
        )
        self._converters = Converters(config, converters)
        self._transforms = TransformRow(config)
        self._logs: dict[TopicPartition, list[ConsumerRecord[bytes, bytes]]] = {}
        self._next: dict[TopicPartition, int] = {}
        self._task: SinkTask | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # What the test does ---------------------------------------------------------------------------

    @property
    def task(self) -> Any:
        """The task that runs."""
        assert self._task is not None, "it is not started"
        return self._task

    def produce(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int = 0,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int = 0,
    ) -> None:
        """A record at the end of a topic's partition."""
        log = self._logs.setdefault(TopicPartition(topic, partition), [])
        log.append(
            ConsumerRecord(
                topic=topic,
                partition=partition,
                offset=len(log),
                timestamp_ms=timestamp_ms,
                timestamp_type="CreateTime",
                key=key,
                value=value,
                headers=record_headers(headers),
            )
        )

    def start(self) -> None:
        """Make a task, and start it where the last commit was."""
        self._next = {TopicPartition(*at): end for at, end in self.committed.items()}
        self._task = self.connector.task_class()()
        self.task.initialize(self)
        self.task.start(self.config)
        self.task.open(self.assignment)

    def deliver(self, *, timeout_s: float = _TIMEOUT_S) -> None:
        """Everything that is new goes to `put`, again while the task says later."""
        ends = {at: len(log) for at, log in self._logs.items()}
        records = [one for at in ends for one in self._logs[at][self._next.get(at, 0) :]]
        made = [self._transforms.apply(self._converters.to_sink(one)) for one in records]
        self._put([one for one in made if one is not None], timeout_s)
        self._next.update(ends)

    def commit(self) -> None:
        """Flush, and keep the offsets that the task allows."""
        allowed = self.task.pre_commit(dict(self._next))
        self.committed.update({(at.topic, at.partition): end for at, end in allowed.items()})

    def crash(self) -> None:
        """End without a commit, and start anew."""
        self.task.stop()
        self.start()

    def stop(self) -> None:
        """Close and end, as a worker does after its last commit."""
        if self._task is not None:
            self._task.close(self.assignment)
            self._task.stop()
            self._task = None

    # What the task asks ---------------------------------------------------------------------------

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that have records."""
        return frozenset(self._logs)

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Put a record aside."""
        self.dead.append((record, error))

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on from here."""
        self._next.update(offsets)

    def set_timeout_ms(self, timeout_ms: int) -> None:
        """A test waits for no longer than it must."""

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """A test brings what it wants."""

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """The same."""

    def request_commit(self) -> None:
        """The test decides when."""

    def _put(self, records: list[SinkRecord], timeout_s: float) -> None:
        give_up_s = time.monotonic() + timeout_s
        while True:
            try:
                self.task.put(records)
            except RetriableConnectError:
                self.retries += 1
                if time.monotonic() >= give_up_s:
                    raise
                time.sleep(_RETRY_S)
            else:
                return
