"""The sink that Spark knows: tasks write Parquet files, the driver commits them.

Spark makes a writer anew for each batch on the workers and for each commit on the driver, so the
writer holds nothing but the table's spec. `write` is told its batch by Spark's task properties and
tells it on in the message, since the commit knows the batch but not the query. Records that cannot
be decoded or do not fit are dead letters, if the query has a topic for them (dead_letters.py).
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

from penstock.lake.columns.agreement import Agreement, known_columns
from penstock.lake.columns.rows import row_maker
from penstock.lake.errors import LakeError
from penstock.lake.progress import remember_dead_letters
from penstock.lake.spec import TableSpec
from penstock.lake.writing.commit import commit_batch, discard_batch
from penstock.lake.writing.dead_letters import dead_letter_writer
from penstock.lake.writing.files import DataFile, TaskFiles

SPEC_OPTION = "spec"


@dataclass
class Written(WriterCommitMessage):
    """What one task has written."""

    query_id: str
    files: tuple[DataFile, ...]
    dead: "Dead | None" = None  # None: all records could be decoded.


@dataclass
class Dead:
    """The dead letters of one task, and what their own writer says of them."""

    count: int
    message: WriterCommitMessage


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
            known=known_columns(self._spec).schema,
        )
        agreement = Agreement(self._spec, query_id=query_id, batch_id=batch_id)
        try:
            dead = self._write_rows(iterator, files, agreement)
            return Written(query_id=query_id, files=files.close(), dead=dead)
        except BaseException:
            files.discard()
            raise

    def _write_rows(
        self, iterator: Iterator[pa.RecordBatch], files: TaskFiles, agreement: Agreement
    ) -> Dead | None:
        """Good rows into the files; the others, as they are found, to the dead letters' writer."""
        maker, count = row_maker(self._spec, agreement), 0

        def dead_rows() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for rows in maker.rows(iterator):
                files.write(rows)
                for letters in maker.dead_letters():
                    count += letters.num_rows
                    yield letters

        writer = dead_letter_writer(self._spec)
        if writer is None:
            for _ in dead_rows():
                raise AssertionError("nothing is set aside without a topic for it")
            return None
        message = writer.write(dead_rows())
        return Dead(count=count, message=message) if count else None

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """On the driver: files into the table."""
        written = _written(messages)
        if not written:
            return
        files = [file for one in written for file in one.files]
        commit_batch(self._spec, files, query_id=written[0].query_id, batch_id=batchId)
        count = sum(one.dead.count for one in written if one.dead)
        writer = dead_letter_writer(self._spec) if count else None
        if writer is not None:
            writer.commit(_of_dead_letters(messages), batchId)
            remember_dead_letters(self._spec, batchId, count)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """On the driver, after a task or the commit failed: the files away."""
        written = _written(messages)
        if not written:
            return
        files = [file for one in written for file in one.files]
        discard_batch(self._spec, files, query_id=written[0].query_id, batch_id=batchId)
        writer = dead_letter_writer(self._spec) if any(one.dead for one in written) else None
        if writer is not None:
            writer.abort(_of_dead_letters(messages), batchId)


def _of_dead_letters(
    messages: Sequence[WriterCommitMessage | None],
) -> list[WriterCommitMessage | None]:
    """One for each task, as their writer counts them."""
    return [one.dead.message if isinstance(one, Written) and one.dead else None for one in messages]


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[Written]:
    return [message for message in messages if isinstance(message, Written)]


def _whose() -> tuple[str, int, int]:
    context = TaskContext.get()
    query_id = context.getLocalProperty("sql.streaming.queryId") if context else None
    batch_id = context.getLocalProperty("streaming.sql.batchId") if context else None
    if context is None or query_id is None or batch_id is None:
        raise LakeError("a lake table is written by a streaming query; use writeStream")
    return query_id, int(batch_id), context.partitionId()
