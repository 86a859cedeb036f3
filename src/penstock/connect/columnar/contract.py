"""What a task must have to be run on columns: one more way to poll, or one more way to put.

Such a task has the ordinary way too. A worker takes it where records have to be single ones, and a
columnar sink for the few rows that columns cannot hold.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from penstock.connect.plugins.contract import Config, SinkTask, SourceTask
from penstock.connect.values.schema import Schema
from penstock.records.topic_partition import TopicPartition

# About what one batch of columns has at most: larger ones gain nothing, and a transaction holds it.
COLUMN_BYTES: Final = 1 << 23


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBatch:
    """Records of one topic on their way in, without keys and headers."""

    topic: str
    partition: int | None  # None: the producer chooses, as for records without a key.
    schema: Schema | None  # Of every value.
    # An Arrow array; structs are a struct array, in Arrow's types for the schema. Or a list, of
    # values that no column can hold, as single records would have them.
    values: Any
    timestamp_ms: int | None  # Of all of them; None: the producer's clock.
    source_partition: Mapping[str, Any] | None
    source_offset: Mapping[str, Any] | None  # Behind the last of them.


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueColumns:
    """Values of one partition on their way out; none of them is null."""

    at: TopicPartition
    offsets: Any  # Of each value; a numpy array of int64, ascending.
    schema: Schema | None
    values: Any  # An Arrow array, as in `ColumnBatch`.


class SchemaAndColumn(NamedTuple):
    """Values that are all of one schema, as an Arrow array."""

    schema: Schema | None
    values: Any


def in_pieces(values: Any) -> Iterator[Any]:
    """An array in parts of about COLUMN_BYTES, of one value at least."""
    parts = max(1, -(-values.nbytes // COLUMN_BYTES))
    step = max(1, -(-len(values) // parts))
    for start in range(0, len(values), step):
        yield values.slice(start, step)


class ColumnarSourceTask(SourceTask):
    """A source's task that can also bring columns; a task is polled in one way alone."""

    @classmethod
    def refuses_columns(cls, config: Config) -> str | None:
        """Why tasks of this configuration need single records; None: they do not."""
        return None

    @abstractmethod
    def poll_columns(self) -> Sequence[ColumnBatch]:
        """What is new, in order; empty where nothing is, after a short wait."""


class ColumnarSinkTask(SinkTask):
    """A sink's task that can also take columns, in turns with single records."""

    @classmethod
    def refuses_columns(cls, config: Config) -> str | None:
        """Why tasks of this configuration need single records; None: they do not."""
        return None

    @abstractmethod
    def put_columns(self, batch: ValueColumns) -> bool:
        """Take values as `put` takes records. False: it took none, and wants them as records."""
