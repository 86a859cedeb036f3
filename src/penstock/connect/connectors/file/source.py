"""FileStreamSource: each line of a file becomes a record, exactly once where the worker is set so.

The position is the byte after the last whole line, so a line is sent when its end is there. Without
a file, lines come from standard input, and no position is kept.
"""

import sys
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

from penstock.connect.columnar.contract import COLUMN_BYTES, ColumnarSourceTask, ColumnBatch
from penstock.connect.columnar.text_lines import end_of_lines, string_lines
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import (
    Config,
    ExactlyOnceSupport,
    SourceConnector,
)
from penstock.connect.plugins.validators import NonEmptyText
from penstock.connect.records import SourceRecord
from penstock.connect.values.schema import STRING_SCHEMA

FILENAME, POSITION = "filename", "position"
_CONFIG = ConfigDef(
    ConfigEntry(
        "file",
        ConfigType.STRING,
        None,
        Importance.HIGH,
        "The file to read lines from. Without it, lines come from standard input.",
    ),
    ConfigEntry(
        "topic",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "The topic that the lines go to.",
        validator=NonEmptyText(),
    ),
    ConfigEntry(
        "batch.size",
        ConfigType.INT,
        2000,
        Importance.LOW,
        "How many lines are read at a time, at most.",
    ),
)
_CHUNK_BYTES = 1 << 16
_LINE_BYTES_MAX = 1 << 28  # No broker takes a record that is near to it.
_WAIT_S = 0.2
_POSITION_MAX = 2**63 - 1


class FileStreamSourceConnector(SourceConnector):
    """One file, one task."""

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
        return FileStreamSourceTask

    def start(self, config: Config) -> None:
        _CONFIG.parse(config)
        self._config = config

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._config)]

    def exactly_once_support(self, config: Config) -> ExactlyOnceSupport:
        has_file = bool(_CONFIG.parse(config)["file"])
        return ExactlyOnceSupport.SUPPORTED if has_file else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self, config: Config, offsets: Mapping[frozenset[tuple[str, Any]], Mapping[str, Any] | None]
    ) -> bool:
        if not _CONFIG.parse(config)["file"]:
            raise ConnectError(
                "Offsets cannot be modified if the 'file' configuration is unspecified. This is "
                "because stdin is used for input and offsets are not tracked."
            )
        for partition, offset in offsets.items():
            if offset is not None:  # Whatever was there may be forgotten.
                _check_offset(offset)
                _check_partition(dict(partition))
        return True


def _check_offset(offset: Mapping[str, Any]) -> None:
    if POSITION not in offset:
        raise ConnectError("Offset objects should either be null or contain the key 'position'")
    position = offset[POSITION]
    if not isinstance(position, int) or isinstance(position, bool):
        raise ConnectError(
            "The value for the 'position' key in the offset is expected to be a Long value"
        )
    if not 0 <= position <= _POSITION_MAX:
        raise ConnectError(
            "The value for the 'position' key in the offset should be a non-negative value"
        )


def _check_partition(partition: Mapping[str, Any]) -> None:
    if FILENAME not in partition:
        raise ConnectError("Partition objects should contain the key 'filename'")


class FileStreamSourceTask(ColumnarSourceTask):
    """Reads on where the last commit was."""

    def __init__(self) -> None:
        self._file: str | None = None
        self._partition: dict[str, str] | None = None  # None: no position is kept.
        self._topic = ""
        self._lines_max = 0
        self._stream: IO[bytes] | None = None
        self._position = 0  # Of the first byte that no record has yet.
        self._rest = b""  # What was read of it already.
        self._stopping = threading.Event()

    def start(self, config: Config) -> None:
        parsed = _CONFIG.parse(config)
        self._file, self._topic = parsed["file"] or None, parsed["topic"]
        self._partition = None if self._file is None else {FILENAME: self._file}
        self._lines_max = max(1, parsed["batch.size"])
        if self._file is None:
            self._stream = sys.stdin.buffer
            return
        offset = self.context.offset_reader.offset({FILENAME: self._file})
        if offset is not None:
            _check_offset(offset)
            self._position = offset[POSITION]

    def poll(self) -> list[SourceRecord] | None:
        if self._stream is None and not self._open():
            self._stopping.wait(_WAIT_S)
            return None
        records = self._records()
        if not records:
            self._stopping.wait(_WAIT_S)
        return records or None

    @classmethod
    def refuses_columns(cls, config: Config) -> str | None:
        return None if _CONFIG.parse(config)["file"] else "standard input is read line by line."

    def poll_columns(self) -> list[ColumnBatch]:
        if self._stream is None and not self._open():
            self._stopping.wait(_WAIT_S)
            return []
        whole = self._next_lines()
        if not whole:
            self._stopping.wait(_WAIT_S)
            return []
        self._position += len(whole)
        return [
            ColumnBatch(
                topic=self._topic,
                partition=None,
                schema=STRING_SCHEMA,
                values=string_lines(whole),
                timestamp_ms=time.time_ns() // 1_000_000,
                source_partition=self._partition,
                source_offset={POSITION: self._position},
            )
        ]

    def stop(self) -> None:
        self._stopping.set()
        if self._stream is not None and self._file is not None:
            self._stream.close()

    def _open(self) -> bool:
        """Whether the file is there; it may come later."""
        assert self._file is not None
        try:
            self._stream = open(self._file, "rb")  # noqa: SIM115, PTH123  (`stop` closes it)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ConnectError(f"The file {self._file} cannot be read: {error}") from error
        self._stream.seek(self._position)
        return True

    def _records(self) -> list[SourceRecord]:
        lines = self._lines()
        now_ms = time.time_ns() // 1_000_000
        made = []
        for line in lines:
            self._position += len(line)
            made.append(self._record(line, now_ms))
        return made

    def _lines(self) -> list[bytes]:
        """Whole lines with their ends, as many as one batch may have."""
        assert self._stream is not None
        lines = _whole_lines(self._rest)
        while len(lines) < self._lines_max:
            chunk = self._stream.read(_CHUNK_BYTES)
            if not chunk:
                break
            self._rest += chunk
            lines = _whole_lines(self._rest)
        taken = lines[: self._lines_max]
        self._rest = self._rest[sum(map(len, taken)) :]
        return taken

    def _next_lines(self) -> bytes:
        """Whole lines with their ends, as many as one read brings; empty: none is there yet."""
        assert self._stream is not None
        content = self._rest
        while chunk := self._stream.read(COLUMN_BYTES):
            content += chunk
            end = end_of_lines(content)
            if end:
                self._rest = content[end:]
                return content[:end]
            if len(content) > _LINE_BYTES_MAX:
                raise ConnectError(
                    f"The line at byte {self._position} of {self._file} has more than "
                    f"{_LINE_BYTES_MAX} bytes."
                )
        self._rest = content
        return b""

    def _record(self, line: bytes, now_ms: int) -> SourceRecord:
        return SourceRecord(
            topic=self._topic,
            value_schema=STRING_SCHEMA,
            value=line.rstrip(b"\r\n").decode(errors="replace"),
            timestamp=now_ms,
            source_partition=self._partition,
            source_offset=None if self._partition is None else {POSITION: self._position},
        )


def _whole_lines(content: bytes) -> list[bytes]:
    """Lines that end with \\n, \\r\\n or \\r; a \\r at the very end may be half of an end."""
    lines = content.splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        lines.pop()
    return lines
