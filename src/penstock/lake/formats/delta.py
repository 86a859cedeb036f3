"""Delta tables by delta-rs: the batch id stands in the table's own log.

Delta's protocol has a `txn` action: an application and the version it has written. Ours is the
query's id and the batch id, in the same log entry as the files, so a batch that is replayed finds
itself. The workers have written the files; here only log entries are written, except for merges and
for types that widen, which rewrite rows in delta-rs.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties

from penstock.lake.columns.schema import conform, is_only_growth
from penstock.lake.errors import IncompatibleSchema
from penstock.lake.formats.delta_merge import merge_batch
from penstock.lake.spec import TableSpec
from penstock.lake.writing.files import DataFile, rows_schema, table_schema

_DELTA_NAMES: dict[str, Any] = {
    "zstd": "ZSTD",
    "snappy": "SNAPPY",
    "lz4": "LZ4_RAW",
    "gzip": "GZIP",
    "none": "UNCOMPRESSED",
}


class DeltaLakeTable:
    def __init__(self, spec: TableSpec) -> None:
        self._spec = spec
        self._table = _existing(spec.directory)

    def schema(self) -> pa.Schema | None:
        if self._table is None:
            return None
        return rows_schema(self._spec, arrow_schema(self._table))

    def committed(self, query_id: str) -> int:
        version = self._table.transaction_version(query_id) if self._table else None
        return -1 if version is None else version

    def evolve(self, target: pa.Schema) -> None:
        wanted = table_schema(self._spec, target)
        if self._table is None:
            self._table = DeltaTable.create(
                self._spec.directory, wanted, partition_by=self._partition_names()
            )
            return
        have = arrow_schema(self._table)
        if have.equals(wanted):
            return
        if is_only_growth(have, wanted):
            # No rows: only the columns get into the log.
            write_deltalake(self._table, wanted.empty_table(), mode="append", schema_mode="merge")
        else:
            self._rewrite(wanted)
        self._table = DeltaTable(self._spec.directory)

    def append(self, files: Sequence[DataFile], *, query_id: str, batch_id: int) -> None:
        assert self._table is not None, "evolve() comes first"
        properties = CommitProperties(app_transactions=[Transaction(query_id, batch_id)])
        if self._spec.merge is not None and files:
            columns = arrow_schema(self._table)
            merge_batch(self._table, self._spec, files, columns, properties)
            return
        # A batch without rows is remembered too: its number must not come again.
        self._table.create_write_transaction(
            [self._added(file) for file in files],
            "append",
            arrow_schema(self._table),
            self._partition_names(),
            commit_properties=properties,
        )

    def compact(self) -> int:
        if self._table is None or not self._has_many_small_files():
            return 0
        result = self._table.optimize.compact(
            target_size=self._spec.file_bytes_max, writer_properties=writer_properties(self._spec)
        )
        return int(result["numFilesRemoved"]) - int(result["numFilesAdded"])

    def recover(self) -> None:
        """A log entry is there or not; nothing stays half done."""

    def _partition_names(self) -> list[str]:
        return [column.name for column in self._spec.partition_by]

    def _added(self, file: DataFile) -> AddAction:
        names = self._partition_names()
        return AddAction(
            path=file.place,
            size=file.size_bytes,
            partition_values=dict(zip(names, file.values, strict=True)),
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=file.statistics,
        )

    def _has_many_small_files(self) -> bool:
        assert self._table is not None
        counts: dict[tuple[object, ...], int] = {}
        actions = pa.table(self._table.get_add_actions(flatten=True))
        keys = [name for name in actions.column_names if name.startswith("partition.")]
        for row in actions.select(["size_bytes", *keys]).to_pylist():
            if row.pop("size_bytes") < self._spec.file_bytes_max // 2:
                key = tuple(row.values())
                counts[key] = counts.get(key, 0) + 1
        return any(count > self._spec.small_files_max for count in counts.values())

    def _rewrite(self, wanted: pa.Schema) -> None:
        """All rows again in wider types, as one log entry: old files keep no narrow type behind."""
        assert self._table is not None
        rows = _Conformed(self._table.to_pyarrow_dataset(), wanted)
        try:
            write_deltalake(
                self._table,
                pa.RecordBatchReader.from_batches(wanted, rows),
                mode="overwrite",
                schema_mode="overwrite",
                partition_by=self._partition_names() or None,
                writer_properties=writer_properties(self._spec),
            )
        except DeltaError:
            if rows.refused is not None:
                raise rows.refused from None
            raise


def arrow_schema(table: DeltaTable) -> pa.Schema:
    """The table's columns as Arrow has them, all of them nullable."""
    return pa.schema([_plain(field) for field in pa.schema(table.schema().to_arrow())])


def writer_properties(spec: TableSpec) -> WriterProperties:
    """The compression of our own files for those that delta-rs writes."""
    return WriterProperties(compression=_DELTA_NAMES[spec.compression])


def _plain(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _plain_type(field.type))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_plain(field) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _plain_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    return kind


class _Conformed:
    """All rows of a table in other types; remembers the error that delta-rs would wrap."""

    def __init__(self, dataset: ds.Dataset, wanted: pa.Schema) -> None:
        self.refused: IncompatibleSchema | None = None
        self._dataset = dataset
        self._wanted = wanted

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._dataset.to_batches():
            try:
                yield conform(batch, self._wanted, of_table=True)
            except IncompatibleSchema as error:
                self.refused = error
                raise


def _existing(directory: str) -> DeltaTable | None:
    try:
        return DeltaTable(directory)
    except TableNotFoundError:
        return None
