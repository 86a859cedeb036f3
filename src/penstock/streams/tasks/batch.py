"""One task's share of one batch: rows in, rows out, and memory from pages to pages.

A host hands in what a batch brought for a partition and where the pages lie, and writes what comes
out in the batch's transaction: results, internal topics and changelogs alike. Nothing here knows
the host, so the same rows and pages always give the same answer.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from penstock.errors import PenstockError
from penstock.schemas.dead_letters import Cause
from penstock.streams.columns.aggregates import CountTally
from penstock.streams.plan.nodes import PlanNode, StoreSpec, StreamsTopology
from penstock.streams.plan.stages import changelog_topic
from penstock.streams.steps.aggregates import AggregateStream, AggregateWindows
from penstock.streams.steps.foreign_key import ForeignAnswer, ForeignSubscription
from penstock.streams.steps.stateless import ToStream
from penstock.streams.steps.window_clock import WindowClock
from penstock.streams.tasks.changelogs import ChangelogWriter, has_changelog
from penstock.streams.tasks.failures import FailureLog, FailureNotes, RecordFailure, listening
from penstock.streams.tasks.holding import held_nodes
from penstock.streams.tasks.paged_memory import ABOUT, PagedMemory, PagedStore
from penstock.streams.tasks.pages import PageShelf
from penstock.streams.tasks.partitioning import is_windowed, windowed_partition
from penstock.streams.tasks.progress import TASK_KEY, TASK_STATE, TaskMarks, position_row
from penstock.streams.tasks.queues import TopicQueues
from penstock.streams.tasks.state_values import (
    decoded,
    decoded_count,
    encoded,
    encoded_count,
)
from penstock.streams.tasks.task import Task
from penstock.streams.values.lanes import KeyTotal
from penstock.streams.values.records import Headers, StreamRecord
from penstock.streams.values.serdes import LONG, SerdeError

ANY_PARTITION = -1
Positions = Mapping[tuple[str, int], int]  # By topic and partition: the first offset not read.


class UnreadableRecord(PenstockError):
    """A record that its serde cannot read, where the user chose to stop at it."""

    def __init__(self, at: str, reason: str) -> None:
        super().__init__(
            f"The record {at} cannot be read: {reason}. Set errors.dead.letter.queue.topic.name "
            "to have such records written there and to go on."
        )


class RowIn(NamedTuple):
    """A record of a topic, as it lies there."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class RowOut(NamedTuple):
    """A record to be written."""

    topic: str
    partition: int  # ANY_PARTITION: by the key.
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWork:
    """What a task has to know of its stage."""

    application_id: str
    topology: StreamsTopology
    own_format: frozenset[str]  # Internal topics whose values no serde writes.
    counts: Mapping[str, int] = field(default_factory=dict)  # Partitions of topics, as named.
    dead_letters: str | None = None  # None: stop at a record that cannot be read.
    failures: FailureLog | None = None  # None: nobody is told of what fails for a record.
    progress: str | None = None  # The topic that is told how far tasks have come; None: nobody is.
    has_state: bool = True
    merges: bool = False  # Whether a batch's records of a key may give one result.

    def name(self, topic: str) -> str:
        """The topic's name on the brokers."""
        internal = topic in self.topology.internal_topics
        return f"{self.application_id}-{topic}" if internal else topic

    @property
    def sources(self) -> dict[str, list[PlanNode]]:
        """The nodes that read a topic, by its name on the brokers."""
        found: dict[str, list[PlanNode]] = {}
        for node in self.topology.sources:
            for topic in node.topics:
                found.setdefault(self.name(topic), []).append(node)
        return found


class SinkPlace(NamedTuple):
    """What is the same for all records of a sink."""

    topic: str | None  # None: chosen by record.
    is_own_format: bool
    is_windowed: bool


@dataclass(slots=True)
class TaskBatch:
    """A task while it works on a batch."""

    work: StageWork
    partition: int
    shelf_of: Callable[[str], PageShelf]
    wall_clock_ms: int = 0
    out: list[RowOut] = field(default_factory=list)
    notes: FailureNotes | None = None  # Of all parts of a batch, where it comes in parts.
    _row: RowIn | None = None  # Under way; None: it is time that makes results.
    _task: Task = field(init=False)
    _sources: dict[str, list[PlanNode]] = field(init=False)
    _stores: dict[str, PagedMemory] = field(default_factory=dict)
    _places: dict[str, SinkPlace] = field(default_factory=dict)  # By the sink's name.
    _marks: TaskMarks = field(default_factory=TaskMarks)

    def __post_init__(self) -> None:
        self._sources = self.work.sources
        if self.notes is None and self.work.failures is not None:
            self.notes = FailureNotes(self.work.failures)
        self._task = Task(
            self.work.topology,
            self._emit,
            self.wall_clock_ms,
            make_memory=self._memory,
            make_store=self._user_store,
            holds=held_nodes(self.work.topology) if self.work.merges else frozenset(),
        )
        self._task.start()
        self._recall()

    def run(self, rows: Iterable[RowIn]) -> list[RowOut]:
        """Take all rows through, in the order Kafka Streams would; then write memory back."""
        ordered = sorted(rows)  # By topic, partition and offset, which no two have alike.
        with listening(self._failed):
            self._process(ordered)
        self._task.close()
        self._remember({(row.topic, row.partition): row.offset + 1 for row in ordered})
        return self.out

    def run_left(self, rows: Iterable[RowIn], seen_ms: int, ends: Positions) -> list[int]:
        """Take the rows through that a lane has left; how much was written after each of them.

        `seen_ms` is the latest time that the lane saw, `ends` where the next batch begins.
        """
        written = []
        with listening(self._failed):
            for row in rows:
                self._process([row])
                written.append(len(self.out))
        self._task.close()
        self._task.stream_time_ms = max(self._task.stream_time_ms, seen_ms)
        self._remember(ends)
        return written

    def _process(self, ordered: list[RowIn]) -> None:
        task = self._task
        for row in self._merged(ordered):
            self._row = row
            for source in self._sources.get(row.topic, ()):
                record = self._record(source, row)
                if record is not None:
                    task.process(source, record)
            if task.punctuations:
                task.punctuate("stream")
        self._row = None
        task.punctuate("wall")
        task.release()

    def rest_of_failures(self) -> list[RowOut]:
        """What is told of failures when the batch is through."""
        data = None if self.notes is None else self.notes.rest(self.wall_clock_ms)
        return [] if data is None else [self._failure_row(data)]

    def _failed(self, reason: str, part: str | None = None) -> None:
        """Write down what failed, if anybody wants to know and the batch has room."""
        if self.notes is None:
            return
        failure, row = RecordFailure(reason, self.wall_clock_ms, part), self._row
        if row is not None:
            failure = failure._replace(
                topic=row.topic,
                partition=row.partition,
                offset=row.offset,
                data=row.key if part == "key" else row.value,
            )
        data = self.notes.entry(failure)
        if data is not None:
            self.out.append(self._failure_row(data))

    def _failure_row(self, data: bytes) -> RowOut:
        assert self.work.failures is not None
        topic = self.work.failures.topic
        return RowOut(topic, ANY_PARTITION, None, data, (), self.wall_clock_ms)

    def run_groups(
        self,
        node: PlanNode,
        groups: Iterable[KeyTotal],
        seen_ms: int,
        ends: Positions,
        read_ms: int = -1,
    ) -> list[RowOut]:
        """Take what the batch adds up to for each key, or key and window; then write memory back.

        `seen_ms` is the latest time that is added up, `read_ms` that of all records of the batch if
        somebody looked, `ends` where the next one begins. The groups come
        in the order of their times, so that whoever waits for time to pass sees each window before
        what closes it.
        """
        task = self._task
        task.stream_time_ms = max(task.stream_time_ms, seen_ms)
        assert node.key_serde is not None
        key_of = node.key_serde.deserialize
        with listening(self._failed):
            if isinstance(node.step, AggregateWindows):
                self._merge_windows(node, node.step, groups, seen_ms)
            elif (sinks := self._count_sinks(node)) is not None:
                self._merge_counts(node, sinks, groups)
            elif isinstance(node.step, AggregateStream):
                for one in groups:
                    at_ms = one.at_ms
                    record = StreamRecord(key=key_of(one.key), value=one.row, timestamp_ms=at_ms)
                    task.merge(node, one.key, record, node.step.merge)
        task.stream_time_ms = max(task.stream_time_ms, read_ms)
        self._remember(ends)
        return self.out

    def _count_sinks(self, node: PlanNode) -> list[PlanNode] | None:
        """The sinks of a plain count that is written as it is; None: more becomes of it."""
        step, topology = node.step, self.work.topology
        if not isinstance(step, AggregateStream) or not isinstance(step.tally, CountTally):
            return None
        streams = topology.children[node.name]
        sinks = [sink for stream in streams for sink in topology.children[stream.name]]
        plain = all(isinstance(stream.step, ToStream) for stream in streams)
        return sinks if plain and all(_is_plain(sink, node) for sink in sinks) else None

    def _merge_counts(
        self, node: PlanNode, sinks: list[PlanNode], groups: Iterable[KeyTotal]
    ) -> None:
        """What merging key by key does, straight from bytes to bytes."""
        assert node.state is not None
        memory, store = self._task.memory(node.state), self._store(node.state)
        assert isinstance(memory, PagedMemory)
        topics = [(self.work.name(sink.topics[0]), ANY_PARTITION) for sink in sinks]
        if has_changelog(self.work.topology, store):
            changelog = f"{self.work.application_id}-{changelog_topic(store)}"
            topics.append((changelog, self.partition))
        for key, _, at_ms, count in groups:
            data = memory.stored(key)
            if data is not None:
                before, before_ms = decoded_count(data)
                count, at_ms = before + count, max(before_ms, at_ms)
            memory.store(key, encoded_count(count, at_ms))
            value = count.to_bytes(8, "big")
            for topic, partition in topics:
                self.out.append(RowOut(topic, partition, key, value, (), at_ms))

    def _merge_windows(
        self, node: PlanNode, step: AggregateWindows, groups: Iterable[KeyTotal], seen_ms: int
    ) -> None:
        assert node.state is not None and node.key_serde is not None
        memory = self._task.memory(node.state)
        memory.clock = memory.clock or WindowClock()
        closes_ms = memory.clock.stream_ms(step.part) - step.windows.grace_ms
        key_of = node.key_serde.deserialize
        for one in groups:
            record = StreamRecord(key=key_of(one.key), value=one.row, timestamp_ms=one.at_ms)
            take = partial(step.merge, start_ms=one.start_ms, closes_ms=closes_ms)
            self._task.merge(node, one.key, record, take)
        if seen_ms >= 0:
            memory.clock = memory.clock.saw(step.part, seen_ms)

    @property
    def _global_topics(self) -> set[str]:
        return {name for name, nodes in self._sources.items() if all(n.is_global for n in nodes)}

    def _merged(self, ordered: list[RowIn]) -> Iterable[RowIn]:
        """Global tables first; of the others the earliest head, each topic in its own order."""
        topics = {row.topic for row in ordered}
        if len(topics) < 2:
            return ordered
        whole = self._global_topics
        queues: TopicQueues[RowIn] = TopicQueues()
        for row in ordered:
            if row.topic not in whole:
                queues.add(row.topic, row)
        merged = [row for row in ordered if row.topic in whole]
        while (taken := queues.take()) is not None:
            merged.append(taken[1])
        return merged

    def _record(self, source: PlanNode, row: RowIn) -> StreamRecord | None:
        assert source.key_serde is not None and source.value_serde is not None
        stage = "KEY_CONVERTER"
        try:
            if row.timestamp_ms < 0:
                raise SerdeError(f"its timestamp, {row.timestamp_ms}, is negative")
            key = source.key_serde.deserialize(row.key)
            stage = "VALUE_CONVERTER"
            value = self._value_in(source, row)
            return _taken_in(source, row, key, value)
        except SerdeError as error:
            self._set_aside(row, stage, error)
            return None

    def _value_in(self, source: PlanNode, row: RowIn) -> Any:
        assert source.value_serde is not None
        if not self._is_own_format(source) or row.value is None:
            return source.value_serde.deserialize(row.value)
        return decoded(row.value, source.value_serde)

    def _set_aside(self, row: RowIn, stage: str, error: SerdeError) -> None:
        """A record that cannot be read: a dead letter, or the end."""
        at = f"{row.topic}-{row.partition}@{row.offset}"
        letters = self.work.dead_letters
        if letters is None:
            # Of a chain of errors the first is told, and this one says it all.
            raise UnreadableRecord(at, str(error)) from None
        cause = Cause(
            topic=row.topic,
            partition=row.partition,
            offset=row.offset,
            timestamp_ms=row.timestamp_ms,
            pipeline=self.work.application_id,
            stage=stage,
            error_class=type(error).__name__,
            message=str(error),
        )
        self._failed(str(error), "key" if stage == "KEY_CONVERTER" else "value")
        headers = (*row.headers, *cause.headers())
        time_ms = max(0, row.timestamp_ms)
        self.out.append(RowOut(letters, ANY_PARTITION, row.key, row.value, headers, time_ms))

    def _emit(self, sink: PlanNode, record: StreamRecord) -> None:
        assert sink.key_serde is not None and sink.value_serde is not None
        place = self._places.get(sink.name) or self._place(sink)
        topic, partition = place.topic, None
        if topic is None:
            assert sink.topic_of is not None
            topic = sink.topic_of(record)
        key = sink.key_serde.serialize(record.key)
        if place.is_own_format:
            value, partition = self._own_format(sink, record.value)
        else:
            value = sink.value_serde.serialize(record.value)
            if place.is_windowed:
                partition = windowed_partition(sink.key_serde, key, self.work.counts.get(topic))
        number = ANY_PARTITION if partition is None else partition
        self.out.append(RowOut(topic, number, key, value, record.headers, record.timestamp_ms))

    def _place(self, sink: PlanNode) -> SinkPlace:
        topic = self.work.name(sink.topics[0]) if sink.topic_of is None else None
        assert sink.key_serde is not None
        place = SinkPlace(topic, self._is_own_format(sink), is_windowed(sink.key_serde))
        self._places[sink.name] = place
        return place

    def _own_format(self, sink: PlanNode, value: Any) -> tuple[bytes | None, int | None]:
        """The bytes of a change or a subscription, and where an answer has to go."""
        if isinstance(value, ForeignSubscription):
            value = replace(value, partition=self.partition)
        to = value.partition if isinstance(value, ForeignAnswer) else None
        return encoded(value, sink.value_serde), to

    def _is_own_format(self, node: PlanNode) -> bool:
        return not self.work.own_format.isdisjoint(node.topics)

    def _memory(self, state: str) -> PagedMemory:
        store = self._store(state)
        lapses = self._changelog(store).lapses
        return PagedMemory(self.shelf_of(state), store.key_serde, store.value_serde, lapses)

    def _store(self, name: str) -> StoreSpec:
        return next(store for store in self.work.topology.stores if store.name == name)

    def _changelog(self, store: StoreSpec) -> ChangelogWriter:
        return ChangelogWriter.of(store, self.work.topology.by_name.get(store.node))

    def _user_store(self, store: StoreSpec) -> PagedStore:
        self._stores[store.name] = self._memory(store.name)
        return PagedStore(self._stores[store.name])

    def _recall(self) -> None:
        data = self.shelf_of(TASK_STATE).load(ABOUT)
        if data is None:
            return
        self._marks = TaskMarks.read(data)
        self._task.stream_time_ms = self._marks.stream_ms
        for punctuation, due_ms in zip(self._task.punctuations, self._marks.due_ms, strict=False):
            punctuation.due_ms = due_ms

    def _remember(self, ends: Positions | None = None) -> None:
        """Write memory back, and tell it; `ends` says where the next batch begins, if known."""
        memories = {**self._task.memories, **self._stores}
        for name, memory in memories.items():
            assert isinstance(memory, PagedMemory)
            self._write_changelog(name, memory)
        clocks = {name: m.clock for name, m in memories.items() if m.clock is not None}
        self._marks = TaskMarks(
            stream_ms=self._task.stream_time_ms,
            due_ms=tuple(punctuation.due_ms for punctuation in self._task.punctuations),
            clocks={**self._marks.clocks, **clocks},
            is_placed=ends is not None,
        )
        self.shelf_of(TASK_STATE).save(ABOUT, self._marks.written())
        self._tell_progress(ends or {})

    def _tell_progress(self, ends: Positions) -> None:
        """For whoever loses the pages; global tables are read whole again, so they have no end."""
        if self.work.progress is None:
            return
        told = [(self.partition, TASK_KEY, self._marks.written())] if self.work.has_state else []
        for (topic, partition), offset in ends.items():
            if topic not in self._global_topics:
                told.append((partition, *position_row(topic, partition, offset)))
        time_ms = max(0, self._task.stream_time_ms)
        for partition, key, value in told:
            self.out.append(RowOut(self.work.progress, partition, key, value, (), time_ms))

    def _write_changelog(self, name: str, memory: PagedMemory) -> None:
        store = self._store(name)
        writer, topic = self._changelog(store), changelog_topic(store)
        topic = f"{self.work.application_id}-{topic}"
        told = has_changelog(self.work.topology, store)
        for change in memory.flush():
            rows = writer.rows(change, self._task.stream_time_ms) if told else ()
            for key, value, at_ms in rows:
                self.out.append(RowOut(topic, self.partition, key, value, (), at_ms))


def _is_plain(sink: PlanNode, node: PlanNode) -> bool:
    """Whether a sink writes a count's bytes as its store has them."""
    same_key = sink.key_serde == node.key_serde
    # By name: the functions of a serde that came to a worker are not those of the constant.
    longs = all(one.value_serde and one.value_serde.name == LONG.name for one in (sink, node))
    return sink.kind == "sink" and sink.topic_of is None and same_key and longs


def _taken_in(source: PlanNode, row: RowIn, key: Any, value: Any) -> StreamRecord:
    record = StreamRecord(key=key, value=value, timestamp_ms=row.timestamp_ms, headers=row.headers)
    return source.taken_in(record, row.partition, row.offset)
