"""One topic partition's way into a lake table: rows in memory, then one commit with their offset.

The table itself remembers the last offset of each topic partition, in the same commit as the rows.
A commit is made only behind the offset it was read from, so neither a replay nor a task that is
thought dead can bring a row twice.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connect.columnar.arrow_schemas import arrow_schema_of, arrow_value
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.records import SinkRecord
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.logical import timestamp_of
from penstock.connect.values.schema import Schema
from penstock.connect.values.shown import text_form
from penstock.connect.values.struct import StructValue, check_value
from penstock.lake.columns.agreement import known_columns
from penstock.lake.columns.schema import lake_schema, unify
from penstock.lake.errors import LakeError
from penstock.lake.formats.tables import open_table, own_folder
from penstock.lake.spec import TableSpec
from penstock.lake.writing.commit import commit_batch
from penstock.lake.writing.files import TaskFiles
from penstock.records.topic_partition import TopicPartition

_OWN_COLUMNS = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)


class TableWriter:
    """The rows of one topic partition that no commit has yet."""

    def __init__(self, spec: TableSpec, at: TopicPartition, name: str) -> None:
        self._spec = spec
        self._at = at
        self._query_id = f"connect-{name}-{at.topic}-{at.partition}"
        self._columns = SchemaCache(_columns_of)
        self._groups: list[tuple[pa.Schema, list[dict[str, Any]]]] = []
        self._shape: pa.Schema = known_columns(spec).schema
        self.count = 0
        self.committed = self._in_table()  # The last offset that the table has; -1: none.
        self._last = self.committed  # The last offset that was taken.

    def take(self, record: SinkRecord, offset: int) -> None:
        """Add a row; DataError for a value that is none, or that the table's columns do not fit."""
        if offset <= self._last:
            return  # The table has it, or it came before in a `put` that failed later.
        self._last = offset
        columns, row = self._row(record)
        if not self._groups or self._groups[-1][0] is not columns:
            self._admit(columns)
            self._groups.append((columns, []))
        self._groups[-1][1].append(row | _own_values(record, self._at, offset))
        self.count += 1

    def pass_by(self, offset: int) -> None:
        """A record that is left out: the next commit is behind it."""
        self._last = max(self._last, offset)

    def commit(self) -> None:
        """Rows and offset into the table, both or neither."""
        if not self.count:
            return
        with _commit_turn(self._spec):
            if self._in_table() != self.committed:
                raise ConnectError(
                    f"another task has written {self._at.topic}-{self._at.partition} to "
                    f"{self._spec.directory}; this one begins again behind it"
                )
            self._commit_rows()
        self.committed, self._groups, self.count = self._last, [], 0

    def _commit_rows(self) -> None:
        files = TaskFiles(
            self._spec,
            query_id=self._query_id,
            batch_id=self._last,
            task=0,
            known=known_columns(self._spec).schema,
        )
        try:
            for columns, rows in self._groups:
                whole = _with_own(columns)
                files.write(pa.RecordBatch.from_pylist(rows, schema=whole))
            done = files.close()
        except BaseException:
            files.discard()
            raise
        commit_batch(self._spec, done, query_id=self._query_id, batch_id=self._last)

    def _in_table(self) -> int:
        table = open_table(self._spec)
        return table.committed(self._query_id)

    def _row(self, record: SinkRecord) -> tuple[pa.Schema, dict[str, Any]]:
        value, schema = record.value, record.value_schema
        if not isinstance(value, StructValue) or schema is None:
            raise DataError(
                "a row is made of a struct with its schema, and the value is "
                f"{'null' if value is None else f'a {type(value).__name__}'}"
            )
        check_value(schema, value)
        row: dict[str, Any] = arrow_value(schema, value)
        return self._columns.get(schema), {_renamed(name): one for name, one in row.items()}

    def _admit(self, columns: pa.Schema) -> None:
        """Refuse columns that could not stand beside those of the table."""
        try:
            self._shape = unify(self._shape, lake_schema(_with_own(columns)))
        except LakeError as error:
            raise DataError(str(error)) from error


def _columns_of(schema: Schema) -> pa.Schema:
    found = arrow_schema_of(schema)
    return pa.schema([pa.field(_renamed(one.name), one.type) for one in found])


def _renamed(name: str) -> str:
    """A field that is called as one of a record's own columns is."""
    return f"value_{name}" if name in _OWN_COLUMNS.names else name


def _with_own(columns: pa.Schema) -> pa.Schema:
    return pa.schema([*columns, *_OWN_COLUMNS])


def _own_values(record: SinkRecord, at: TopicPartition, offset: int) -> dict[str, Any]:
    return {
        "key": None if record.key is None else text_form(record.key_schema, record.key),
        "topic": at.topic,
        "partition": at.partition,
        "offset": offset,
        "timestamp": None if record.timestamp is None else timestamp_of(record.timestamp),
    }


@contextlib.contextmanager
def _commit_turn(spec: TableSpec) -> Iterator[None]:
    """One task at a time looks at the table's offset and commits; the kernel frees it."""
    path = Path(own_folder(spec)) / "connect.lock"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
