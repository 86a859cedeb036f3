"""A batch of a topic that cannot be read: too large when decompressed, or damaged by its producer.

No record of it is known, only which offsets it has, so it is told as a whole: by topic, partition,
first and last offset. It ends the query; or it is one row without key and value, whose headers say
what happened; or it is left out. As a dead letter it has neither key nor value: it is no record
that could be sent again, and its bytes stay in the topic for as long as that keeps them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.client.values import TopicPartition
from penstock.errors import PenstockError
from penstock.schemas.dead_letters import Cause
from penstock.spark.columns.arrow_records import arrow_schema
from penstock.spark.columns.batch_walk import Damaged

KAFKA_CONSUME = "KAFKA_CONSUME"  # Connect's stage of what cannot be read from a topic.


class UnreadableBatchError(PenstockError):
    """A batch that cannot be read ends the query; nothing behind it was read."""


class UnreadableBatch(NamedTuple):
    """What a reader of a range of offsets finds in the place of records."""

    partition: TopicPartition
    first_offset: int  # Within the range: each range answers for its own offsets.
    last_offset: int
    timestamp_ms: int
    reason: str
    stored: memoryview  # The batch as the broker has it.

    @property
    def sentence(self) -> str:
        topic, partition = self.partition
        where = f"{topic}-{partition} with the offsets {self.first_offset} to {self.last_offset}"
        return f"the batch of {where} cannot be read: {self.reason}"

    def error(self) -> UnreadableBatchError:
        """For readers who chose to fail."""
        return UnreadableBatchError(
            f"{self.sentence}; choose to set such batches aside (onUnreadableBatch, on_error or a "
            "dead-letter topic), or begin behind it"
        )

    def cause(self) -> Cause:
        """As the headers of a dead letter tell it."""
        kind = UnreadableBatchError
        return Cause(
            topic=self.partition.topic,
            partition=self.partition.partition,
            offset=self.first_offset,
            last_offset=self.last_offset,
            timestamp_ms=self.timestamp_ms,
            stage=KAFKA_CONSUME,
            error_class=f"{kind.__module__}.{kind.__qualname__}",
            message=self.sentence,
        )


def unreadable(
    damaged: Damaged, partition: TopicPartition, start: int, end: int
) -> UnreadableBatch | None:
    """The batch as far as it is in [start, end); None: it is outside."""
    span = damaged.span
    first = max(span.base_offset, start)
    last = min(span.base_offset + span.last_offset_delta, end - 1)
    if first > last:
        return None
    when = span.base_timestamp if span.append_time_ms is None else span.append_time_ms
    return UnreadableBatch(partition, first, last, when, damaged.reason, span.stored)


def marker_row(found: UnreadableBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """One row in the place of the batch: no key, no value, and the reason in its headers."""
    told: dict[str, Any] = {
        "topic": found.partition.topic,
        "partition": found.partition.partition,
        "offset": found.first_offset,
        "timestamp": found.timestamp_ms * 1000,
        "timestampType": 0,
        "headers": [{"key": k, "value": v} for k, v in found.cause().headers()],
    }
    return one_row(told, columns)


def one_row(told: Mapping[str, Any], columns: Sequence[str]) -> pa.RecordBatch:
    """A row that is no record: what is told in it, null for the rest; times in microseconds."""
    schema = arrow_schema(columns)
    arrays = [_array(told.get(one.name), one.type) for one in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(value: Any, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array([value], pa.int64()).cast(kind)
    return pa.array([value], kind)
