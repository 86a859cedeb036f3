"""One task of a source, run by hand.

    with SourceRun(WeatherSource, {"city": "Bern", "topic": "t"}) as run:
        run.poll()                          # Polled, not yet in the topic.
        run.crash()                         # All that is lost, and the task starts anew.
        run.run_until(lambda: len(run.values("t")) == 10)
        assert run.offsets == {...}

Converters, transforms and offsets are those of a worker. `poll` and `commit` are apart,
so that a test can stop between any two steps; what was polled and not committed counts for nothing
after a crash, as after an aborted transaction.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Self

from penstock.client.values import ProducerRecord
from penstock.connect.errors.kinds import RetriableConnectError
from penstock.connect.plugins.contract import SourceConnector, SourceTask
from penstock.connect.records import SourceRecord
from penstock.connect.running.passed_places import encode_source_offset
from penstock.connect.running.source_loop import SourceContext
from penstock.connect.running.source_offsets import SourceOffsets
from penstock.connect.running.steps import Converters, TransformRow
from penstock.connect.store.offset_records import decode_offset
from penstock.connect.testing.checks import STRINGS, task_config

_NAME = "tested"
_TIMEOUT_S = 60.0


class SourceRun:
    """A source's task with its topics and offsets; `with` starts and stops it."""

    def __init__(
        self,
        connector: type[SourceConnector],
        config: Mapping[str, str],
        *,
        task: int = 0,
        tasks_max: int = 1,
        converters: Mapping[str, str] = STRINGS,
    ) -> None:
        self.connector = connector
        self.config = task_config(connector, config, task=task, tasks_max=tasks_max)
        self.topics: dict[str, list[ProducerRecord[bytes, bytes]]] = {}
        self._converters = Converters(config, converters)
        self._transforms = TransformRow(config)
        self._kept: dict[bytes, bytes | None] = {}
        self._polled: list[SourceRecord] = []
        self._task: SourceTask | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def task(self) -> Any:
        """The task that runs."""
        assert self._task is not None, "it is not started"
        return self._task

    @property
    def offsets(self) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
        """What is committed: source partitions with their offsets."""
        found = [decode_offset(key, value) for key, value in self._kept.items()]
        return [(one.partition, one.offset) for one in found]

    def start(self) -> None:
        """Make a task, and start it where the last commit was."""
        known = SourceOffsets(_NAME)
        for key, value in self._kept.items():
            known.take(key, value)
        self._task = self.connector.task_class()()
        self.task.initialize(
            SourceContext(config=self.config, offset_reader=known, transaction=None)
        )
        self.task.start(self.config)

    def poll(self) -> list[SourceRecord]:
        """One poll; its records wait for `commit`. A retriable error is a poll without records."""
        try:
            records = self.task.poll() or []
        except RetriableConnectError:
            time.sleep(0.05)
            return []
        self._polled += records
        return list(records)

    def commit(self) -> None:
        """Everything polled is in its topic, its offsets are kept, and the task is told."""
        polled, self._polled = self._polled, []
        for record in polled:
            note = encode_source_offset(_NAME, record)
            if note is not None:
                self._kept[note.key] = note.value
        for record in polled:
            self._store(record)
        self.task.commit()

    def crash(self) -> None:
        """End without a word to anybody, and start anew: what was not committed is lost."""
        self._polled.clear()
        self.task.stop()
        self.start()

    def stop(self) -> None:
        """End in good order; what was polled and not committed is lost."""
        if self._task is not None:
            self._task.stop()
            self._task = None
        self._polled.clear()

    def restart(self) -> None:
        """Commit, end, and start again."""
        self.commit()
        self.stop()
        self.start()

    def run_until(self, is_done: Callable[[], bool], *, timeout_s: float = _TIMEOUT_S) -> None:
        """Poll and commit until it is; AssertionError when it never is."""
        give_up_s = time.monotonic() + timeout_s
        while not is_done():
            if time.monotonic() >= give_up_s:
                counts = {topic: len(records) for topic, records in self.topics.items()}
                raise AssertionError(f"not done after {timeout_s:g} s; records so far: {counts}")
            self.poll()
            self.commit()

    def values(self, topic: str) -> list[str]:
        """The values in a topic, as text."""
        return [(one.value or b"").decode() for one in self.topics.get(topic, [])]

    def keys(self, topic: str) -> list[str | None]:
        """The keys in a topic, as text."""
        return [None if r.key is None else r.key.decode() for r in self.topics.get(topic, [])]

    def _store(self, record: SourceRecord) -> None:
        left = self._transforms.apply(record)
        if left is None:
            self.task.commit_record(record, partition=None, offset=None)
            return
        log = self.topics.setdefault(left.topic, [])
        log.append(self._converters.to_producer(left))
        self.task.commit_record(record, partition=left.partition or 0, offset=len(log) - 1)
