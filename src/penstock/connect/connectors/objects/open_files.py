"""The files of one topic partition between two cuts, and the rules that say when to cut.

A cut ends all files of the partition at one offset. Behind it nothing is kept, so a task that
starts there makes the same files under the same names: that is what makes a replay harmless.
"""

import gzip
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast

from penstock.connect.connectors.objects.formats.contract import ObjectFormat, ValueWriter
from penstock.connect.values.schema import Schema

_MEMORY_BYTES = 1 << 20  # Of one file; what is longer goes to the disk.


class OpenFile:
    """One file on its way to the store."""

    def __init__(
        self,
        form: ObjectFormat,
        schema: Schema | None,
        first_offset: int,
        *,
        gzip_level: int | None,
    ) -> None:
        self.schema = schema
        self.first_offset = first_offset
        self.count = 0
        self.content: IO[bytes] = SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115 (`discard`)
        self._zipped = None if gzip_level is None else _zipped(self.content, gzip_level)
        self._writer: ValueWriter = form.writer(self._zipped or self.content, schema)

    def write(self, value: Any) -> None:
        """Add a value; DataError where it cannot be."""
        self._writer.write(value)
        self.count += 1

    def write_columns(self, values: Any) -> bool:
        """Add an array of values; False: the format takes them one by one."""
        if not self._writer.write_columns(values):
            return False
        self.count += len(values)
        return True

    def finish(self) -> None:
        """No more comes."""
        self._writer.finish()
        if self._zipped is not None:
            self._zipped.close()

    def discard(self) -> None:
        """Give the place back."""
        self.content.close()


def _zipped(content: IO[bytes], level: int) -> IO[bytes]:
    # Without the time in its header, the same values make the same bytes.
    return cast(IO[bytes], gzip.GzipFile(fileobj=content, mode="wb", compresslevel=level, mtime=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class CutRules:
    """When files end."""

    flush_size: int
    interval_ms: int = -1  # Between the times of records; -1: no such rule.
    schedule_ms: int = -1  # By the clock; -1: no such rule.


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file that has ended, with the folder and the name it is to have."""

    name: str
    file: OpenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCut:
    """Files that go to the store together, and the offset behind them."""

    files: tuple[StoredFile, ...]
    end_offset: int


@dataclass(slots=True, kw_only=True)
class CutState:
    """What the rules look at: when the open files began, by records and by the clock."""

    rules: CutRules
    begun_ms: int | None = None  # The time of the first record; None: no file is open.
    due_ms: int | None = field(default=None)  # By the clock.

    def begin(self, record_ms: int, now_ms: int) -> None:
        """A first record has come."""
        if self.begun_ms is None:
            self.begun_ms = record_ms
            if self.rules.schedule_ms > 0:
                self.due_ms = now_ms - now_ms % self.rules.schedule_ms + self.rules.schedule_ms

    def end(self) -> None:
        """Nothing is open."""
        self.begun_ms = self.due_ms = None

    def is_over(self, record_ms: int) -> bool:
        """Whether a record of this time comes too late for the open files."""
        if self.begun_ms is None or self.rules.interval_ms <= 0:
            return False
        return record_ms - self.begun_ms >= self.rules.interval_ms

    def is_due(self, now_ms: int) -> bool:
        """Whether the clock says so."""
        return self.due_ms is not None and now_ms >= self.due_ms
