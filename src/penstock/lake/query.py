"""A streaming data frame into a table: `table()`, and the running query it gives.

The query is Spark's own with two things added: it holds the table's writer lock while it runs, and
what makes it fail is told in one sentence instead of a page of Java.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.lake.columns.agreement import forget_agreements
from penstock.lake.errors import LakeError
from penstock.lake.formats.tables import open_table, remember_spec, remove_leftovers
from penstock.lake.merge_query import merging
from penstock.lake.progress import (
    BatchProgress,
    dead_letters_of_batches,
    new_batches,
    rows_of_batches,
)
from penstock.lake.spec import OWN_FOLDER, Merge, TableSpec, parse_partitioning
from penstock.lake.writing.commit import refresh_columns
from penstock.lake.writing.locks import WriterLock, commit_lock
from penstock.lake.writing.sink import SPEC_OPTION, LakeSink

_OUR_ERROR = re.compile(r"^\s*(?:penstock\.[\w.]+): (.+)$", re.MULTILINE)

T = TypeVar("T")

# By directory: the queries of this process, so that one that has failed does not keep its table.
_running: dict[str, "LakeQuery"] = {}


def table(
    stream: DataFrame,
    *,
    to: str | Path,
    format: str = "delta",  # noqa: A002  (the word that Spark uses)
    partition_by: str | Iterable[str] | None = None,
    merge_on: Iterable[str] | None = None,
    merge_order_by: str | None = None,
    merge_delete_when: str | None = None,
    once: bool = False,
    every: str | None = None,
    name: str | None = None,
    checkpoint: str | Path | None = None,
    compression: str = "zstd",
    compact_small_files: bool = True,
    file_bytes_max: int = 128 << 20,
    small_files_max: int = 16,
    table_name: str = "lake.table",
    catalog: Mapping[str, str] | None = None,
) -> "LakeQuery":
    """Write a streaming data frame into the table at `to`, each row once.

    `merge_on` (Delta) lets a row replace the one with the same values in those columns: what a
    query in update mode gives. `merge_order_by` says which of several rows of a key in one batch is
    the last, `merge_delete_when` is an SQL condition on the new row (`new.op = 'd'`) that deletes
    the old one. `partition_by` has columns and `date(column)`. `once` stops when all that is there
    now is written; otherwise a batch is taken as soon as there is one, or `every` so often.
    """
    merge = _merge(merge_on, merge_order_by, merge_delete_when)
    spec = TableSpec(
        directory=local_directory(to),
        format=format,
        partition_by=parse_partitioning(partition_by),
        merge=merge,
        compression=compression,
        compact_small_files=compact_small_files,
        file_bytes_max=file_bytes_max,
        small_files_max=small_files_max,
        table_name=table_name,
        catalog=dict(catalog or {}),
    )
    return start(stream, spec, once=once, every=every, name=name, checkpoint=checkpoint)


def start(
    stream: DataFrame,
    spec: TableSpec,
    *,
    once: bool,
    every: str | None,
    name: str | None,
    checkpoint: str | Path | None,
) -> "LakeQuery":
    """Take the table's lock, tidy up after a writer that was killed, and let the query run."""
    if not stream.isStreaming:
        raise LakeError("a lake table is written from a streaming data frame; use readStream")
    if once and every:
        raise LakeError("`once` and `every` exclude each other")
    folder = checkpoint_of(spec.directory, checkpoint)
    lock = _lock(spec)
    try:
        tidy(spec, _query_id(folder))
        remember_spec(spec)
        writer = _writer(stream, spec, folder).option("checkpointLocation", str(folder))
        if name:
            writer = writer.queryName(name)
        if once:
            writer = writer.trigger(availableNow=True)
        elif every:
            writer = writer.trigger(processingTime=every)
        query = LakeQuery(writer.start(), spec, lock)
    except BaseException:
        lock.release()
        raise
    _running[spec.directory] = query
    return query


def checkpoint_of(directory: str, chosen: str | Path | None) -> Path:
    """The query's checkpoint: inside the table's directory unless it was chosen."""
    return Path(chosen or Path(directory, OWN_FOLDER, "checkpoint")).absolute()


def _writer(stream: DataFrame, spec: TableSpec, checkpoint: Path) -> DataStreamWriter:
    if spec.merge is not None:
        each = merging(spec, partial(_running_query_id, checkpoint))
        return stream.writeStream.outputMode("update").foreachBatch(each)
    stream.sparkSession.dataSource.register(LakeSink)
    writer = stream.writeStream.outputMode("append").format(LakeSink.name())
    return writer.option(SPEC_OPTION, spec.to_json())


class LakeQuery:
    """A running query into a table; as PySpark's StreamingQuery, and telling failures plainly."""

    def __init__(self, query: StreamingQuery, spec: TableSpec, lock: WriterLock) -> None:
        self._query = query
        self._spec = spec
        self._lock = lock
        self._is_spark_gone = False

    @property
    def id(self) -> str:
        return self._query.id

    @property
    def runId(self) -> str:  # noqa: N802  (as PySpark names it)
        return self._query.runId

    @property
    def name(self) -> str | None:
        return self._query.name

    @property
    def status(self) -> dict[str, Any]:
        return self._query.status

    @property
    def isActive(self) -> bool:  # noqa: N802
        active = self._ask(lambda: self._query.isActive, False)
        if not active:
            self._lock.release()
        return active

    @property
    def lastProgress(self) -> Any:  # noqa: N802
        return self._query.lastProgress

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802
        return self._query.recentProgress

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802
        """Wait for the end; LakeError with the reason if the query failed."""
        try:
            # PySpark takes whole seconds.
            done = self._query.awaitTermination(None if timeout is None else max(1, int(timeout)))
        except StreamingQueryException as error:
            self._lock.release()
            raise LakeError(plain_reason(str(error))) from error
        if timeout is None or done:
            self._lock.release()
        return done

    def processAllAvailable(self) -> None:  # noqa: N802
        try:
            self._query.processAllAvailable()
        except StreamingQueryException as error:
            self._lock.release()
            raise LakeError(plain_reason(str(error))) from error

    def exception(self) -> LakeError | None:
        """Why the query failed; None if it did not."""
        failed = self._ask(self._query.exception, None)
        if self._is_spark_gone:
            return LakeError(
                "Spark's process ended unexpectedly; nothing is lost or doubled: start again"
            )
        return LakeError(plain_reason(str(failed))) if failed is not None else None

    def batches(self, *, after_batch_id: int = -1) -> list[BatchProgress]:
        """The latest batches that had rows: how many, how fast, and what is left to do."""
        reports: list[Any] = self._ask(lambda: self._query.recentProgress, [])
        return new_batches(
            reports,
            rows_of_batches(self._spec),
            dead_letters_of_batches(self._spec),
            after_batch_id=after_batch_id,
        )

    def explain(self, extended: bool = False) -> None:
        self._query.explain(extended)

    def stop(self) -> None:
        """Stop now; a batch that was cut off is taken again by the next run."""
        self._ask(self._query.stop, None)
        self._lock.release()

    def _ask(self, ask: Callable[[], T], otherwise: T) -> T:
        """Spark's answer; a query whose process has died is over, and must not keep its table."""
        try:
            return ask()
        except (Py4JError, ConnectionError) as error:
            if isinstance(error, Py4JJavaError):
                raise
            self._is_spark_gone = True
            return otherwise


def tidy(spec: TableSpec, query_id: str | None) -> None:
    """Finish or take away what a writer that was killed has left half done."""
    with commit_lock(spec):
        found = open_table(spec)
        found.recover()
        refresh_columns(spec, found)
        forget_agreements(spec)
        if query_id is not None:
            remove_leftovers(spec, found, query_id)


def plain_reason(text: str) -> str:
    """Our own sentence out of a Java and Python stack trace; the whole if there is none."""
    found = _OUR_ERROR.findall(text)
    return found[-1].strip() if found else text


def local_directory(to: str | Path) -> str:
    """The absolute path of the table."""
    if "://" in str(to) and not str(to).startswith("file://"):
        raise LakeError(
            f"the table's place is {to}; it must be a directory that this machine and the workers "
            "have in common (mount the bucket, or sync the directory to it)"
        )
    return str(Path(str(to).removeprefix("file://")).absolute())


def _merge(on: Iterable[str] | None, order_by: str | None, delete_when: str | None) -> Merge | None:
    if on is None:
        if order_by or delete_when:
            raise LakeError("merge_order_by and merge_delete_when need merge_on")
        return None
    columns = (on,) if isinstance(on, str) else tuple(on)
    if not columns:
        raise LakeError("merge_on is empty; name the columns that make the key")
    return Merge(on=columns, order_by=order_by, delete_when=delete_when)


def _lock(spec: TableSpec) -> WriterLock:
    before = _running.get(spec.directory)
    if before is not None and not before.isActive:
        del _running[spec.directory]
    return WriterLock(spec)


def _running_query_id(checkpoint: Path) -> str:
    found = _query_id(checkpoint)
    assert found is not None, "Spark writes it before the first batch"
    return found


def _query_id(checkpoint: Path) -> str | None:
    """The id that Spark has given the query at its first start."""
    try:
        return str(json.loads((checkpoint / "metadata").read_text())["id"])
    except FileNotFoundError:
        return None
