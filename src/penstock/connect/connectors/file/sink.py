"""FileStreamSink: each record becomes a line of a file, at least once.

After a crash, lines whose offsets were not committed are written again: as Kafka's own does.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from penstock.connect.columnar.contract import ColumnarSinkTask, ValueColumns
from penstock.connect.columnar.text_lines import joined_lines
from penstock.connect.converters.text import java_text
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.plugins.config_def import ConfigDef, ConfigEntry, ConfigType, Importance
from penstock.connect.plugins.contract import Config, SinkConnector
from penstock.connect.records import SinkRecord
from penstock.connect.values.schema import SchemaType
from penstock.records.topic_partition import TopicPartition

_CONFIG = ConfigDef(
    ConfigEntry(
        "file",
        ConfigType.STRING,
        None,
        Importance.HIGH,
        "The file to append lines to. Without it, lines go to standard output.",
    ),
)


class FileStreamSinkConnector(SinkConnector):
    """All tasks append to the one file."""

    def __init__(self) -> None:
        self._config: Config = {}

    @classmethod
    def version(cls) -> str:
        return "4.3.1"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    @classmethod
    def task_class(cls) -> type:
        return FileStreamSinkTask

    def start(self, config: Config) -> None:
        _CONFIG.parse(config)
        self._config = config

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._config) for _ in range(max_tasks)]

    def alter_offsets(self, config: Config, offsets: Mapping[TopicPartition, int | None]) -> bool:
        return True  # The file keeps no offsets: the group's are all there are.


class FileStreamSinkTask(ColumnarSinkTask):
    """Appends, and has the kernel take the lines before offsets are committed."""

    def __init__(self) -> None:
        self._file: IO[bytes] = sys.stdout.buffer
        self._is_own = False

    def start(self, config: Config) -> None:
        name = _CONFIG.parse(config)["file"]
        if not name:
            return
        try:
            self._file = Path(name).open("ab")  # noqa: SIM115  (`stop` closes it)
        except OSError as error:
            raise ConnectError(
                f"Couldn't find or create file '{name}' for FileStreamSinkTask: {error}"
            ) from error
        self._is_own = True

    def put(self, records: list[SinkRecord]) -> None:
        lines = [f"{java_text(one.value_schema, one.value)}\n".encode() for one in records]
        self._file.write(b"".join(lines))

    def put_columns(self, batch: ValueColumns) -> bool:
        if batch.schema is None or batch.schema.type is not SchemaType.STRING:
            return False  # Only texts are what Java would print.
        self._file.write(joined_lines(batch.values))
        return True

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._file.flush()

    def stop(self) -> None:
        self._file.flush()
        if self._is_own:
            self._file.close()
