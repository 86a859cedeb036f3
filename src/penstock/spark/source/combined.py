"""`format("penstock_combined")`: what the records of a range come to, instead of the records.

Spark plans, retries and checkpoints as for any stream of the source, but a combiner that the caller
gives takes each range's Arrow batches where they are read, and what it makes of them is all that
goes to the JVM. What that is, this source does not know.
"""

import pickle
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Protocol

import pyarrow as pa
from pyspark.cloudpickle import dumps
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.types import StructType

from penstock.client.values import TopicPartition
from penstock.spark.options import OptionError, ReadOptions, read_options
from penstock.spark.source.reader import RangePartition
from penstock.spark.source.stream_reader import PenstockStreamReader

_OPTION = "combiner"
_COLUMNS = "columns"


class RangeCombiner(Protocol):
    """What is done with the records of a range; it travels to the workers, pickled.

    A range that is read again must come to the same.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of records that it looks at."""

    @property
    def schema(self) -> StructType:
        """The rows that it makes."""

    def __call__(
        self, partition: TopicPartition, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of one range."""


def combining(combiner: RangeCombiner) -> dict[str, str]:
    """The options that say what is made of the records; beside those of format("penstock")."""
    pickled = dumps(combiner)  # type: ignore[no-untyped-call]
    return {_OPTION: b64encode(pickled).decode(), _COLUMNS: ",".join(combiner.columns)}


class CombinedSource(DataSource):
    """Topics as data frames of what their records come to. For streams alone."""

    @classmethod
    def name(cls) -> str:
        """What goes into `format(...)`."""
        return "penstock_combined"

    def schema(self) -> StructType:
        """The combiner's."""
        combiner: RangeCombiner = pickle.loads(_pickled(self.options))
        return combiner.schema

    def streamReader(self, schema: StructType) -> "CombinedReader":  # noqa: N802
        """For `spark.readStream`."""
        topics = {name: text for name, text in self.options.items() if name.lower() != _OPTION}
        return CombinedReader(read_options(topics, streaming=True), _pickled(self.options))


class CombinedReader(PenstockStreamReader):
    """Plans as the source does; its tasks combine what they read, and load the combiner for it."""

    def __init__(self, options: ReadOptions, pickled: bytes) -> None:
        super().__init__(options)
        self.pickled = pickled

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "pickled": self.pickled}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What the records of one task come to, on a worker."""
        assert isinstance(partition, RangePartition)
        combiner: RangeCombiner = pickle.loads(self.pickled)
        return combiner(partition.wanted.partition, super().read(partition))


def _pickled(options: Mapping[str, str]) -> bytes:
    text = options.get(_OPTION)
    if text is None:
        raise OptionError(f"Option {_OPTION!r} must say what is made of the records")
    return b64decode(text)
