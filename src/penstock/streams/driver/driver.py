"""TestDriver: pipe records in, read records out, look into stores; no Spark, no broker, no clock.

Each record goes all the way through before the next, with nothing merged or left out: what comes
out is what Kafka Streams' TopologyTestDriver gives with its caches off.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from penstock.streams.plan.nodes import PlanNode, StoreSpec, StreamsTopology
from penstock.streams.steps.user import UserStore
from penstock.streams.tasks.memory import StepMemory
from penstock.streams.tasks.queues import TopicQueues
from penstock.streams.tasks.task import Task
from penstock.streams.values.records import (
    Headers,
    Stamped,
    StreamRecord,
    TimeWindow,
    Windowed,
)
from penstock.streams.values.serdes import Serde, SerdeError
from penstock.streams.words.kafka_words import KafkaWords


@dataclass(slots=True)
class TestDriver(KafkaWords):
    """A topology in memory."""

    __test__ = False  # pytest takes classes by this name for tests.

    topology: StreamsTopology
    wall_clock_ms: int = 0
    as_bytes: bool = False  # Keys and values go in and come out as the topics have them.
    _queues: TopicQueues[StreamRecord] = field(default_factory=TopicQueues)
    _written: dict[str, deque[StreamRecord]] = field(default_factory=dict)
    _taken: dict[str, int] = field(default_factory=dict)  # Records of each topic so far.
    _produced: set[str] = field(default_factory=set)
    _task: Task = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.topology, StreamsTopology):
            raise TypeError(f"a test driver takes what build() returns, not {self.topology!r}")
        self._task = Task(self.topology, self._emit, self.wall_clock_ms)
        self._task.start()

    def __enter__(self) -> "TestDriver":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the user's processors."""
        self._task.close()

    def pipe_input(
        self, topic: str, key: Any, value: Any, timestamp_ms: int, headers: Headers = ()
    ) -> None:
        """Write a record to a topic and let it go through to the end."""
        if not self._readers(topic):
            raise KeyError(f"Unknown topic: {topic}")
        if timestamp_ms < 0:
            raise SerdeError(f"the timestamp of a record, {timestamp_ms}, is negative")
        record = StreamRecord(key=key, value=value, timestamp_ms=timestamp_ms, headers=headers)
        self._queues.add(topic, record)
        self._drain()

    def read_output(self, topic: str) -> StreamRecord | None:
        """The oldest unread record of a topic; None when there is none."""
        self._check_written(topic)
        queue = self._written.get(topic)
        return queue.popleft() if queue else None

    def read_all(self, topic: str) -> list[StreamRecord]:
        """All unread records of a topic."""
        self._check_written(topic)
        return list(self._written.pop(topic, ()))

    def produced_topic_names(self) -> set[str]:
        """The topics that records were written to."""
        return set(self._produced)

    def advance_wall_clock(self, by_ms: int) -> None:
        """Move the clock, and call the punctuators that are due."""
        self._task.wall_clock_ms += by_ms
        self.wall_clock_ms = self._task.wall_clock_ms
        self._task.punctuate("wall")
        self._drain()

    @property
    def stream_time_ms(self) -> int:
        """The latest time of any record; -1 before the first."""
        return self._task.stream_time_ms

    @property
    def store_names(self) -> list[str]:
        """The stores that can be looked into."""
        return [spec.name for spec in self._open_stores()]

    def store(self, name: str) -> "StoreReader":
        """A named store, to look into."""
        for spec in self._open_stores():
            if spec.name == name:
                return StoreReader(self._task, spec)
        known = ", ".join(self.store_names) or "none"
        raise KeyError(f"no store {name!r} to look into; known are: {known}")

    def _open_stores(self) -> list[StoreSpec]:
        return [one for one in self.topology.stores if one.kind not in ("inner", "buffer")]

    def _check_written(self, topic: str) -> None:
        """A topic that no sink can write to is a slip of the pen."""
        sinks = [node for node in self.topology.nodes if node.kind == "sink"]
        is_free = any(node.topic_of is not None for node in sinks)
        if not is_free and not any(topic in node.topics for node in sinks):
            raise KeyError(f"Unknown topic: {topic}; nothing writes to it")

    def _drain(self) -> None:
        while (taken := self._queues.take()) is not None:
            topic, record = taken
            offset = self._taken.get(topic, 0)
            self._taken[topic] = offset + 1
            for source in self._readers(topic):
                read = self._read(source, topic, record)
                self._task.process(source, source.taken_in(read, 0, offset))
            self._task.punctuate("stream")

    def _readers(self, topic: str) -> list[PlanNode]:
        return [node for node in self.topology.sources if topic in node.topics]

    def _emit(self, sink: PlanNode, record: StreamRecord) -> None:
        topic = sink.topics[0] if sink.topic_of is None else sink.topic_of(record)
        if topic not in self.topology.internal_topics:
            record = self._write(sink, record)
            self._written.setdefault(topic, deque()).append(record)
        self._produced.add(topic)
        if self._readers(topic):
            self._queues.add(topic, record)

    def _read(self, source: PlanNode, topic: str, record: StreamRecord) -> StreamRecord:
        """The record as its source reads it; what is internal is never written."""
        if topic in self.topology.internal_topics:
            return record
        return _deserialized(source, record if self.as_bytes else _serialized(source, record))

    def _write(self, sink: PlanNode, record: StreamRecord) -> StreamRecord:
        written = _serialized(sink, record)
        return written if self.as_bytes else _deserialized(sink, written)


def _serialized(node: PlanNode, record: StreamRecord) -> StreamRecord:
    assert node.key_serde is not None and node.value_serde is not None
    key, value = node.key_serde.serialize(record.key), node.value_serde.serialize(record.value)
    return record.with_key(key).with_value(value)


def _deserialized(node: PlanNode, record: StreamRecord) -> StreamRecord:
    assert node.key_serde is not None and node.value_serde is not None
    key, value = node.key_serde.deserialize(record.key), node.value_serde.deserialize(record.value)
    return record.with_key(key).with_value(value)


@dataclass(frozen=True, slots=True)
class StoreReader(KafkaWords):
    """What a store holds now: rows by key, or windows and sessions by key and time."""

    _task: Task
    _spec: StoreSpec

    def get(self, key: Any) -> Any:
        """The value of a key, or None."""
        if self._spec.kind == "user":
            return self._user.get(key)
        self._only("rows")
        row = self._task.row(self._spec.node, key)
        return None if row is None else row.value

    def get_stamped(self, key: Any) -> Stamped | None:
        """The value of a key with its time, or None."""
        self._only("rows")
        return self._task.row(self._spec.node, key)

    def all(self) -> list[tuple[Any, Any]]:
        """All keys and values, in the order of the keys' bytes; windowed keys by time too."""
        if self._spec.kind == "user":
            return list(self._user.all())
        return [(key, value) for _, key, value in self._entries()]

    def range(self, first: Any, last: Any) -> list[tuple[Any, Any]]:
        """The keys between two, both included; None is the start or the end."""
        if self._spec.kind == "user":
            return list(self._user.range(first, last))
        self._only("rows")
        low = self._bytes(first)
        high = None if last is None else self._bytes(last)
        inside = (e for e in self._entries() if e[0] >= low and (high is None or e[0] <= high))
        return [(key, value) for _, key, value in inside]

    def prefix_scan(self, prefix: Any, serde: Serde[Any] | None = None) -> list[tuple[Any, Any]]:
        """The keys whose bytes begin with those of a prefix, by the store's serde or another."""
        if self._spec.kind == "user":
            return list(self._user.prefix_scan(prefix, serde))
        self._only("rows")
        start = (serde or self._spec.key_serde).serialize(prefix) or b""
        return [(key, value) for data, key, value in self._entries() if data.startswith(start)]

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[TimeWindow, Any]]:
        """A key's windows that start within the times, or its sessions that touch them."""
        if self._spec.kind == "sessions":
            windows = [(w.window, v) for _, w, v in self._entries() if w.key == key]
            return [(w, v) for w, v in windows if w.end_ms >= from_ms and w.start_ms <= to_ms]
        self._only("windows")
        windows = [(w.window, v) for _, w, v in self._entries() if w.key == key]
        return [(w, v) for w, v in windows if from_ms <= w.start_ms <= to_ms]

    def _entries(self) -> list[tuple[bytes, Any, Any]]:
        memory = self._task.memory(self._spec.name)
        assert isinstance(memory, StepMemory)
        step: Any = self._task.topology.by_name[self._spec.node].step
        found: list[tuple[bytes, Any, Any]] = []
        for data, key, state in memory.entries():
            if self._spec.kind == "rows":
                found.append((data, key, state.value))
                continue
            oldest_ms = memory.clock.stored_ms - step.windows.retention_ms + 1
            for window, value in self._windows(step, state):
                expires_by = window.end_ms if self._spec.kind == "sessions" else window.start_ms
                if expires_by >= oldest_ms:
                    found.append((data, Windowed(key, window), value))
        return found

    def _windows(self, step: Any, state: Any) -> list[tuple[TimeWindow, Any]]:
        if self._spec.kind == "sessions":
            return list(state)
        size_ms = getattr(step.windows, "size_ms", None)
        span_ms = step.windows.difference_ms if size_ms is None else size_ms
        return [(TimeWindow(start, start + span_ms), row.value) for start, row in state]

    @property
    def _user(self) -> UserStore:
        return self._task.user_stores[self._spec.name]

    def _bytes(self, key: Any) -> bytes:
        return self._spec.key_serde.serialize(key) or b""

    def _only(self, kind: str) -> None:
        if self._spec.kind != kind:
            raise TypeError(f"store {self._spec.name!r} holds {self._spec.kind}, not {kind}")
