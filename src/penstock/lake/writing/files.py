"""The Parquet files that a task writes: one row of files per partition, rolled when they are big.

Runs on the workers. A file is not data until the driver has committed it, so nothing here knows
of commits; a task that fails takes its files away again.
"""

import contextlib
import errno
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.lake.columns.schema import conform, lake_schema, towards, unify
from penstock.lake.errors import LakeError
from penstock.lake.formats.statistics import delta_statistics
from penstock.lake.spec import STAGING, TableSpec
from penstock.lake.writing import layout

# Rows wait until a row group is worth writing; then all partitions together stay within memory.
_ROW_GROUP_BYTES = 32 << 20
_WAITING_BYTES_MAX = 192 << 20
_OPEN_FILES_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file that is complete; paths are relative to the table's directory."""

    path: str  # Where it is now.
    place: str  # Where readers will find it: the same for formats with a log of their own.
    values: layout.Values
    rows: int
    size_bytes: int
    schema: bytes
    statistics: str  # In Delta's JSON.

    def arrow_schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(self.schema))


class TaskFiles:
    """All that one task writes for one batch."""

    def __init__(
        self,
        spec: TableSpec,
        *,
        query_id: str,
        batch_id: int,
        task: int,
        known: pa.Schema | None = None,
    ) -> None:
        self._spec = spec
        self._known = known or pa.schema([])  # The table's columns, as far as is known here.
        self._origin = (query_id, batch_id, task)
        self._attempt = uuid.uuid4().hex[:12]
        self._stage = stage(spec, query_id, batch_id)
        self._open: dict[layout.Values, _OpenFile] = {}
        self._done: list[DataFile] = []
        self._number = 0
        self._schema = pa.schema([])

    def write(self, batch: pa.RecordBatch) -> None:
        """Rows into the files of their partitions."""
        if batch.num_rows == 0:
            return
        wanted = towards(self._known, unify(self._schema, lake_schema(batch.schema)))
        if not wanted.equals(self._schema):
            layout.partition_types(wanted, self._spec.partition_by)
            self._schema = wanted
        for values, rows in layout.split(batch, self._spec.partition_by):
            self._file(values).add(conform(rows, self._schema))
        self._bound_memory()

    def close(self) -> tuple[DataFile, ...]:
        """The files, complete on disk."""
        for values in list(self._open):
            self._finish(values)
        return tuple(self._done)

    def discard(self) -> None:
        """Take away whatever was written; the batch failed."""
        for file in self._open.values():
            file.discard()
        remove_files(Path(self._spec.directory), [file.path for file in self._done])

    def _file(self, values: layout.Values) -> "_OpenFile":
        found = self._open.get(values)
        if found is not None and found.schema.equals(self._schema) and not found.is_full:
            return found
        if found is not None:
            self._finish(values)
        if len(self._open) >= _OPEN_FILES_MAX:
            self._finish(next(iter(self._open)))  # The one that was opened first.
        self._open[values] = _OpenFile(self._spec, self._new_name(values), values, self._schema)
        return self._open[values]

    def _new_name(self, values: layout.Values) -> tuple[str, str]:
        name = layout.file_name(*self._origin, self._number, self._attempt)
        self._number += 1
        folder = table_folder(self._spec, values)
        place = f"{folder}/{name}" if folder else name
        return (f"{self._stage}/{place}.staged" if self._stage else place), place

    def _finish(self, values: layout.Values) -> None:
        file = self._open.pop(values)
        try:
            self._done.append(file.close())
        except BaseException:
            file.discard()
            raise

    def _bound_memory(self) -> None:
        while sum(file.waiting_bytes for file in self._open.values()) > _WAITING_BYTES_MAX:
            max(self._open.values(), key=lambda file: file.waiting_bytes).flush()


class _OpenFile:
    """One Parquet file being written; rows wait in memory until they make a row group."""

    def __init__(
        self, spec: TableSpec, name: tuple[str, str], values: layout.Values, schema: pa.Schema
    ) -> None:
        self.schema = schema
        self.waiting_bytes = 0
        self._rows: list[pa.RecordBatch] = []
        self._spec = spec
        self._path, self._place = name
        self._values = values
        self._file = Path(spec.directory, self._path)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._columns = stored_schema(spec, schema)
        self._written_bytes = 0
        with no_space_explained(spec.directory):
            self._writer = pq.ParquetWriter(
                self._file, self._columns, **writer_options(spec, self._columns)
            )

    @property
    def is_full(self) -> bool:
        return self._written_bytes >= self._spec.file_bytes_max

    def add(self, rows: pa.RecordBatch) -> None:
        self._rows.append(rows)
        self.waiting_bytes += rows.nbytes
        if self.waiting_bytes >= _ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._rows:
            return
        table = pa.Table.from_batches(self._rows)
        self._rows, self.waiting_bytes = [], 0
        with no_space_explained(self._spec.directory):
            table = table.select(self._columns.names)
            self._writer.write_table(table, row_group_size=table.num_rows)
        self._written_bytes = self._file.stat().st_size

    def close(self) -> DataFile:
        self.flush()
        with no_space_explained(self._spec.directory):
            self._writer.close()
        return described(self._spec, self._path, self._place, self._values, self.schema)

    def discard(self) -> None:
        with contextlib.suppress(OSError):  # The footer of a file on a full disk.
            self._writer.close()
        self._file.unlink(missing_ok=True)


def table_folder(spec: TableSpec, values: layout.Values) -> str:
    """The folder of a partition; a Parquet table's own one if it has no partitions."""
    folder = layout.folder(spec.partition_by, values)
    return folder or (layout.WHOLE if spec.format == "parquet" else "")


def stored_schema(spec: TableSpec, schema: pa.Schema) -> pa.Schema:
    """The columns inside the files. Partition columns stand in the folder's name instead,

    except for Iceberg, which wants every column in the file.
    """
    if spec.format == "iceberg":
        return schema
    aside = {column.name for column in spec.partition_by if not column.is_date}
    return pa.schema([field for field in schema if field.name not in aside])


def table_schema(spec: TableSpec, schema: pa.Schema) -> pa.Schema:
    """The columns of the table: those of the rows, and the dates its folders are named by."""
    dates = [c for c in spec.partition_by if c.is_date]
    if spec.format == "iceberg":
        return schema  # It knows by itself that a partition is the day of a column.
    return pa.schema([*schema, *(pa.field(c.name, pa.date32()) for c in dates)])


def rows_schema(spec: TableSpec, table: pa.Schema) -> pa.Schema:
    """The columns that rows bring: the table's without the dates made from others."""
    dates = {c.name for c in spec.partition_by if c.is_date and spec.format != "iceberg"}
    return pa.schema([field for field in table if field.name not in dates])


def described(
    spec: TableSpec, path: str, place: str, values: layout.Values, schema: pa.Schema
) -> DataFile:
    """The file as its footer tells it."""
    file = Path(spec.directory, path)
    footer = pq.read_metadata(file)
    return DataFile(
        path=path,
        place=place,
        values=values,
        rows=footer.num_rows,
        size_bytes=file.stat().st_size,
        schema=schema.serialize().to_pybytes(),
        statistics=delta_statistics(footer, schema),
    )


def writer_options(spec: TableSpec, schema: pa.Schema) -> dict[str, object]:
    """Dictionaries only where values repeat: for long binaries they cost time and save nothing."""
    repeating = [
        field.name
        for field in schema
        if pa.types.is_string(field.type) or pa.types.is_int32(field.type)
    ]
    # Bounds of long binaries are never used to skip files.
    bounded = [field.name for field in schema if not pa.types.is_binary(field.type)]
    return {
        "compression": spec.compression,
        "compression_level": 1 if spec.compression == "zstd" else None,
        "use_dictionary": repeating,
        "write_statistics": bounded,
        "store_schema": False,
        "coerce_timestamps": "us",
    }


def stage(spec: TableSpec, query_id: str, batch_id: int) -> str:
    """Where files wait for the commit, for formats whose readers would see them at once."""
    if spec.format != "parquet" and spec.merge is None:
        return ""
    return f"{STAGING}/{layout.query_tag(query_id)}-{batch_id:010d}"


def rewrite(
    spec: TableSpec,
    sources: Iterable[Path],
    target: Path,
    schema: pa.Schema,
    *,
    of_table: bool = True,
) -> None:
    """The rows of some files in one file with these columns, a row group at a time."""
    columns = stored_schema(spec, schema)
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        no_space_explained(spec.directory),
        pq.ParquetWriter(target, columns, **writer_options(spec, columns)) as writer,
    ):
        for batches in _row_groups(sources, columns, of_table):
            writer.write_table(pa.Table.from_batches(batches))


def _row_groups(
    sources: Iterable[Path], columns: pa.Schema, of_table: bool
) -> Iterator[list[pa.RecordBatch]]:
    waiting: list[pa.RecordBatch] = []
    for source in sources:
        with pq.ParquetFile(source) as file:
            for batch in file.iter_batches(batch_size=65_536):
                waiting.append(conform(batch, columns, of_table=of_table))
                if sum(rows.nbytes for rows in waiting) >= _ROW_GROUP_BYTES:
                    yield waiting
                    waiting = []
    if waiting:
        yield waiting


def remove_files(directory: Path, paths: Iterable[str]) -> None:
    """Delete files, and the folders that are empty without them."""
    for path in paths:
        file = directory / path
        file.unlink(missing_ok=True)
        for parent in file.parents:
            if parent == directory or not _remove_if_empty(parent):
                break


def _remove_if_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False  # Not empty, or gone already.
    return True


@contextlib.contextmanager
def no_space_explained(directory: str) -> Iterator[None]:
    """A full disk is something the user can repair, so it gets a sentence."""
    try:
        yield
    except Exception as error:
        if not _tells_of_full_disk(error):
            raise
        raise LakeError(
            f"the disk of the table {directory} is full; nothing of this batch was written: "
            "make room and start again"
        ) from error


def _tells_of_full_disk(error: Exception) -> bool:
    """delta-rs and SQLite have errors of their own for what the system told them."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    text = str(error)
    return "No space left on device" in text or "database or disk is full" in text
