"""Stages whose source has a lane: batches go through it, what it leaves goes step by step.

Both ways end in the same rows. Where records are added up, a range of offsets goes one way or the
other as a whole, for the order in which records come to a key's state may matter.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.streams.plan.lanes import adding_node
from penstock.streams.plan.nodes import PlanNode
from penstock.streams.spark.combining import window_pieces
from penstock.streams.spark.processor import (
    ROWS_AT_ONCE,
    NoShelf,
    StateShelf,
    arrow_of_rows,
    frame_of_rows,
    rows_of_arrow,
    wall_clock_ms,
)
from penstock.streams.spark.restoring import LostTasks
from penstock.streams.steps.aggregates import AggregateStream, AggregateWindows
from penstock.streams.tasks.batch import ANY_PARTITION, RowIn, StageWork, TaskBatch
from penstock.streams.tasks.failures import FailureNotes
from penstock.streams.tasks.pages import PageShelf
from penstock.streams.values.lanes import KeyTotal, LaneRows

if TYPE_CHECKING:
    import pandas as pd

_PARCEL_NAMES = ["task", "parcel"]
_PARCEL_ROWS, _PARCEL_BYTES = 20_000, 16_000_000  # Of one cell of Spark's, on an average.
_NO_WINDOW = 0


def run_in_lane(work: StageWork, batches: Iterator[Any]) -> Iterator[Any]:
    """A stage without state, on Arrow batches; the same rows as without its lane."""
    notes = None if work.failures is None else FailureNotes(work.failures)
    task = None
    for batch in batches:
        task = TaskBatch(work, 0, lambda state: NoShelf(), wall_clock_ms(), notes=notes)
        found = _taken(work, batch)
        if found is None:
            yield arrow_of_rows(task.run(rows_of_arrow(batch)))
        else:
            yield from _written(work, task, batch, found)
    rest = [] if task is None else task.rest_of_failures()
    if rest:
        yield arrow_of_rows(rest)


def _taken(work: StageWork, batch: Any) -> LaneRows | None:
    """What the lane makes of the batch; None if it is not the lane's kind of batch."""
    if not len(batch) or not _is_in_order(batch):
        return None
    (source,) = work.topology.sources
    assert source.lane is not None
    try:
        return source.lane.taken(batch)
    except pa.ArrowException:  # As for a column of more bytes than one array holds.
        return None


def _is_in_order(batch: Any) -> bool:
    """Whether the rows are of one partition, as they lie there."""
    partitions, offsets = batch["partition"].to_numpy(), batch["offset"].to_numpy()
    is_alone = batch["topic"].null_count == 0 and len(batch["topic"].unique()) == 1
    return bool(is_alone and (partitions == partitions[0]).all() and (np.diff(offsets) > 0).all())


def _written(work: StageWork, task: TaskBatch, batch: Any, found: LaneRows) -> Iterator[Any]:
    """The lane's results, and between them those of the rows that it left."""
    left = rows_of_arrow(batch.take(pa.array(found.left)))
    edges = task.run_left(left, _latest_ms(batch, found), _ends(batch))
    made = _results(work, batch, found)
    if edges and edges[-1]:
        others = arrow_of_rows(task.out[: edges[-1]])
        numbers = np.repeat(found.left, np.diff(edges, prepend=0))
        order = np.argsort(np.concatenate([found.places, numbers]), kind="stable")
        table = pa.Table.from_batches([made, others]).take(pa.array(order))
        made = table.combine_chunks().to_batches()[0]
    yield made
    rest = task.out[edges[-1] if edges else 0 :]
    if rest:
        yield arrow_of_rows(rest)


def _latest_ms(batch: Any, found: LaneRows) -> int:
    """Of the records that the lane did not leave."""
    times = batch["timestamp"].to_numpy()
    own = np.ones(len(times), bool)
    own[found.left] = False
    return int(times[own].max(initial=-1))


def _ends(batch: Any) -> dict[tuple[str, int], int]:
    topic, partition = batch["topic"][0].as_py(), batch["partition"][0].as_py()
    return {(topic, partition): batch["offset"][-1].as_py() + 1}


def _results(work: StageWork, batch: Any, found: LaneRows) -> Any:
    """Rows to be written, as `arrow_of_rows` lays them."""
    (sink,) = (node for node in work.topology.nodes if node.kind == "sink")
    size, places = len(found.places), pa.array(found.places)
    kinds = arrow_of_rows([]).schema
    columns = [
        pa.repeat(pa.scalar(work.name(sink.topics[0]), pa.string()), size),
        pa.repeat(pa.scalar(ANY_PARTITION, pa.int32()), size),
        found.key,
        *found.columns,
        _headers(batch["headers"], places, kinds.field("headers").type),
        batch["timestamp"].take(places),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=kinds)


def _headers(column: Any, places: Any, kind: pa.DataType) -> Any:
    if not len(column.flatten()):
        nothing = pa.nulls(0, kind.value_type)
        return pa.ListArray.from_arrays(pa.array([0] * (len(places) + 1), pa.int32()), nothing)
    return pa.array([one or [] for one in column.take(places).to_pylist()], kind)


# Adding up


@dataclass(frozen=True, slots=True)
class LaneTotals:
    """What a range of records of a task adds up to."""

    groups: list[KeyTotal]
    seen_ms: int  # The latest time of those that are added up; -1: there were none.
    read_ms: int  # The latest time of all.
    ends: dict[tuple[str, int], int]


def lane_parcels(work: StageWork, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Arrow batches of one range of offsets in; out for its task what they add up to, or they."""
    found = list(batches)
    if not found:
        return
    rows = pa.Table.from_batches(found)
    for task in rows["task"].unique():
        own = rows.filter(pc.equal(rows["task"], task)).drop_columns(["task"])
        for one in _pieces(work, own):
            parcel = pa.array([pickle.dumps(one, pickle.HIGHEST_PROTOCOL)], pa.binary())
            number = pa.array([task.as_py()], pa.int32())
            yield pa.RecordBatch.from_arrays([number, parcel], _PARCEL_NAMES)


def _pieces(work: StageWork, rows: pa.Table) -> Iterator[tuple[int, Any]]:
    """Numbered, for nobody promises their order: rows of totals, or records as they came."""
    try:
        totals = lane_totals(work, rows)
    except pa.ArrowException:  # As for a column of more bytes than one array holds.
        totals = None
    cells: Sequence[Any] = rows_of_arrow(rows) if totals is None else totals.groups
    told = None if totals is None else (totals.seen_ms, totals.read_ms, totals.ends)
    size = max(1, min(_PARCEL_ROWS, len(cells) * _PARCEL_BYTES // max(1, rows.nbytes)))
    for at in range(0, len(cells) or 1, size):
        columns = list(zip(*cells[at : at + size], strict=True))
        yield at, (told, columns)


def lane_totals(work: StageWork, rows: pa.Table) -> LaneTotals | None:
    """What the rows add up to; None if the lane leaves one of them, or they have headers."""
    if not _is_in_order(rows) or any(len(one.flatten()) for one in rows["headers"].chunks):
        return None
    node, pieces, at = adding_node(work.topology), [], 0
    for batch in rows.to_batches():
        found = _taken(work, batch)
        if found is None or len(found.left):
            return None
        pieces.append(_added(batch, found, at))
        at += len(batch)
    table = pa.concat_tables(pieces)
    seen_ms = pc.max(table["at"]).as_py()
    return LaneTotals(
        groups=_groups(node, table) if len(table) else [],
        seen_ms=-1 if seen_ms is None else seen_ms,
        read_ms=pc.max(rows["timestamp"]).as_py(),
        ends=_ends(rows),
    )


def _added(batch: Any, found: LaneRows, at: int) -> pa.Table:
    columns = {
        "key": found.key,
        "at": batch["timestamp"].take(pa.array(found.places)),
        "row": pa.array(found.places + at),
    }
    return pa.table({**columns, **{f"i{n}": one for n, one in enumerate(found.columns)}})


def _groups(node: PlanNode, table: pa.Table) -> list[KeyTotal]:
    step = node.step
    assert isinstance(step, AggregateStream | AggregateWindows) and step.lane_tally is not None
    if isinstance(step, AggregateWindows):
        return step.lane_tally.totals(window_pieces(table, step.windows))
    nothing = pa.array(np.full(len(table), _NO_WINDOW))
    return step.lane_tally.totals([table.append_column("start", nothing)])


class LaneProcessor(StatefulProcessor):
    """Runs the tasks of such a stage."""

    def __init__(self, work: StageWork, groups: Sequence[int], lost: LostTasks) -> None:
        self.work = work
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
        task = self.groups.index(int(key[0]))
        self.lost.restore(self.work, task, self._shelf)
        batch = TaskBatch(self.work, task, self._shelf, wall_clock_ms())
        run_parcels(batch, (cell for frame in rows for cell in frame["parcel"]))
        written = [*batch.out, *batch.rest_of_failures()]
        for at in range(0, len(written), ROWS_AT_ONCE):
            yield frame_of_rows(written[at : at + ROWS_AT_ONCE])

    def close(self) -> None:
        """Spark's: nothing is held."""

    def _shelf(self, state: str) -> PageShelf:
        return StateShelf(self._pages, state)


def run_parcels(batch: TaskBatch, parcels: Iterable[bytes]) -> None:
    """One range of offsets into its task, the way that was chosen where it was read."""
    pieces = [piece for _, piece in sorted((pickle.loads(one) for one in parcels), key=_number)]
    cells = [cell for _, columns in pieces for cell in zip(*columns, strict=True)]
    told = {piece[0] is None for piece in pieces}
    assert len(told) == 1, "the records of a task are read as one range"
    if pieces[0][0] is None:
        batch.run([RowIn(*cell) for cell in cells])
        return
    seen_ms, read_ms, ends = pieces[0][0]
    node = adding_node(batch.work.topology)
    batch.run_groups(node, [KeyTotal(*cell) for cell in cells], seen_ms, ends, read_ms)


def _number(piece: tuple[int, Any]) -> int:
    return piece[0]
