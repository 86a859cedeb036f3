"""What the records of a range add up to, taken from their bytes where they are fetched.

A stage that only counts, or adds up what its records are, needs no expression computed: then no
record goes to the JVM, only what a range comes to. Records are read as `serde_text` has Spark read
them, so it makes no difference which of the two does.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from penstock.client.values import TopicPartition
from penstock.streams.plan.native import NativeStage, tally_step
from penstock.streams.spark.combining import PARCEL_NAMES, parcels_of
from penstock.streams.steps.aggregates import AggregateStream, AggregateWindows
from penstock.streams.tasks.batch import UnreadableRecord
from penstock.streams.values.serdes import Serde, SerdeError

_US_OF_MS = 1_000
_NUMBERS = {"long": (8, ">i8"), "integer": (4, ">i4")}


@dataclass(frozen=True, slots=True)
class RangeTally:
    """Adds the records of a range up, for the range's task."""

    stage: NativeStage
    topics: tuple[str, ...]  # As named on the brokers; a topic's number is its place here.
    groups: tuple[int, ...]  # The number each task goes by.

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the records."""
        return ("key", "value", "offset", "timestamp")

    @property
    def schema(self) -> StructType:
        """Of the parcels."""
        kinds = zip(PARCEL_NAMES, (IntegerType(), BinaryType()), strict=True)
        return StructType([StructField(name, kind) for name, kind in kinds])

    @property
    def step(self) -> AggregateStream | AggregateWindows:
        """What adds up."""
        step = tally_step(self.stage.ways[0].end)
        assert step is not None
        return step

    def __call__(
        self, partition: TopicPartition, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """The parcels of a range; none where nothing is added up."""
        taken = [self.taken(partition, batch) for batch in batches]
        if any(map(len, taken)):
            rows = pa.concat_tables(taken)
            yield parcels_of(self.step, rows, self.groups[partition.partition])

    def taken(self, partition: TopicPartition, batch: pa.RecordBatch) -> pa.Table:
        """Of each record that is added up: the time, the place, the key and what is asked of it."""
        parts, count = self._parts(partition, batch), len(batch)
        assert self.step.tally is not None
        asked = {
            f"i{at}": parts[one.column.detail]
            for at, one in enumerate(self.step.tally.columns)
            if one.column is not None
        }
        rows = pa.table(
            {
                "timestamp": parts["timestamp"],
                "topic": _same(self.topics.index(partition.topic), count),
                "partition": _same(partition.partition, count),
                "offset": batch["offset"],
                "key": batch["key"],
                **asked,
            }
        )
        # Windows take records without value, too.
        wanted = ("key", "value") if isinstance(self.step, AggregateStream) else ("key",)
        lacking = [batch[name].is_valid() for name in wanted if batch[name].null_count]
        return rows.filter(reduce(pc.and_, lacking)) if lacking else rows

    def _parts(self, partition: TopicPartition, batch: pa.RecordBatch) -> dict[str, Any]:
        """Key, value and time as they are read; UnreadableRecord for the first that cannot be."""
        times_ms = batch["timestamp"].cast(pa.int64()).to_numpy() // _US_OF_MS
        try:
            if self.stage.checks_values and times_ms.min(initial=0) < 0:
                raise pa.ArrowInvalid("a timestamp is negative")
            return {
                "key": _read(self.stage.key_serde, batch["key"]),
                "value": _read(self.stage.value_serde, batch["value"]),
                "timestamp": pa.array(times_ms),
            }
        except pa.ArrowInvalid as error:
            raise self._refusal(partition, batch, times_ms) or error from None

    def _refusal(
        self, partition: TopicPartition, batch: pa.RecordBatch, times_ms: Any
    ) -> UnreadableRecord | None:
        """The first record that cannot be read, and why; None: all can."""
        keys, values, offsets = (batch[n].to_pylist() for n in ("key", "value", "offset"))
        for at_ms, key, value, offset in zip(times_ms, keys, values, offsets, strict=True):
            reason = self._reason(int(at_ms), key, value)
            if reason is not None:
                topic, number = partition
                return UnreadableRecord(f"{topic}-{number}@{offset}", reason)
        return None

    def _reason(self, at_ms: int, key: bytes | None, value: bytes | None) -> str | None:
        if at_ms < 0:
            return f"its timestamp is {at_ms}"
        pairs = {"key": (self.stage.key_serde, key), "value": (self.stage.value_serde, value)}
        for part, (serde, data) in pairs.items():
            try:
                serde.deserialize(data)
            except SerdeError:
                return f"the {part} is not of the {serde.name} serde"
        return None


def _same(number: int, count: int) -> Any:
    return pa.repeat(pa.scalar(number, pa.int32()), count)


def _read(serde: Serde[Any], data: Any) -> Any:
    """What the bytes are, or the bytes where nobody looks into them; ArrowInvalid: none of it."""
    if serde.name == "string":
        return data.cast(pa.string())  # Checks that it is UTF-8, and copies nothing.
    if serde.name not in _NUMBERS:
        return data
    size, form = _NUMBERS[serde.name]
    fixed = data.cast(pa.binary(size))
    numbers = np.frombuffer(fixed.buffers()[1], form, len(data), fixed.offset * size)
    return pa.array(numbers.astype(np.int64), mask=data.is_null().to_numpy(zero_copy_only=False))
