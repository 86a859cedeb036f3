"""A batch merged into a Delta table by key: what a query in update mode gives, exactly once.

Each key is one row of the table; a batch that is replayed finds its number in the log and is left
out before this is called. Several rows of one key in a batch need an order to know the last.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import CommitProperties

from penstock.lake.columns.schema import conform
from penstock.lake.errors import LakeError
from penstock.lake.spec import Merge, TableSpec
from penstock.lake.writing.files import DataFile, rows_schema
from penstock.lake.writing.layout import with_partition_columns


def merge_batch(
    table: DeltaTable,
    spec: TableSpec,
    files: Sequence[DataFile],
    columns: pa.Schema,
    properties: CommitProperties,
) -> None:
    """Update the rows whose keys are there, insert the others, in one log entry."""
    merge = spec.merge
    assert merge is not None
    rows = last_of_each_key(staged_rows(spec, files, columns), merge)
    merger = table.merge(
        rows,
        predicate=_same_key(rows, merge.on),
        source_alias="new",
        target_alias="old",
        commit_properties=properties,
    )
    if merge.delete_when is None:
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
        return
    gone = f"({merge.delete_when})"
    merger = merger.when_matched_delete(predicate=gone)
    merger = merger.when_matched_update_all()
    merger.when_not_matched_insert_all(predicate=f"{gone} IS NOT TRUE").execute()


def staged_rows(spec: TableSpec, files: Sequence[DataFile], columns: pa.Schema) -> pa.Table:
    """The rows that the tasks have written for this batch, with all columns of the table."""
    rows = rows_schema(spec, columns)
    batches = []
    for file in files:
        for batch in pq.read_table(Path(spec.directory, file.path)).to_batches():
            whole = conform(_with_folder_values(spec, file, batch), rows)
            whole = with_partition_columns(whole, spec.partition_by)
            batches.append(whole.select(columns.names))
    return pa.Table.from_batches(batches, schema=columns)


def _with_folder_values(spec: TableSpec, file: DataFile, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the columns whose values stand in the folder's name."""
    for column, value in zip(spec.partition_by, file.values, strict=True):
        if not column.is_date:
            kind = file.arrow_schema().field(column.name).type
            scalar = pa.scalar(value, pa.string()).cast(kind)
            values = pa.repeat(scalar, batch.num_rows)
            batch = batch.append_column(pa.field(column.name, kind), values)
    return batch


def last_of_each_key(rows: pa.Table, merge: Merge) -> pa.Table:
    """One row per key: the one with the highest `order_by`."""
    missing = [name for name in merge.on if name not in rows.column_names]
    if missing:
        raise LakeError(
            f"merge_on names {missing[0]}, but the rows have {', '.join(rows.column_names)}"
        )
    keys = list(merge.on)
    counted = rows.group_by(keys).aggregate([([], "count_all")])
    if counted.num_rows == rows.num_rows:
        return rows
    if merge.order_by is None:
        twice = counted.filter(pc.greater(counted["count_all"], 1)).slice(0, 1).to_pylist()[0]
        key = ", ".join(f"{name}={twice[name]}" for name in keys)
        raise LakeError(
            f"a batch has {twice['count_all']} rows with {key}; say with merge_order_by which "
            "column tells the last one"
        )
    order = pc.sort_indices(rows, sort_keys=[(merge.order_by, "ascending")])
    at = pa.array(range(rows.num_rows), pa.int64())
    numbered = rows.take(order).append_column("__at", at)
    last = numbered.group_by(keys).aggregate([("__at", "max")])["__at_max"]
    return numbered.take(last).drop_columns(["__at"])


def _same_key(rows: pa.Table, names: Sequence[str]) -> str:
    return " AND ".join(_same_value(rows, name) for name in names)


def _same_value(rows: pa.Table, name: str) -> str:
    old, new = f'old."{name}"', f'new."{name}"'
    if rows[name].null_count == 0:
        return f"{old} = {new}"
    # NULL is a key like any other for a GROUP BY, so it is one here.
    return f"({old} = {new} OR ({old} IS NULL AND {new} IS NULL))"
