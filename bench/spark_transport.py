"""The limit of any source written in Python: the same rows over and over, with no work behind them.

What Spark needs to take Arrow batches from a Python worker is in this figure and in ours; fetching
and decoding are only in ours.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.spark.data_source import spark_schema
from penstock.spark.schema import DEFAULT_COLUMNS

ROWS_PER_BATCH = 10_000


class TransportSource(DataSource):
    """`format("transport")` with the columns of a topic; options rows, tasks, recordBytes."""

    @classmethod
    def name(cls) -> str:
        """What goes into `format(...)`."""
        return "transport"

    def schema(self) -> StructType:
        """That of a topic."""
        return spark_schema(DEFAULT_COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        """The same rows for every task."""
        return TransportReader(schema, {name: int(text) for name, text in self.options.items()})


class TransportReader(DataSourceReader):
    """Sends one prebuilt batch until there are enough rows."""

    def __init__(self, schema: StructType, amounts: dict[str, int]) -> None:
        self.schema = schema
        self.amounts = amounts

    def partitions(self) -> list[InputPartition]:
        """One per task."""
        return [InputPartition(number) for number in range(self.amounts["tasks"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """So many rows in all."""
        batch = self._batch()
        left = self.amounts["rows"] // self.amounts["tasks"]
        while left > 0:
            yield batch.slice(0, min(left, ROWS_PER_BATCH))
            left -= ROWS_PER_BATCH

    def _batch(self) -> pa.RecordBatch:
        value = bytes(i * 31 % 251 for i in range(self.amounts["recordbytes"]))
        columns = {
            "key": [None] * ROWS_PER_BATCH,
            "value": [value] * ROWS_PER_BATCH,
            "topic": ["transport"] * ROWS_PER_BATCH,
            "partition": [0] * ROWS_PER_BATCH,
            "offset": range(ROWS_PER_BATCH),
            "timestamp": [1_700_000_000_000_000] * ROWS_PER_BATCH,
            "timestampType": [0] * ROWS_PER_BATCH,
        }
        schema = to_arrow_schema(self.schema, timezone="UTC")
        arrays = [pa.array(columns[field.name], field.type) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
