"""A topic's records go to the table without passing through the JVM.

Spark plans, retries and checkpoints as for any query of the source, but what flows through it are
ranges of offsets, a row each. The task that writes the files fetches the records of its ranges
itself: bytes from the broker become Arrow and then Parquet in one process, and no record goes to
the JVM and back.
"""

import pickle
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.spark.options import read_options
from penstock.spark.source.stream_reader import PenstockStreamReader
from penstock.spark.source.unreadable import UnreadableBatch

_COLUMN = "range"


class RangeSource(DataSource):
    """format("penstock_lake_ranges"), with the options of format("penstock")."""

    @classmethod
    def name(cls) -> str:
        return "penstock_lake_ranges"

    def schema(self) -> StructType:
        return StructType([StructField(_COLUMN, BinaryType())])

    def streamReader(self, schema: StructType) -> "RangeReader":  # noqa: N802  (PySpark's name)
        return RangeReader(read_options(self.options, streaming=True))


class RangeReader(PenstockStreamReader):
    """Plans as the source does; its tasks only pass on what they were to read."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        row = pa.array([pickle.dumps(partition)], pa.binary())
        yield pa.RecordBatch.from_arrays([row], names=[_COLUMN])


def records_of(
    source: Mapping[str, str], ranges: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch | UnreadableBatch]:
    """The records of the ranges, read by the source's own reader, and batches it cannot read."""
    reader = PenstockStreamReader(read_options(source, streaming=True))
    for batch in ranges:
        for pickled in batch.column(0).to_pylist():
            yield from reader.read_batches(pickle.loads(pickled))
