"""A stage as a Spark query: topics in, tasks, topics out, exactly once.

Offsets and state are Spark's checkpoint, output and changelogs one batch of the sink; the sink's
note decides the batch as a whole, so the four can never part (`spark/sink/transactional.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.streams.spark.spreading import group_numbers
from penstock.streams.tasks.batch import ANY_PARTITION, StageWork

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.queries.query import Query

_POOL = "spark.scheduler.pool"
_SHUFFLE = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageQuery:
    """All that Spark has to know of a stage."""

    name: str
    work: StageWork
    topics: tuple[str, ...]  # As named on the brokers.
    global_topics: tuple[str, ...]
    tasks: int
    places: int  # Of Spark's; fixed for the life of a checkpoint.
    has_state: bool
    group: str
    checkpoint: Path
    settings: Mapping[str, str]  # Of the client.
    starting: str  # "earliest", "latest" or offsets, for a new checkpoint.
    delivery: str
    records_max: int  # Of a batch.
    every: str | None  # None: what is there now, then the end.

    def start(self, spark: "SparkSession") -> "Query":
        """Start it, in a pool of its own so that no stage starves another."""
        spark.sparkContext.setLocalProperty(_POOL, self.name)
        before = spark.conf.get(_SHUFFLE)
        spark.conf.set(_SHUFFLE, str(self.places))
        try:
            return self._start(spark)
        finally:
            spark.conf.set(_SHUFFLE, str(before))

    def _start(self, spark: "SparkSession") -> "Query":
        rows = self._worked(self._read(spark))
        out = rows.selectExpr(
            "topic",
            f"nullif(partition, {ANY_PARTITION}) AS partition",
            "key",
            "value",
            "headers",
            "timestamp",
        )
        options = {
            **self._kafka(),
            "delivery": self.delivery,
            "includeTimestamp": "true",
            "transactionalIdPrefix": self.name,
            "checkpointLocation": str(self.checkpoint),
        }
        writer = out.writeStream.format("penstock").options(**options)
        writer = writer.outputMode("append").queryName(self.name)
        if self.every is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=self.every).start()

    def _read(self, spark: "SparkSession") -> "DataFrame":
        options = {
            **self._kafka(),
            "subscribe": ",".join((*self.topics, *self.global_topics)),
            "startingOffsets": self.starting,
            "includeHeaders": "true",
            "maxOffsetsPerTrigger": str(self.records_max),
            "kafka.group.id": self.group,
            "kafka.isolation.level": "read_committed",
            "checkpointLocation": str(self.checkpoint),
        }
        frame = spark.readStream.format("penstock").options(**options).load()
        return frame.selectExpr(
            "topic",
            "partition",
            "offset",
            "unix_millis(timestamp) AS timestamp",
            "key",
            "value",
            "headers",
        )

    def _worked(self, rows: "DataFrame") -> "DataFrame":
        from penstock.streams.spark.processor import (
            ROW_SCHEMA,
            StageProcessor,
            run_without_state,
        )

        if not self.has_state:
            run: Any = partial(run_without_state, self.work)
            return rows.mapInArrow(run, ROW_SCHEMA)
        groups = group_numbers(self.tasks, self.places)
        grouped = self._with_task(rows, groups).groupBy("task")
        processor = StageProcessor(self.work, groups)
        return grouped.transformWithStateInPandas(processor, ROW_SCHEMA, "append", "none")

    def _with_task(self, rows: "DataFrame", groups: list[int]) -> "DataFrame":
        """Each row for the task of its partition; of a global table for every task."""
        from pyspark.sql import functions as f

        numbers = f.array(*(f.lit(number) for number in groups))
        own = f.element_at(numbers, f.col("partition") + 1)
        if not self.global_topics:
            return rows.withColumn("task", own)
        everyone = f.col("topic").isin(*self.global_topics)
        tasks = f.when(everyone, numbers).otherwise(f.array(own))
        return rows.withColumn("task", f.explode(tasks))

    def _kafka(self) -> dict[str, str]:
        return {f"kafka.{name}": value for name, value in self.settings.items()}
