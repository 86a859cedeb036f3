"""A source of what records come to: the combiner travels with it, and its options stay at home."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import LongType, StructField, StructType

from penstock.client.values import TopicPartition
from penstock.spark.options import OptionError
from penstock.spark.source import stream_reader
from penstock.spark.source.combined import CombinedReader, CombinedSource, combining
from penstock.spark.source.offsets import OffsetRange
from penstock.spark.source.reader import RangePartition

PLACE = TopicPartition("t", 3)
MINIMUM = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}


@dataclass(frozen=True)
class Lengths:
    """How many records a range has, as rows of its partition and that."""

    columns: tuple[str, ...] = ("offset", "key")

    @property
    def schema(self) -> StructType:
        return StructType([StructField("partition", LongType()), StructField("n", LongType())])

    def __call__(
        self, partition: TopicPartition, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        count = sum(map(len, batches))
        yield pa.RecordBatch.from_pydict({"partition": [partition.partition], "n": [count]})


def reader(**options: str) -> CombinedReader:
    source = CombinedSource(CaseInsensitiveDict({**MINIMUM, **combining(Lengths()), **options}))
    assert source.schema() == Lengths().schema
    return source.streamReader(source.schema())


def test_only_the_columns_that_the_combiner_looks_at_are_read() -> None:
    assert reader().options.columns == ("key", "offset")


def test_a_task_gives_what_the_combiner_makes_of_its_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = OffsetRange(partition=PLACE, start=5, end=8)

    def read_range(options: Any, asked: OffsetRange, topic_id: bytes) -> Iterator[pa.RecordBatch]:
        assert (asked, options.columns) == (wanted, ("key", "offset"))
        yield from (pa.RecordBatch.from_pydict({"offset": [5]}),) * 3

    monkeypatch.setattr(stream_reader, "read_range", read_range)
    on_a_worker: CombinedReader = pickle.loads(pickle.dumps(reader()))
    (batch,) = on_a_worker.read(RangePartition(wanted))
    assert batch.to_pylist() == [{"partition": 3, "n": 3}]


def test_a_source_that_is_not_told_what_to_make_says_so() -> None:
    with pytest.raises(OptionError, match="'combiner' must say what is made of the records"):
        CombinedSource(MINIMUM).schema()


def test_options_are_checked_as_those_of_the_source() -> None:
    with pytest.raises(OptionError, match="did you mean 'failOnDataLoss'"):
        reader(failOnDataLos="false")
