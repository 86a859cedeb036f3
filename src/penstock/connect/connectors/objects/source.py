"""A source of objects: what a sink has stored, or any objects of a format, back into topics.

Folders are shared out among the tasks by their names, so new ones need no new configuration. The
position is an object's name and how many of its records were read, which makes it exactly once.
"""

import contextlib
import gzip
import logging
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import IO, Any, ClassVar, TypeVar

from penstock.connect.columnar.contract import ColumnarSourceTask, ColumnBatch
from penstock.connect.connectors.objects.formats.contract import format_word, object_format
from penstock.connect.connectors.objects.kinds import StoreKind
from penstock.connect.connectors.objects.names import NameRules
from penstock.connect.connectors.objects.settings import FORMAT_CONFIG, with_error
from penstock.connect.connectors.objects.store import ObjectStore
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.plugins.config_def import (
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, SchemaAndValue
from penstock.connect.plugins.validators import AtLeast, Judged, OneOfWords
from penstock.connect.records import SourceRecord

T = TypeVar("T")

log = logging.getLogger("penstock.connect")
_COLUMN_FORMATS = ("ParquetFormat", "ByteArrayFormat")
FOLDER, SERIES = "folder", "series"
LAST_FILE, FILE_OFFSET = "lastFileRead", "fileOffset"
TASK_COUNT, TASK_INDEX = "penstock.task.count", "penstock.task.index"
_PARTITION_FOLDER = re.compile(r"(?:.*/)?partition=\d+")
_WAIT_S = 0.2


def _is_topic_list(value: Any) -> str | None:
    for one in value or ():
        topic, _, pattern = one.partition(":")
        try:
            re.compile(pattern)
        except re.error as error:
            return f"{pattern} is no regular expression: {error}"
        if not topic or not pattern:
            return f"{one} must be a topic, a colon and a regular expression"
    return None


SOURCE_CONFIG = ConfigDef(
    ConfigEntry(
        "mode",
        ConfigType.STRING,
        "RESTORE_BACKUP",
        Importance.HIGH,
        "RESTORE_BACKUP: what a sink has stored, to its topics and partitions. GENERIC: any "
        "objects, to the topics of topic.regex.list.",
        validator=OneOfWords(("RESTORE_BACKUP", "GENERIC"), any_case=True),
    ),
    ConfigEntry(
        "topic.regex.list",
        ConfigType.LIST,
        "",
        Importance.HIGH,
        "With GENERIC: topic:pattern, and more of them after commas. An object goes to the first "
        "topic whose pattern is found in its name; others are left alone.",
        validator=Judged(_is_topic_list, "topic:pattern,..."),
    ),
    ConfigEntry(
        "record.batch.max.size",
        ConfigType.INT,
        200,
        Importance.MEDIUM,
        "How many records are read at a time, at most.",
        validator=AtLeast(1),
    ),
    ConfigEntry(
        "behavior.on.error",
        ConfigType.STRING,
        "FAIL",
        Importance.MEDIUM,
        "What becomes of an object that cannot be read: FAIL ends the task, LOG and IGNORE go on "
        "with the next object.",
        validator=OneOfWords(("FAIL", "LOG", "IGNORE"), any_case=True),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesKey:
    """Objects that are read one after the other: of a folder, and of one partition in it."""

    folder: str
    series: str  # `topic+partition`; empty in GENERIC mode.

    def source_partition(self, place: str) -> dict[str, Any]:
        return {"bucket": place, FOLDER: self.folder, SERIES: self.series}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where the records of an object go."""

    key: SeriesKey
    topic: str
    partition: int | None  # None: the producer chooses.
    order: tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSoFar:
    """How far a series was read."""

    name: str = ""  # The last part of the object's name; empty: nothing was read.
    count: int = 0  # Records of the object.
    is_whole: bool = False  # Known only while the task runs; offsets do not say it.

    def offset(self) -> dict[str, Any]:
        return {LAST_FILE: self.name, FILE_OFFSET: self.count}


def read_so_far(offset: Mapping[str, Any] | None) -> ReadSoFar:
    """The position of an offset; ConnectError for one that is none."""
    if offset is None:
        return ReadSoFar()
    name, count = (offset.get(word) for word in (LAST_FILE, FILE_OFFSET))
    if not isinstance(name, str) or not isinstance(count, int) or isinstance(count, bool):
        raise ConnectError(f"An offset has {LAST_FILE}, a text, and {FILE_OFFSET}, a number")
    if count < 0:
        raise ConnectError(f"{FILE_OFFSET} must not be negative")
    return ReadSoFar(name=name, count=count)


class ObjectNames:
    """Which objects are read, in which order, and where their records go."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._is_backup = config["mode"].upper() == "RESTORE_BACKUP"
        self._rules = NameRules(
            file_delimiter=config["file.delim"], width=config["filename.offset.zero.pad.width"]
        )
        pairs = (one.partition(":") for one in config["topic.regex.list"] or ())
        self._topics = [(topic, re.compile(pattern)) for topic, _, pattern in pairs]

    def target(self, name: str) -> Target | None:
        """None: the object is none of ours."""
        folder, _, last = name.rpartition("/")
        if not self._is_backup:
            topic = next((topic for topic, one in self._topics if one.search(name)), None)
            key = SeriesKey(folder=folder, series="")
            if topic is None:
                return None
            return Target(key=key, topic=topic, partition=None, order=(0, last))
        found = self._rules.parse(name)
        if found is None:
            return None
        key = SeriesKey(folder=folder, series=f"{found.topic}+{found.partition}")
        order = (found.first_offset, last)
        return Target(key=key, topic=found.topic, partition=found.partition, order=order)

    def can_skip(self, folder: str) -> bool:
        """Whether names of a folder sort as they are read, so listing can begin in the middle."""
        return not self._is_backup or _PARTITION_FOLDER.fullmatch(folder) is not None

    def order_of(self, name: str) -> tuple[int, str]:
        """Where an object stands in its series."""
        found = self._rules.parse(name) if self._is_backup else None
        return (0 if found is None else found.first_offset, name)

    def is_long(self, name: str) -> bool:
        """Whether longer offsets may follow, whose names sort before this one."""
        found = self._rules.parse(name) if self._is_backup else None
        return found is not None and found.first_offset >= 10 ** max(0, self._rules.width - 1)


def shared_out(config: Config, max_tasks: int) -> list[dict[str, str]]:
    """One configuration for each task, with its share of the folders."""
    return [
        {**config, TASK_COUNT: str(max_tasks), TASK_INDEX: str(index)} for index in range(max_tasks)
    ]


def checked_source(checked: CheckedConfig) -> CheckedConfig:
    """With the error of a mode that needs topics."""
    values = {one.entry.name: one.value for one in checked.values}
    is_generic = (values.get("mode") or "").upper() == "GENERIC"
    if is_generic and not values.get("topic.regex.list"):
        return with_error(checked, "topic.regex.list", "The mode GENERIC needs topics.")
    return checked


class ObjectSourceTask(ColumnarSourceTask):
    """The task of a store; a subclass says which store it is."""

    kind: ClassVar[StoreKind]

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._stopping = threading.Event()
        self._done: dict[SeriesKey, ReadSoFar] = {}
        self._folder_ends: dict[str, str] = {}  # The last name that was listed, where it helps.
        self._waiting: list[tuple[str, Target]] = []
        self._reading: Iterator[SourceRecord] | None = None
        self._batches: Iterator[ColumnBatch] | None = None
        self._listed_s: float | None = None  # None: not yet.

    @classmethod
    @cache
    def settings(cls) -> ConfigDef:
        """All that a source of this kind can be told."""
        return cls.kind.config + FORMAT_CONFIG + SOURCE_CONFIG + ConfigDef(cls.kind.poll_entry)

    def opened(self, parsed: Mapping[str, Any]) -> ObjectStore:
        """The store of these settings."""
        return self.kind.opened(parsed)

    def start(self, config: Config) -> None:
        parsed = self.settings().parse(config)
        self._names = ObjectNames(parsed)
        self._form = object_format(parsed)
        self._place = str(parsed[self.kind.place])
        self._root = parsed["topics.dir"].strip("/")
        self._every_s = parsed[self.kind.poll_name] / 1000
        self._records_max = parsed["record.batch.max.size"]
        self._on_error = parsed["behavior.on.error"].upper()
        self._share = (int(config.get(TASK_INDEX, "0")), int(config.get(TASK_COUNT, "1")))
        self._store = self.opened(parsed)

    def poll(self) -> list[SourceRecord] | None:
        made: list[SourceRecord] = []
        while len(made) < self._records_max:
            try:
                record = self._next()
            except ConnectError:
                if not made:
                    raise
                break  # The next poll meets it again.
            if record is None:
                break
            made.append(record)
        if not made:
            self._stopping.wait(_WAIT_S)
        return made or None

    @classmethod
    def refuses_columns(cls, config: Config) -> str | None:
        word = format_word(cls.settings().parse(config)["format.class"])
        return None if word in _COLUMN_FORMATS else f"{word} is read value by value."

    def poll_columns(self) -> list[ColumnBatch]:
        while not self._stopping.is_set():
            if self._batches is None:
                if not self._waiting and not self._list():
                    break
                self._batches = self._guarded(self._column_batches, *self._waiting[0])
            try:
                batch = next(self._batches, None)
            except ConnectError:
                self._batches = None  # The object is begun again behind what was read of it.
                raise
            if batch is not None:
                return [batch]
            self._batches = None
            del self._waiting[0]
        self._stopping.wait(_WAIT_S)
        return []

    def stop(self) -> None:
        self._stopping.set()
        if hasattr(self, "_store"):
            self._store.close()

    def _next(self) -> SourceRecord | None:
        while not self._stopping.is_set():
            if self._reading is None:
                if not self._waiting and not self._list():
                    return None
                self._reading = self._guarded(self._read, *self._waiting[0])
            try:
                record = next(self._reading, None)
            except ConnectError:
                self._reading = None  # The object is begun again behind what was read of it.
                raise
            if record is not None:
                return record
            self._reading = None
            del self._waiting[0]
        return None

    def _list(self) -> bool:
        """Whether there is something new; the store is asked only now and then."""
        now_s = self._clock_s()
        if self._listed_s is not None and now_s - self._listed_s < self._every_s:
            return False
        self._listed_s = now_s
        for folder in self._store.folders(self._root):
            if zlib.crc32(folder.encode()) % self._share[1] == self._share[0]:
                self._waiting += self._new_in(folder)
        return bool(self._waiting)

    def _new_in(self, folder: str) -> list[tuple[str, Target]]:
        after = self._folder_ends.get(folder, "") if self._names.can_skip(folder) else ""
        names = list(self._store.names(folder, after))
        if not names and after and self._names.is_long(after):
            names = list(self._store.names(folder))
        found = []
        for name in names:
            target = self._names.target(name)
            if target is not None and self._is_new(name, target):
                found.append((name, target))
        return sorted(found, key=lambda one: (one[1].key.series, one[1].order))

    def _is_new(self, name: str, target: Target) -> bool:
        done = self._known(target.key)
        if not done.name:
            return True
        last = self._names.order_of(done.name)
        return target.order > last or (target.order == last and not done.is_whole)

    def _known(self, key: SeriesKey) -> ReadSoFar:
        if key not in self._done:
            kept = self.context.offset_reader.offset(key.source_partition(self._place))
            self._done[key] = read_so_far(kept)
        return self._done[key]

    def _guarded(
        self, read: Callable[[str, Target, int], Iterator[T]], name: str, target: Target
    ) -> Iterator[T]:
        """What is read of an object behind what was read before; then the object is done."""
        done, last = self._known(target.key), name.rpartition("/")[2]
        skipped = done.count if done.name == last else 0
        try:
            yield from read(name, target, skipped)
        except (DataError, gzip.BadGzipFile, EOFError, zlib.error) as error:
            if self._on_error == "FAIL":
                raise ConnectError(f"The object {name} cannot be read: {error}") from error
            if self._on_error == "LOG":
                log.error("the object %s is left out: %s", name, error)
        self._done[target.key] = ReadSoFar(name=last, is_whole=True)
        self._folder_ends[target.key.folder] = name

    def _read(self, name: str, target: Target, skipped: int) -> Iterator[SourceRecord]:
        last = name.rpartition("/")[2]
        with self._store.get(name) as raw, _unzipped(raw, name) as file:
            for count, found in enumerate(self._form.read(file), start=1):
                if count > skipped:
                    yield self._record(found, target, ReadSoFar(name=last, count=count))

    def _column_batches(self, name: str, target: Target, skipped: int) -> Iterator[ColumnBatch]:
        count, last = skipped, name.rpartition("/")[2]
        with self._store.get(name) as raw, _unzipped(raw, name) as file:
            for schema, values in self._form.read_columns(file, skipped) or ():
                count += len(values)
                position = ReadSoFar(name=last, count=count)
                self._done[target.key] = position
                yield ColumnBatch(
                    topic=target.topic,
                    partition=target.partition,
                    schema=schema,
                    values=values,
                    timestamp_ms=None,
                    source_partition=target.key.source_partition(self._place),
                    source_offset=position.offset(),
                )

    def _record(self, found: SchemaAndValue, target: Target, position: ReadSoFar) -> SourceRecord:
        self._done[target.key] = position
        return SourceRecord(
            topic=target.topic,
            partition=target.partition,
            value_schema=found[0],
            value=found[1],
            source_partition=target.key.source_partition(self._place),
            source_offset=position.offset(),
        )


def _unzipped(raw: IO[bytes], name: str) -> Any:
    if not name.endswith(".gz"):
        return contextlib.nullcontext(raw)
    return gzip.GzipFile(fileobj=raw, mode="rb")
