"""One task's share of one batch: rows in, rows out, and memory from pages to pages.

A host hands in what a batch brought for a partition and where the pages lie, and writes what comes
out in the batch's transaction: results, internal topics and changelogs alike. Nothing here knows
the host, so the same rows and pages always give the same answer.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from penstock.errors import PenstockError
from penstock.schemas.dead_letters import Cause
from penstock.streams.plan.nodes import PlanNode, StoreSpec, StreamsTopology
from penstock.streams.plan.stages import changelog_topic
from penstock.streams.steps.foreign_key import ForeignAnswer, ForeignSubscription, Instruction
from penstock.streams.tasks.changelogs import KEPT, ChangelogWriter
from penstock.streams.tasks.paged_memory import ABOUT, PagedMemory, PagedStore
from penstock.streams.tasks.pages import PageShelf
from penstock.streams.tasks.partitioning import windowed_partition
from penstock.streams.tasks.queues import TopicQueues
from penstock.streams.tasks.state_values import decoded, encoded
from penstock.streams.tasks.task import Task
from penstock.streams.values.records import Headers, StreamRecord
from penstock.streams.values.serdes import SerdeError

ANY_PARTITION = -1
_TASK_STATE = ""  # The shelf of what belongs to the task and to no store.


class UnreadableRecord(PenstockError):
    """A record that its serde cannot read, where the user chose to stop at it."""


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


@dataclass(slots=True)
class TaskBatch:
    """A task while it works on a batch."""

    work: StageWork
    partition: int
    shelf_of: Callable[[str], PageShelf]
    wall_clock_ms: int = 0
    out: list[RowOut] = field(default_factory=list)
    _task: Task = field(init=False)
    _sources: dict[str, list[PlanNode]] = field(init=False)
    _stores: dict[str, PagedMemory] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sources = self.work.sources
        self._task = Task(
            self.work.topology,
            self._emit,
            self.wall_clock_ms,
            make_memory=self._memory,
            make_store=self._user_store,
        )
        self._task.start()
        self._recall()

    def run(self, rows: Iterable[RowIn]) -> list[RowOut]:
        """Take all rows through, in the order Kafka Streams would; then write memory back."""
        for row in self._ordered(rows):
            for source in self._sources.get(row.topic, ()):
                record = self._record(source, row)
                if record is not None:
                    self._task.process(source, record)
            self._task.punctuate("stream")
        self._task.punctuate("wall")
        self._task.close()
        self._remember()
        return self.out

    def _ordered(self, rows: Iterable[RowIn]) -> Iterable[RowIn]:
        """Global tables first; of the others the earliest head, each topic in its own order."""
        ordered = sorted(rows, key=lambda row: (row.topic, row.partition, row.offset))
        topics = {row.topic for row in ordered}
        if len(topics) < 2:
            return ordered
        whole = {name for name, nodes in self._sources.items() if all(n.is_global for n in nodes)}
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
                raise SerdeError(f"its timestamp is {row.timestamp_ms}")
            key = source.key_serde.deserialize(row.key)
            stage = "VALUE_CONVERTER"
            value = self._value_in(source, row)
        except SerdeError as error:
            self._set_aside(row, stage, error)
            return None
        return StreamRecord(
            key=key, value=value, timestamp_ms=row.timestamp_ms, headers=row.headers
        )

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
            raise UnreadableRecord(
                f"The record {at} cannot be read: {error}. Set errors.dead.letter.queue.topic.name "
                "to have such records written there and to go on."
            ) from None  # Of a chain of errors the first is told, and this one says it all.
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
        headers = (*row.headers, *cause.headers())
        time_ms = max(0, row.timestamp_ms)
        self.out.append(RowOut(letters, ANY_PARTITION, row.key, row.value, headers, time_ms))

    def _emit(self, sink: PlanNode, record: StreamRecord) -> None:
        assert sink.key_serde is not None and sink.value_serde is not None
        topic = self.work.name(sink.topics[0]) if sink.topic_of is None else sink.topic_of(record)
        key = sink.key_serde.serialize(record.key)
        if self._is_own_format(sink):
            value, partition = self._own_format(sink, record.value)
        else:
            value = sink.value_serde.serialize(record.value)
            partition = windowed_partition(sink.key_serde, key, self.work.counts.get(topic))
        place = ANY_PARTITION if partition is None else partition
        self.out.append(RowOut(topic, place, key, value, record.headers, record.timestamp_ms))

    def _own_format(self, sink: PlanNode, value: Any) -> tuple[bytes | None, int | None]:
        """The bytes of a change or a subscription, and where an answer has to go."""
        if isinstance(value, ForeignSubscription):
            # In one batch a row may change before an answer to its old version comes, which is then
            # dropped. So every version is answered, with nothing if need be: tables end right.
            silent = value.ask is Instruction.TELL_IF_FOUND
            ask = Instruction.TELL_ALWAYS if silent else value.ask
            value = replace(value, partition=self.partition, ask=ask)
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
        data = self.shelf_of(_TASK_STATE).load(ABOUT)
        if data is None:
            return
        self._task.stream_time_ms, due = decoded(data)
        for punctuation, due_ms in zip(self._task.punctuations, due, strict=False):
            punctuation.due_ms = due_ms

    def _remember(self) -> None:
        memories = {**self._task.memories, **self._stores}
        for name, memory in memories.items():
            assert isinstance(memory, PagedMemory)
            self._write_changelog(name, memory)
        due = [punctuation.due_ms for punctuation in self._task.punctuations]
        data = encoded((self._task.stream_time_ms, due))
        self.shelf_of(_TASK_STATE).save(ABOUT, data)

    def _write_changelog(self, name: str, memory: PagedMemory) -> None:
        store = self._store(name)
        writer, topic = self._changelog(store), changelog_topic(store)
        topic = f"{self.work.application_id}-{topic}"
        told = store.changelog and store.kind in KEPT and not store.is_global
        for change in memory.flush():
            rows = writer.rows(change, self._task.stream_time_ms) if told else ()
            for key, value, at_ms in rows:
                self.out.append(RowOut(topic, self.partition, key, value, (), at_ms))
