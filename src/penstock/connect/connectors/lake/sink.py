"""LakeSinkConnector: records of topics as rows of Delta, Iceberg or Parquet tables, exactly once.

The table keeps the offsets; those of the consumer group follow them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.connect.connectors.lake.table_writer import TableWriter
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, SinkConnector, SinkTask
from penstock.connect.plugins.validators import AtLeast, Judged, OneOfWords
from penstock.connect.records import SinkRecord
from penstock.lake.errors import LakeError
from penstock.lake.formats.tables import remember_spec
from penstock.lake.spec import COMPRESSIONS, FORMATS, TableSpec, parse_partitioning
from penstock.lake.writing.commit import compact_now
from penstock.records.topic_partition import TopicPartition

_TOPIC = "${topic}"
_COMPACT_EVERY = 16


def _is_directory(value: Any) -> str | None:
    if value and value.startswith("/"):
        return None
    return "Must be the absolute path of a directory"


def _is_partitioning(value: Any) -> str | None:
    try:
        parse_partitioning(value or None)
    except LakeError as error:
        return str(error)
    return None


_CONFIG = ConfigDef(
    ConfigEntry(
        "lake.path",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "The directory of the table; ${topic} in it makes one table for each topic.",
        validator=Judged(_is_directory, "a directory"),
    ),
    ConfigEntry(
        "lake.format",
        ConfigType.STRING,
        "delta",
        Importance.HIGH,
        "delta, iceberg or parquet.",
        validator=OneOfWords(FORMATS),
    ),
    ConfigEntry(
        "lake.partition.by",
        ConfigType.STRING,
        "",
        Importance.MEDIUM,
        "Columns that the table is cut into folders by: country, date(timestamp).",
        validator=Judged(_is_partitioning, "columns"),
    ),
    ConfigEntry(
        "lake.compression",
        ConfigType.STRING,
        "zstd",
        Importance.LOW,
        "How files are compressed.",
        validator=OneOfWords(COMPRESSIONS),
    ),
    ConfigEntry(
        "lake.compact",
        ConfigType.BOOLEAN,
        True,
        Importance.LOW,
        "Whether small files are put together now and then.",
    ),
    ConfigEntry(
        "flush.size",
        ConfigType.INT,
        100_000,
        Importance.MEDIUM,
        "How many rows of a partition a commit has, at most; there is also one whenever the "
        "worker commits offsets.",
        validator=AtLeast(1),
    ),
)


class LakeSinkConnector(SinkConnector):
    """Tasks share the partitions of the topics by their consumer group."""

    def __init__(self) -> None:
        self._config: Config = {}

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    @classmethod
    def task_class(cls) -> type:
        return LakeSinkTask

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        return _CONFIG.validate(config)

    def start(self, config: Config) -> None:
        _CONFIG.parse(config)
        self._config = config

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._config) for _ in range(max_tasks)]

    def alter_offsets(self, config: Config, offsets: Mapping[TopicPartition, int | None]) -> bool:
        raise ConnectError(
            "The offsets of this connector are in its table, beside the rows, and cannot be changed"
        )


class LakeSinkTask(SinkTask):
    """Commits when the worker does, or when many rows wait."""

    def __init__(self) -> None:
        self._writers: dict[TopicPartition, TableWriter] = {}
        self._commits = 0

    def start(self, config: Config) -> None:
        self._parsed = _CONFIG.parse(config)
        self._name = config.get("name", "lake")

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        for at in partitions:
            writer = self._begin(at)
            if writer.committed >= 0:
                self.context.seek({at: writer.committed + 1})

    def put(self, records: list[SinkRecord]) -> None:
        for record in records:
            at = TopicPartition(record.original_topic or record.topic, _partition(record))
            writer = self._writers.get(at) or self._begin(at)
            offset = record.offset if record.original_offset is None else record.original_offset
            self._take(writer, record, offset)
            if writer.count >= self._parsed["flush.size"]:
                self._commit(writer, at)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        for at, writer in self._writers.items():
            self._commit(writer, at)
        return offsets

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        for at in partitions:
            self._writers.pop(at, None)  # What is not committed is read again.

    def _begin(self, at: TopicPartition) -> TableWriter:
        try:
            spec = table_spec(self._parsed, at.topic)
            remember_spec(spec)
            self._writers[at] = TableWriter(spec, at, self._name)
        except (LakeError, OSError) as error:
            raise ConnectError(f"the table of {at.topic} cannot be opened: {error}") from error
        return self._writers[at]

    def _take(self, writer: TableWriter, record: SinkRecord, offset: int) -> None:
        try:
            writer.take(record, offset)
        except DataError as error:
            writer.pass_by(offset)
            reporter = self.context.errant_record_reporter
            if reporter is None:
                topic = record.original_topic or record.topic
                raise DataError(f"{topic}-{_partition(record)} at {offset}: {error}") from error
            reporter.report(record, error)

    def _commit(self, writer: TableWriter, at: TopicPartition) -> None:
        if not writer.count:
            return
        try:
            writer.commit()
            self._commits += 1
            if self._parsed["lake.compact"] and self._commits % _COMPACT_EVERY == 0:
                compact_now(table_spec(self._parsed, at.topic))
        except LakeError as error:
            raise ConnectError(f"the table of {at.topic} cannot be written: {error}") from error


def table_spec(config: Mapping[str, Any], topic: str) -> TableSpec:
    """The table of a topic."""
    return TableSpec(
        directory=config["lake.path"].replace(_TOPIC, topic),
        format=config["lake.format"],
        partition_by=parse_partitioning(config["lake.partition.by"] or None),
        compression=config["lake.compression"],
        compact_small_files=False,  # The numbers of commits here are offsets; see `_commit`.
        table_name=f"lake.{topic.replace('.', '_')}",
    )


def _partition(record: SinkRecord) -> int:
    found = record.partition if record.original_partition is None else record.original_partition
    return found or 0
