"""Update mode into topics: each batch written as a batch, with the stream's own exactly-once.

Spark lets a sink written in Python have append mode only. A query in update mode therefore hands
its batches over one by one (`foreachBatch`), and each is written by the sink's stream writer, told
which batch of which query it is: a batch that is replayed is found written and not written again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from penstock.spark.options import write_options
from penstock.spark.sink.sink import stream_writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

BATCH_OPTION = "penstockbatchid"


class UpdateSink(DataSource):
    """format("penstock_update"), used here alone."""

    @classmethod
    def name(cls) -> str:
        return "penstock_update"

    def writer(self, schema: "StructType", overwrite: bool) -> "OneBatch":
        raw = {key: value for key, value in self.options.items() if key.lower() != BATCH_OPTION}
        batch_id = next(v for k, v in self.options.items() if k.lower() == BATCH_OPTION)
        return OneBatch(raw, schema, int(batch_id))


class OneBatch(DataSourceArrowWriter):
    """One batch of a stream, through the stream's writer."""

    def __init__(self, raw: Mapping[str, str], schema: "StructType", batch_id: int) -> None:
        self._writer = stream_writer(write_options(raw), schema, False)
        self._batch_id = batch_id

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self._writer.write(iterator)

    def commit(self, messages: "Sequence[WriterCommitMessage | None]") -> None:
        self._writer.commit(list(messages), self._batch_id)

    def abort(self, messages: "Sequence[WriterCommitMessage | None]") -> None:
        self._writer.abort(list(messages), self._batch_id)


def write_batches(options: Mapping[str, str]) -> "Callable[[DataFrame, int], None]":
    """For `foreachBatch`: writes each batch with these options of the sink."""

    def write(batch: "DataFrame", batch_id: int) -> None:
        chosen = {**options, BATCH_OPTION: str(batch_id)}
        batch.write.format(UpdateSink.name()).options(**chosen).mode("append").save()

    return write
