"""Columns of a source into topics: encoded all at once, in one transaction with their offsets.

The transactional id and the offset records are those of the ordinary lane, so a task may change
lanes between two runs. The producer takes the id over once, at the start: whoever does so later has
fenced it, and every transaction of its own fails from then on (KIP-618).
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.raw_cluster import cluster_for
from penstock.client.wire.raw_produce import RawProducer
from penstock.client.wire.transaction_control import (
    OpenTransaction,
    ProducerIdAndEpoch,
    add_partitions,
    begin,
    commit_and_go_on,
    end_all,
    idempotent_identity,
)
from penstock.connect.columnar.contract import ColumnBatch
from penstock.connect.columnar.encoding import ColumnEncoder
from penstock.connect.plugins.contract import Converter, SourceTask
from penstock.connect.running.channel import TaskChannel
from penstock.connect.running.counts import COMMITTED, NOT_COMMITTED, WRITTEN
from penstock.connect.running.passed_places import PassedPlaces
from penstock.connect.running.source_offsets import OffsetKeeper
from penstock.connect.store.config_records import LogEntry
from penstock.errors import PenstockError
from penstock.records.topic_partition import TopicPartition
from penstock.spark.columns.encode_batches import BatchBuilder
from penstock.spark.sink.rows import RowSender
from penstock.spark.sink.schema import RecordColumns
from penstock.spark.sink.settings import SinkSettings

_NOTE = RecordColumns(value=0, key=1, headers=None, partition=None, topic=None)


class ValueConverters(Protocol):
    """As much of `Converters` as it takes."""

    key: Converter
    value: Converter


class ColumnWriter:
    """Rows of a task to their topics, with or without transactions. For one thread."""

    def __init__(self, settings: SinkSettings, transactional_id: str | None) -> None:
        self._settings = settings
        self._cluster: ClusterClient = cluster_for(settings.connection)
        self._open: OpenTransaction | None = None  # None: there are no transactions.
        try:
            if transactional_id is not None:
                timeout_ms = settings.transaction_timeout_ms
                self._open = begin(self._cluster, transactional_id, timeout_ms=timeout_ms)
            identity = self._identity()
        except BaseException:
            self._cluster.close()
            raise
        adds = self._open is not None and not self._open.has_own_epoch
        self._producer = RawProducer(
            self._cluster,
            settings.produce,
            transactional_id=transactional_id,
            add_partitions=self._add if adds else None,
        )
        self._builder = self._new_builder(identity)
        self._senders: dict[tuple[str, RecordColumns], RowSender] = {}

    def write(self, topic: str, columns: RecordColumns, rows: Any) -> None:
        """Rows of one topic, stored when this returns."""
        sender = self._senders.get((topic, columns))
        if sender is None:
            sender = RowSender(self._producer, self._builder, self._settings, columns, topic)
            self._senders[topic, columns] = sender
        sender.send_all([rows])

    def write_notes(self, topic: str, notes: Sequence[LogEntry]) -> None:
        """Offset records, each to the partition of its key."""
        values = pa.array([one.value for one in notes], pa.binary())
        keys = pa.array([one.key for one in notes], pa.binary())
        self.write(topic, _NOTE, pa.record_batch([values, keys], names=["value", "key"]))

    def commit(self) -> None:
        """Make what was written since the last commit visible, or raise."""
        assert self._open is not None
        before, self._open = self._open, commit_and_go_on(self._cluster, self._open)
        self._producer.begin_transaction()
        if before.identity != self._open.identity:  # Each epoch counts its batches from zero.
            self._builder = self._new_builder(self._open.identity)
            self._senders.clear()

    def abort(self) -> None:
        """Drop what was written since; whoever begins next would do the same."""
        if self._open is not None:
            end_all(self._cluster, [self._open], commit=False)

    def close(self) -> None:
        """End the thread and the connections."""
        self._producer.close()
        self._cluster.close()

    def _identity(self) -> ProducerIdAndEpoch | None:
        if self._open is not None:
            return self._open.identity
        return idempotent_identity(self._cluster) if self._settings.is_idempotent else None

    def _new_builder(self, identity: ProducerIdAndEpoch | None) -> BatchBuilder:
        settings = self._settings
        return BatchBuilder(
            batch_bytes=settings.batch_bytes,
            record_bytes_max=settings.produce.request_bytes_max,
            codec=settings.codec,
            level=settings.level,
            identity=identity,
            is_transactional=self._open is not None,
        )

    def _add(self, partitions: Sequence[TopicPartition]) -> None:
        assert self._open is not None
        add_partitions(self._cluster, self._open, partitions)


class RowWriter(Protocol):
    """As much of `ColumnWriter` as senders take."""

    def write(self, topic: str, columns: RecordColumns, rows: Any) -> None: ...
    def write_notes(self, topic: str, notes: Sequence[LogEntry]) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...


class _ColumnsOut:
    """Converts batches and writes them; tells topics, and has them made first."""

    def __init__(
        self,
        writer: RowWriter,
        converters: ValueConverters,
        channel: TaskChannel,
        ensure_topic: Callable[[str], None],
    ) -> None:
        self._writer = writer
        self._keys = converters.key
        self._encoder = ColumnEncoder(converters.value)
        self._channel = channel
        self._ensure_topic = ensure_topic
        self._topics: set[str] = set()  # Those that were told.

    def send(self, batch: ColumnBatch) -> None:
        topic, count = batch.topic, len(batch.values)
        values = self._encoder.encode(topic, batch.schema, batch.values)
        self._ensure_topic(topic)
        now_ms = time.time_ns() // 1_000_000
        stamp = now_ms if batch.timestamp_ms is None else batch.timestamp_ms
        arrays = [values, pa.repeat(pa.scalar(stamp, pa.int64()), count)]
        names = ["value", "timestamp"]
        partition = key_at = None
        if batch.partition is not None:
            partition = len(arrays)
            arrays.append(pa.repeat(pa.scalar(batch.partition, pa.int32()), count))
            names.append("partition")
        key = self._keys.from_connect(topic, None, None)
        if key is not None:  # A converter may write something where there is no key.
            key_at = len(arrays)
            arrays.append(pa.repeat(pa.scalar(key, pa.binary()), count))
            names.append("key")
        columns = RecordColumns(
            value=0, key=key_at, headers=None, partition=partition, topic=None, timestamp=1
        )
        self._writer.write(topic, columns, pa.record_batch(arrays, names=names))
        if topic not in self._topics:
            self._topics.add(topic)
            self._channel.tell_topic(topic)


class TransactionalColumns:
    """Exactly once: each transaction has rows and the offsets behind them."""

    def __init__(
        self,
        task: SourceTask,
        connector: str,
        writer: RowWriter,  # With a transactional id.
        converters: ValueConverters,
        channel: TaskChannel,
        *,
        ensure_topic: Callable[[str], None],
        offset_topic: str,
        interval_s: float | None,  # None: a transaction ends with each poll.
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task = task
        self._connector = connector
        self._writer = writer
        self._out = _ColumnsOut(writer, converters, channel, ensure_topic)
        self._channel = channel
        self._offset_topic = offset_topic
        self._interval_s = interval_s
        self._clock = clock
        self._begun_s: float | None = None  # None: no transaction is open.
        self._written = 0
        self._passed = PassedPlaces()

    def send(self, batches: Sequence[ColumnBatch]) -> None:
        """Take what one poll brought."""
        for batch in batches:
            if self._begun_s is None:
                self._begun_s = self._clock()
            self._out.send(batch)
            self._passed.add(batch)
            self._written += len(batch.values)
        if self._interval_s is None:
            self._commit()

    def tend(self, *, at_end: bool = False) -> None:
        """Do what is due; `at_end`: everything, because the task pauses or stops."""
        if self._begun_s is None:
            return
        is_due = self._clock() - self._begun_s >= (self._interval_s or 0.0)
        if at_end or is_due:
            self._commit()

    def give_up(self) -> None:
        """Drop what is not done, because the task failed."""
        if self._begun_s is None:
            return
        self._begun_s = None
        try:
            self._writer.abort()
        except PenstockError:
            return  # Whoever starts next aborts it.

    def _commit(self) -> None:
        if self._begun_s is None:
            return
        notes = self._passed.notes(self._connector)
        try:
            if notes:
                self._writer.write_notes(self._offset_topic, notes)
            self._writer.commit()
        except PenstockError:
            self._channel.count(NOT_COMMITTED)
            raise
        self._channel.count(COMMITTED)
        self._channel.count(WRITTEN, self._written)
        self._begun_s, self._written, self._passed = None, 0, PassedPlaces()
        self._task.commit()


class AcknowledgedColumns:
    """At least once: offsets follow the rows that brokers have acknowledged."""

    def __init__(
        self,
        task: SourceTask,
        connector: str,
        writer: RowWriter,
        converters: ValueConverters,
        keeper: OffsetKeeper,
        channel: TaskChannel,
        *,
        ensure_topic: Callable[[str], None],
        flush_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task = task
        self._connector = connector
        self._out = _ColumnsOut(writer, converters, channel, ensure_topic)
        self._keeper = keeper
        self._channel = channel
        self._flush_s = flush_s
        self._clock = clock
        self._flushed_s = clock()
        self._passed = PassedPlaces()

    def send(self, batches: Sequence[ColumnBatch]) -> None:
        """Take what one poll brought; it is stored when this returns."""
        for batch in batches:
            self._out.send(batch)
            self._passed.add(batch)
            self._channel.count(WRITTEN, len(batch.values))

    def tend(self, *, at_end: bool = False) -> None:
        """Do what is due; `at_end`: everything, because the task pauses or stops."""
        if not at_end and self._clock() - self._flushed_s < self._flush_s:
            return
        self._flushed_s = self._clock()
        notes = self._passed.notes(self._connector)
        if not notes:
            return
        try:
            self._keeper.keep(notes)
        except PenstockError:
            self._channel.count(NOT_COMMITTED)
            raise
        self._channel.count(COMMITTED)
        self._passed.clear()
        self._task.commit()

    def give_up(self) -> None:
        """Nothing is open: what has no offset yet comes again."""


class NoteKeeper:
    """Keeps offsets in a topic, outside of transactions."""

    def __init__(self, writer: RowWriter, topic: str) -> None:
        self._writer = writer
        self._topic = topic

    def keep(self, records: Sequence[LogEntry]) -> None:
        self._writer.write_notes(self._topic, records)
