"""The sink that Spark knows: tasks write Parquet files, the driver commits them.

Spark makes a writer anew for each batch on the workers and for each commit on the driver, so the
writer holds nothing but the table's spec. `write` is told its batch by Spark's task properties and
tells it on in the message, since the commit knows the batch but not the query.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from penstock.lake.commit import commit_batch, discard_batch, known_schema
from penstock.lake.errors import LakeError
from penstock.lake.files import DataFile, TaskFiles
from penstock.lake.rows import row_maker
from penstock.lake.spec import TableSpec

SPEC_OPTION = "spec"


@dataclass
class Written(WriterCommitMessage):
    """What one task has written."""

    query_id: str
    files: tuple[DataFile, ...]


class LakeSink(DataSource):
    """format("penstock_lake"), used by table() and sync(), which write its one option."""

    @classmethod
    def name(cls) -> str:
        return "penstock_lake"

    def streamWriter(  # noqa: N802  (PySpark's name)
        self, schema: StructType, overwrite: bool
    ) -> "LakeWriter":
        return LakeWriter(TableSpec.from_json(self.options[SPEC_OPTION]))


class LakeWriter(DataSourceStreamArrowWriter):
    def __init__(self, spec: TableSpec) -> None:
        self._spec = spec

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """On a worker: rows into files."""
        query_id, batch_id, task = _whose()
        files = TaskFiles(
            self._spec,
            query_id=query_id,
            batch_id=batch_id,
            task=task,
            known=known_schema(self._spec),
        )
        try:
            for rows in row_maker(self._spec).rows(iterator):
                files.write(rows)
            return Written(query_id=query_id, files=files.close())
        except BaseException:
            files.discard()
            raise

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """On the driver: files into the table."""
        written = _written(messages)
        if written:
            files = [file for one in written for file in one.files]
            commit_batch(self._spec, files, query_id=written[0].query_id, batch_id=batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """On the driver, after a task or the commit failed: the files away."""
        written = _written(messages)
        if written:
            files = [file for one in written for file in one.files]
            discard_batch(self._spec, files, query_id=written[0].query_id, batch_id=batchId)


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [message for message in messages if isinstance(message, Written)]


def _whose() -> tuple[str, int, int]:
    context = TaskContext.get()
    query_id = context.getLocalProperty("sql.streaming.queryId") if context else None
    batch_id = context.getLocalProperty("streaming.sql.batchId") if context else None
    if context is None or query_id is None or batch_id is None:
        raise LakeError("a lake table is written by a streaming query; use writeStream")
    return query_id, int(batch_id), context.partitionId()
