"""A stage that adds declared aggregates up: Spark computes what is added, Arrow adds it up.

Of each record only the key, the time, the place and the columns that are added up reach Python, and
there they are taken as a whole, before anything is shuffled. What a batch adds up to for a key goes
to the key's task, and is one more step there. Arrow is loaded where it adds up, for the processor
is also loaded by a process that does not (`processor`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.streams.columns.serde_text import writing
from penstock.streams.columns.sql_text import sql_text, text_literal
from penstock.streams.plan.native import (
    NativeStage,
    NativeWay,
    keeps_key,
    substituted,
    tally_step,
)
from penstock.streams.spark.native_rows import PARTS, NativeRows
from penstock.streams.spark.processor import ROWS_AT_ONCE, StateShelf, frame_of_rows, wall_clock_ms
from penstock.streams.spark.restoring import LostTasks
from penstock.streams.steps.aggregates import AggregateStream
from penstock.streams.tasks.batch import StageWork, TaskBatch
from penstock.streams.tasks.pages import PageShelf

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class TallyRows:
    """The text of what is added up."""

    stage: NativeStage
    work: StageWork

    @property
    def way(self) -> NativeWay:
        """The one way there is."""
        return self.stage.ways[0]

    def added(self, rows: "DataFrame") -> "DataFrame":
        """What each range of offsets adds up to, for its task."""
        from penstock.streams.spark.combining import PARCEL_SCHEMA, combine

        step = tally_step(self.way.end)
        assert step is not None
        add: Any = partial(combine, step)
        return self.taken(rows).mapInArrow(add, PARCEL_SCHEMA)

    def taken(self, rows: "DataFrame") -> "DataFrame":
        """Task, key, time, place and columns of each record that is added up."""
        native, way = NativeRows(self.stage, self.work), self.way
        frame = native.read(rows)
        keyed = [f"({native.conditions(way)})", f"{self._key(native)} IS NOT NULL"]
        if isinstance(way.end.step, AggregateStream):
            keyed.append(f"{native.part(way, 'value')} IS NOT NULL")
        places = ["task", "timestamp", self._topic(), "partition", "offset"]
        columns = [*places, f"{self._key(native)} AS key"]
        return frame.where(" AND ".join(keyed)).selectExpr(*columns, *self._inputs())

    def _topic(self) -> str:
        """The topic of a record by its number, for a name in each row would be dear."""
        named = ", ".join(map(text_literal, self.work.sources))
        return f"cast(array_position(array({named}), topic) - 1 AS INT) AS topic"

    def _key(self, native: NativeRows) -> str:
        if keeps_key(self.stage, self.way):
            return "key"
        serde = self.way.end.key_serde
        assert serde is not None
        return writing(serde, native.part(self.way, "key"))

    def _inputs(self) -> Iterator[str]:
        step = tally_step(self.way.end)
        assert step is not None and step.tally is not None
        for at, one in enumerate(step.tally.columns):
            if one.column is not None:
                yield f"{sql_text(substituted(one.column, self.way.parts), PARTS)} AS i{at}"


class TallyProcessor(StatefulProcessor):
    """Runs the tasks of such a stage."""

    def __init__(self, work: StageWork, node: str, groups: Sequence[int], lost: LostTasks) -> None:
        self.work = work
        self.node = node  # The one that adds up.
        self.groups = list(groups)  # The number each task goes by.
        self.lost = lost

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's: open the state."""
        self._pages = handle.getMapState("pages", "state STRING, page INT", "data BINARY")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator["pd.DataFrame"],
        timerValues: Any,  # noqa: N803
    ) -> Iterator["pd.DataFrame"]:
        """Spark's: one task's rows of a batch."""
        from penstock.streams.spark.combining import unpacked

        task = self.groups.index(int(key[0]))
        node, topics = self.work.topology.by_name[self.node], list(self.work.sources)
        step = tally_step(node)
        assert step is not None and step.tally is not None
        found = unpacked((cell for frame in rows for cell in frame["parcel"]), step.tally)
        self.lost.restore(self.work, task, self._shelf)
        ends = {(topics[at], partition): end for (at, partition), end in found.ends.items()}
        batch = TaskBatch(self.work, task, self._shelf, wall_clock_ms())
        written = batch.run_groups(node, found.groups, found.seen_ms, ends)
        for at in range(0, len(written), ROWS_AT_ONCE):
            yield frame_of_rows(written[at : at + ROWS_AT_ONCE])

    def close(self) -> None:
        """Spark's: nothing is held."""

    def _shelf(self, state: str) -> PageShelf:
        return StateShelf(self._pages, state)
