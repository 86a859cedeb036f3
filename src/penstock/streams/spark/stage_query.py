"""A stage as a Spark query: topics in, tasks, topics out, exactly once.

Offsets and state are Spark's checkpoint, output and changelogs one batch of the sink; the sink's
note decides the batch as a whole, so the four can never part (`spark/sink/transactional.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.streams.plan.lanes import has_lane
from penstock.streams.plan.native import (
    NativeStage,
    adds_up_what_is_read,
    native_stage,
    native_tally,
)
from penstock.streams.spark.native_rows import NativeRows
from penstock.streams.spark.restoring import LostTasks
from penstock.streams.spark.session import EXACT, settings_of
from penstock.streams.spark.spreading import group_numbers
from penstock.streams.tasks.batch import ANY_PARTITION, StageWork

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.queries.query import Query

_POOL = "spark.scheduler.pool"
_SHUFFLE = "spark.sql.shuffle.partitions"
_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value")
# Of a batch, which costs the same however large it is. Rows of a native stage only pass through; of
# those that are added up where they are read a few cells are held there, of other tallies behind
# the JVM as well, of a lane mostly too; of other stages with state everything is held.
_NATIVE_RECORDS, _RANGE_RECORDS = 1_000_000, 1_000_000
_TALLY_RECORDS, _LANE_RECORDS, _STEP_RECORDS = 500_000, 250_000, 100_000


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
    lost: LostTasks  # What tasks without pages begin with.
    group: str
    checkpoint: Path
    settings: Mapping[str, str]  # Of the client.
    starting: str  # "earliest", "latest" or offsets, for a new checkpoint.
    delivery: str
    records_max: int | None  # Of a batch; None: what suits the stage.
    every: str | None  # None: what is there now, then the end.

    def start(self, spark: "SparkSession") -> "Query":
        """Start it, in a pool of its own so that no stage starves another."""
        spark.sparkContext.setLocalProperty(_POOL, self.name)
        with settings_of(spark, {**EXACT, _SHUFFLE: str(self.places)}):
            return self._start(spark)

    def _start(self, spark: "SparkSession") -> "Query":
        rows = self._worked(spark)
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

    def _read(self, spark: "SparkSession", records_max: int, *others: str) -> "DataFrame":
        """The rows of all topics, with some other columns as well."""
        options = {
            **self._source(records_max),
            "columns": ",".join((*_COLUMNS, *others)),
            "includeRangeEnds": str("timestampType" in others).lower(),
        }
        frame = spark.readStream.format("penstock").options(**options).load()
        return frame.selectExpr(
            "topic",
            "partition",
            "offset",
            "unix_millis(timestamp) AS timestamp",
            "key",
            "value",
            *others,
        )

    def _source(self, records_max: int) -> dict[str, str]:
        """What is read, and how much of it in a batch."""
        return {
            **self._kafka(),
            "subscribe": ",".join((*self.topics, *self.global_topics)),
            "startingOffsets": self.starting,
            "maxOffsetsPerTrigger": str(self.records_max or records_max),
            "kafka.group.id": self.group,
            "kafka.isolation.level": "read_committed",
            "checkpointLocation": str(self.checkpoint),
        }

    def _worked(self, spark: "SparkSession") -> "DataFrame":
        from penstock.streams.spark.lane_rows import run_in_lane
        from penstock.streams.spark.processor import ROW_SCHEMA, run_without_state

        native = None if self.has_state else native_stage(self.work.topology)
        if native is not None:
            rows = self._read(spark, _NATIVE_RECORDS, "headers", "timestampType")
            return NativeRows(native, self.work).worked(rows)
        if not self.has_state:
            run: Any = partial(run_in_lane if self._has_lane else run_without_state, self.work)
            return self._read(spark, _NATIVE_RECORDS, "headers").mapInArrow(run, ROW_SCHEMA)
        rows, processor = self._with_state(spark)
        grouped = rows.groupBy("task")
        return grouped.transformWithStateInPandas(processor, ROW_SCHEMA, "append", "none")

    def _with_state(self, spark: "SparkSession") -> tuple["DataFrame", Any]:
        """The rows for each task, and what runs it."""
        from penstock.streams.spark.processor import StageProcessor
        from penstock.streams.spark.tally_rows import TallyProcessor, TallyRows

        groups = group_numbers(self.tasks, self.places)
        if self._has_lane:
            return self._in_lane(spark, groups)
        tally = self._tally()
        if tally is None:
            rows = self._with_task(self._read(spark, _STEP_RECORDS, "headers"), groups)
            return rows, StageProcessor(self.work, groups, self.lost)
        processor = TallyProcessor(self.work, tally.ways[0].end.name, groups, self.lost)
        if self.sums_where_it_reads:
            return self._added(spark, tally, groups), processor
        rows = self._with_task(self._read(spark, _TALLY_RECORDS), groups)
        return TallyRows(tally, self.work).added(rows), processor

    def _added(self, spark: "SparkSession", stage: NativeStage, groups: list[int]) -> "DataFrame":
        """What each range of offsets adds up to, from the source itself."""
        from penstock.spark.source.combined import CombinedSource, combining
        from penstock.streams.spark.range_tally import RangeTally

        tally = RangeTally(stage, tuple(self.work.sources), tuple(groups))
        options = {**self._source(_RANGE_RECORDS), **combining(tally)}
        spark.dataSource.register(CombinedSource)
        return spark.readStream.format(CombinedSource.name()).options(**options).load()

    @property
    def sums_where_it_reads(self) -> bool:
        """Whether its source sends what records add up to, not records."""
        tally = self._tally()
        return tally is not None and adds_up_what_is_read(tally)

    def _in_lane(self, spark: "SparkSession", groups: list[int]) -> tuple["DataFrame", Any]:
        """The same where records are added up in a lane, where they are read."""
        from penstock.streams.spark.combining import PARCEL_SCHEMA
        from penstock.streams.spark.lane_rows import LaneProcessor, lane_parcels

        rows = self._with_task(self._read(spark, _LANE_RECORDS, "headers"), groups)
        add: Any = partial(lane_parcels, self.work)
        return rows.mapInArrow(add, PARCEL_SCHEMA), LaneProcessor(self.work, groups, self.lost)

    @property
    def _has_lane(self) -> bool:
        return has_lane(self.work.topology, merges=self.work.merges)

    def _tally(self) -> NativeStage | None:
        """How the stage adds up; None: record by record, as when a misfit has to be put aside."""
        found = native_tally(self.work.topology) if self.work.merges else None
        if found is None or (found.checks_values and self.work.dead_letters is not None):
            return None
        return found

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
