"""A sink of objects: records into files, files into a store, offsets behind them.

Offsets are committed at cuts alone, behind what the store has. A record that the format or the
partitioner cannot take is put aside where `errors.tolerance` allows it, and else ends the task.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, ClassVar

import numpy as np

from penstock.connect.columnar.contract import ColumnarSinkTask, ValueColumns
from penstock.connect.connectors.objects.formats.contract import format_word, object_format
from penstock.connect.connectors.objects.kinds import StoreKind
from penstock.connect.connectors.objects.names import NameRules
from penstock.connect.connectors.objects.open_files import (
    CutRules,
    CutState,
    FinishedCut,
    OpenFile,
    StoredFile,
)
from penstock.connect.connectors.objects.partitioners import (
    is_by_partition,
    partitioner,
    source_offset,
    source_partition,
    source_topic,
)
from penstock.connect.connectors.objects.settings import SINK_CONFIG
from penstock.connect.connectors.objects.store import ObjectStore
from penstock.connect.connectors.objects.times import time_extractor
from penstock.connect.errors.kinds import DataError, RetriableConnectError
from penstock.connect.plugins.config_def import ConfigDef
from penstock.connect.plugins.contract import Config
from penstock.connect.records import SinkRecord
from penstock.connect.values.schema import Schema
from penstock.records.topic_partition import TopicPartition

log = logging.getLogger("penstock.connect")


class ObjectLayout:
    """What the settings say about folders, names, formats and cuts."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.form = object_format(config)
        self.folder_of = partitioner(config)
        self.time_of = time_extractor(config["timestamp.extractor"], config["timestamp.field"])
        self.rules = CutRules(
            flush_size=config["flush.size"],
            interval_ms=config["rotate.interval.ms"],
            schedule_ms=config["rotate.schedule.interval.ms"],
        )
        self.names = NameRules(
            topics_dir=config["topics.dir"].strip("/"),
            directory_delimiter=config["directory.delim"],
            file_delimiter=config["file.delim"],
            width=config["filename.offset.zero.pad.width"],
        )
        self.ignores_nulls = config["behavior.on.null.values"].lower() == "ignore"
        is_zipped = config.get("s3.compression.type") == "gzip"
        self.gzip_level = config.get("s3.compression.level", 6) if is_zipped else None

    @property
    def extension(self) -> str:
        return self.form.extension + ("" if self.gzip_level is None else ".gz")

    def name(self, at: TopicPartition, folder: str, file: OpenFile) -> str:
        """The whole name of an object."""
        last = self.names.name(at.topic, at.partition, file.first_offset, self.extension)
        return f"{folder}/{last}"


class PartitionFiles:
    """One topic partition: the files that are open, and the cuts that wait for the store."""

    def __init__(self, at: TopicPartition, layout: ObjectLayout) -> None:
        self._at = at
        self._layout = layout
        self._state = CutState(rules=layout.rules)
        self._open: dict[str, OpenFile] = {}  # By folder.
        self._cuts: list[FinishedCut] = []
        self._next: int | None = None  # The offset of the next record; None: none came yet.
        self._stored: int | None = None  # What may be committed; None: nothing yet.

    def take(self, record: SinkRecord, now_ms: int) -> None:
        """Add a record; DataError for one that cannot be written, which is then passed."""
        offset = source_offset(record)
        if self._next is not None and offset < self._next:
            return  # It came before, in a `put` that failed later.
        try:
            if record.value is not None or not self._layout.ignores_nulls:
                self._write(record, offset, now_ms)
        finally:
            self._next = offset + 1

    def take_columns(self, batch: ValueColumns, now_ms: int) -> bool:
        """Add values as `take` adds records; False: the format takes them one by one."""
        layout, offsets, values = self._layout, batch.offsets, batch.values
        at = 0 if self._next is None else int(np.searchsorted(offsets, self._next))
        folder = layout.names.folder(self._at.topic, f"partition={self._at.partition}")
        while at < len(offsets):
            file = self._open.get(folder)
            if file is not None and file.schema != batch.schema:
                self._cut(int(offsets[at]))
                file = None
            file = file or self._begin(batch.schema, int(offsets[at]))
            end = min(len(offsets), at + layout.rules.flush_size - file.count)
            if not file.write_columns(values.slice(at, end - at)):
                return False
            self._open[folder] = file
            self._state.begin(now_ms, now_ms)
            at, self._next = end, int(offsets[end - 1]) + 1
            if file.count >= layout.rules.flush_size:
                self._cut(self._next)
        return True

    def cut_if_due(self, now_ms: int) -> None:
        """End the open files if the clock says so."""
        if self._state.is_due(now_ms) and self._next is not None:
            self._cut(self._next)

    def store(self, store: ObjectStore) -> None:
        """Everything that was cut into the store; what is stored is forgotten."""
        while self._cuts:
            cut = self._cuts[0]
            for one in cut.files:
                store.put(one.name, one.file.content)
            self._stored = cut.end_offset
            del self._cuts[0]
            for one in cut.files:
                one.file.discard()

    def committable(self, consumed: int) -> int | None:
        """The offset up to which everything is stored; None: there is none yet."""
        if not self._open and not self._cuts:
            return consumed
        return self._stored

    def discard(self) -> None:
        """Forget what is not stored: it is read again."""
        waiting = [one.file for cut in self._cuts for one in cut.files]
        for file in (*self._open.values(), *waiting):
            file.discard()

    def _write(self, record: SinkRecord, offset: int, now_ms: int) -> None:
        if record.value is None:
            raise DataError(
                "the record has no value (behavior.on.null.values=ignore passes such records)"
            )
        layout = self._layout
        folder = layout.names.folder(record.topic, layout.folder_of(record, now_ms))
        ms = layout.time_of(record, now_ms) if layout.rules.interval_ms > 0 else now_ms
        if self._state.is_over(ms) or self._is_other_schema(folder, record):
            self._cut(offset)
        file = self._open.get(folder) or self._begin(record.value_schema, offset)
        file.write(record.value)
        self._open[folder] = file
        self._state.begin(ms, now_ms)
        if file.count >= layout.rules.flush_size:
            self._cut(offset + 1)

    def _begin(self, schema: Schema | None, offset: int) -> OpenFile:
        layout = self._layout
        return OpenFile(layout.form, schema, offset, gzip_level=layout.gzip_level)

    def _is_other_schema(self, folder: str, record: SinkRecord) -> bool:
        file = self._open.get(folder)
        if file is None or file.schema is record.value_schema:
            return False
        return file.schema != record.value_schema

    def _cut(self, end_offset: int) -> None:
        files = []
        for folder, file in self._open.items():
            file.finish()
            files.append(StoredFile(name=self._layout.name(self._at, folder, file), file=file))
        if files:
            self._cuts.append(FinishedCut(files=tuple(files), end_offset=end_offset))
        self._open = {}
        self._state.end()


class ObjectSinkTask(ColumnarSinkTask):
    """The task of a store; a subclass says which store it is."""

    kind: ClassVar[StoreKind]

    def __init__(self, clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._clock_ms = clock_ms
        self._files: dict[TopicPartition, PartitionFiles] = {}
        self._layout: ObjectLayout
        self._store: ObjectStore
        self._backoff_ms = 0

    @classmethod
    @cache
    def settings(cls) -> ConfigDef:
        """All that a sink of this kind can be told."""
        return cls.kind.config + cls.kind.sink_config + SINK_CONFIG

    def opened(self, parsed: Mapping[str, Any]) -> ObjectStore:
        """The store of these settings."""
        return self.kind.opened(parsed)

    def start(self, config: Config) -> None:
        parsed = self.settings().parse(config)
        self._layout = ObjectLayout(parsed)
        self._backoff_ms = parsed["retry.backoff.ms"]
        self._store = self.opened(parsed)

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        for at in partitions:
            self._files[at] = PartitionFiles(at, self._layout)

    @classmethod
    def refuses_columns(cls, config: Config) -> str | None:
        parsed = cls.settings().parse(config)
        if format_word(parsed["format.class"]) == "AvroFormat":
            return "AvroFormat writes values one by one."
        if not is_by_partition(parsed["partitioner.class"]):
            return "the partitioner looks at single records."
        if parsed["rotate.interval.ms"] > 0:
            return "rotate.interval.ms looks at the times of single records."
        return None

    def put(self, records: list[SinkRecord]) -> None:
        now_ms = self._clock_ms()
        for record in records:
            self._take(record, now_ms)
        self._store_due(now_ms)

    def put_columns(self, batch: ValueColumns) -> bool:
        now_ms = self._clock_ms()
        files = self._files.setdefault(batch.at, PartitionFiles(batch.at, self._layout))
        try:
            is_taken = files.take_columns(batch, now_ms)
        except DataError:
            return False  # As a record it is put aside, or named.
        if is_taken:
            self._store_due(now_ms)
        return is_taken

    def _store_due(self, now_ms: int) -> None:
        self._cut_due(now_ms)
        try:
            self._store_all()
        except RetriableConnectError:
            self.context.set_timeout_ms(self._backoff_ms)
            raise

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self._cut_due(self._clock_ms())
        try:
            self._store_all()
        except RetriableConnectError as error:
            log.warning("objects wait for the store: %s", error)
        found: dict[TopicPartition, int] = {}
        for at, consumed in offsets.items():
            files = self._files.get(at)
            end = consumed if files is None else files.committable(consumed)
            if end is not None:
                found[at] = end
        return found

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        for at in partitions:
            files = self._files.pop(at, None)
            if files is not None:
                files.discard()

    def stop(self) -> None:
        self.close(list(self._files))
        if hasattr(self, "_store"):
            self._store.close()

    def _take(self, record: SinkRecord, now_ms: int) -> None:
        at = TopicPartition(source_topic(record), source_partition(record))
        files = self._files.setdefault(at, PartitionFiles(at, self._layout))
        try:
            files.take(record, now_ms)
        except DataError as error:
            reporter = self.context.errant_record_reporter
            if reporter is None:
                offset = source_offset(record)
                raise DataError(f"{at.topic}-{at.partition} at {offset}: {error}") from error
            reporter.report(record, error)

    def _cut_due(self, now_ms: int) -> None:
        for files in self._files.values():
            files.cut_if_due(now_ms)

    def _store_all(self) -> None:
        for files in self._files.values():
            files.store(self._store)
