"""Tasks of connectors without a worker: the contexts they ask, and the loop around a sink."""

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.connect.plugins.contract import SinkTask, SourceTask
from penstock.connect.records import SinkRecord, SourceRecord
from penstock.connect.values.schema import Schema
from penstock.records.topic_partition import TopicPartition


class SourceRig:
    """A source task's context, with the offsets that were committed."""

    transaction = None

    def __init__(self) -> None:
        self.config: dict[str, str] = {}
        self.kept: dict[frozenset[tuple[str, Any]], dict[str, Any]] = {}

    @property
    def offset_reader(self) -> "SourceRig":
        return self

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.kept.get(frozenset(partition.items()))

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.offset(one) for one in partitions]

    def all_offsets(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return [(dict(partition), offset) for partition, offset in self.kept.items()]

    def keep(self, record: SourceRecord) -> None:
        """Commit the offset behind a record."""
        assert record.source_partition is not None and record.source_offset is not None
        self.kept[frozenset(record.source_partition.items())] = dict(record.source_offset)


class SinkRig:
    """A sink task's context, and what it was asked for."""

    def __init__(self, *, tolerates: bool = False) -> None:
        self.config: dict[str, str] = {}
        self.assignment: frozenset[TopicPartition] = frozenset()
        self.timeout_ms = -1
        self.sought: dict[TopicPartition, int] = {}
        self.reported: list[tuple[int, str]] = []
        self.commit_wanted = False
        self._tolerates = tolerates

    @property
    def errant_record_reporter(self) -> "SinkRig | None":
        return self if self._tolerates else None

    def report(self, record: SinkRecord, error: Exception) -> None:
        self.reported.append((record.offset, str(error)))

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.sought.update(offsets)

    def set_timeout_ms(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        return

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        return

    def request_commit(self) -> None:
        self.commit_wanted = True


def started_sink(
    task: SinkTask,
    config: Mapping[str, str],
    partitions: Iterable[TopicPartition],
    *,
    tolerates: bool = False,
) -> SinkRig:
    """Start a task as the worker does; what it asks for is in the answer."""
    rig = SinkRig(tolerates=tolerates)
    rig.assignment = frozenset(partitions)
    task.initialize(rig)
    task.start(dict(config))
    task.open(rig.assignment)
    return rig


def started_source(
    task: SourceTask, config: Mapping[str, str], rig: SourceRig | None = None
) -> SourceRig:
    """Start a task as the worker does."""
    rig = rig or SourceRig()
    task.initialize(rig)
    task.start(dict(config))
    return rig


def sink_record(
    value: Any,
    offset: int,
    *,
    topic: str = "t",
    partition: int = 0,
    schema: Schema | None = None,
    key: Any = None,
    timestamp: int | None = None,
) -> SinkRecord:
    """A record as the worker makes it."""
    return SinkRecord(
        topic=topic,
        partition=partition,
        key=key,
        value_schema=schema,
        value=value,
        offset=offset,
        timestamp=timestamp,
        original_topic=topic,
        original_partition=partition,
        original_offset=offset,
    )
