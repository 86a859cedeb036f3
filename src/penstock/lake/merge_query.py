"""Batches of a query in update mode: Spark gives those only to `foreachBatch`.

A sink written in Python may only be appended to. So here the batch is a job of its own: its tasks
write the files as those of the sink do, and their names are collected by the driver, which merges
them into the table. Rows still do not pass through the driver's Python.
"""

import pickle
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from penstock.lake.columns.agreement import known_columns
from penstock.lake.spec import TableSpec
from penstock.lake.writing.commit import commit_batch
from penstock.lake.writing.files import DataFile, TaskFiles, stage

_COLUMN = "files"


def merging(spec: TableSpec, query_id: Callable[[], str]) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` calls; the query's id is known only once it runs."""

    def merge(batch: DataFrame, batch_id: int) -> None:
        write = partial(_write, spec.to_json(), query_id(), batch_id)
        try:
            written = batch.mapInArrow(write, f"{_COLUMN} binary").collect()
        except BaseException:
            left = Path(spec.directory, stage(spec, query_id(), batch_id))
            shutil.rmtree(left, ignore_errors=True)
            raise
        files: list[DataFile] = [file for row in written for file in pickle.loads(row[_COLUMN])]
        commit_batch(spec, files, query_id=query_id(), batch_id=batch_id)

    return merge


def _write(
    spec: str, query_id: str, batch_id: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """On a worker: rows into files; gives their description."""
    table = TableSpec.from_json(spec)
    context = TaskContext.get()
    assert context is not None, "runs in a task"
    files = TaskFiles(
        table,
        query_id=query_id,
        batch_id=batch_id,
        task=context.partitionId(),
        known=known_columns(table).schema,
    )
    try:
        for batch in batches:
            files.write(batch)
        done = pickle.dumps(files.close())
    except BaseException:
        files.discard()
        raise
    yield pa.RecordBatch.from_arrays([pa.array([done], pa.binary())], names=[_COLUMN])
