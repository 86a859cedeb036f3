"""What a batch's rows of a task add up to, key by key: by Arrow, without Python for each record.

Spark takes no aggregation before a stateful operator of ours, so the rows are added up where they
are read, and only what they add up to is shuffled, in parcels. The result is what adding record by
record gives; for sums of doubles but for their last digits.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.streams.columns.aggregates import AnyTally, ColumnTally, TypedAggregate
from penstock.streams.steps.aggregates import AggregateStream, AggregateWindows
from penstock.streams.values.column_types import DOUBLE, LONG, ColumnType
from penstock.streams.values.lanes import KeyTotal
from penstock.streams.values.windows import TimeWindows

PARCEL_SCHEMA, PARCEL_NAMES = "task INT, parcel BINARY", ["task", "parcel"]
_PARCEL_GROUPS = 20_000  # Of one cell of Spark's: some megabytes at most.
_WINDOW_ROWS = 500_000  # Of what is added up at once, where a record is in many windows.
_LOW = 0xFFFFFFFF
_NO_WINDOW = 0

Ends = dict[tuple[int, int], int]  # By the topic's number and the partition: the first not read.


@dataclass(frozen=True, slots=True)
class Combined:
    """What rows of a task add up to."""

    groups: list[KeyTotal]  # In the order of their times.
    seen_ms: int  # The latest time of all rows; -1: there were none.
    ends: Ends

    def parcels(self) -> Iterator[bytes]:
        """It as bytes for one other process of this batch, cut into pieces."""
        for at in range(0, len(self.groups) or 1, _PARCEL_GROUPS):
            columns = list(zip(*self.groups[at : at + _PARCEL_GROUPS], strict=True))
            yield pickle.dumps((columns, self.seen_ms, self.ends), pickle.HIGHEST_PROTOCOL)


def unpacked(parcels: Iterable[bytes], tally: AnyTally) -> Combined:
    """All parcels of a task as one; keys that several topics have come together again."""
    opened = [pickle.loads(parcel) for parcel in parcels]
    groups = [group for columns, _, _ in opened if columns for group in map(KeyTotal, *columns)]
    ends: Ends = {}
    for _, _, found in opened:
        ends |= found
    if len(ends) > 1:
        groups = _together(groups, tally)
    groups.sort(key=lambda one: one.at_ms)  # Nobody promises the order of parcels.
    return Combined(groups, max((seen_ms for _, seen_ms, _ in opened), default=-1), ends)


def _together(groups: Iterable[KeyTotal], tally: AnyTally) -> list[KeyTotal]:
    """A group for each key and window."""
    merge: Any = tally.merge
    found: dict[tuple[bytes, int], KeyTotal] = {}
    for one in groups:
        place = (one.key, one.start_ms)
        other = found.get(place)
        if other is not None:
            at_ms, row = max(one.at_ms, other.at_ms), merge(one.key, other.row, one.row)
            one = KeyTotal(one.key, one.start_ms, at_ms, row)
        found[place] = one
    return list(found.values())


def combine(
    step: AggregateStream | AggregateWindows, batches: Iterable[Any]
) -> Iterator[pa.RecordBatch]:
    """Arrow batches of one range of offsets in, parcels out."""
    found = list(batches)
    if not found:
        return
    rows = pa.Table.from_batches(found)
    for task in rows["task"].unique():
        own = rows.filter(pc.equal(rows["task"], task))
        yield parcels_of(step, own, task.as_py())


def parcels_of(
    step: AggregateStream | AggregateWindows, rows: pa.Table, task: int
) -> pa.RecordBatch:
    """What rows of a task add up to, on its way there."""
    parcels = list(combined(step, rows).parcels())
    tasks = pa.array([task] * len(parcels), pa.int32())
    return pa.RecordBatch.from_arrays([tasks, pa.array(parcels, pa.binary())], PARCEL_NAMES)


def combined(step: AggregateStream | AggregateWindows, rows: pa.Table) -> Combined:
    """The groups of a task's rows."""
    assert step.tally is not None
    if isinstance(step, AggregateStream) and has_nan(rows, step.tally.columns):
        groups = slow_groups(step, rows)
    else:
        groups = Combiner(step).groups(rows)
    seen_ms = pc.max(rows["timestamp"]).as_py()
    return Combined(groups, -1 if seen_ms is None else seen_ms, _ends(rows))


def _ends(rows: pa.Table) -> Ends:
    last = rows.group_by(["topic", "partition"]).aggregate([("offset", "max")])
    cells = (last[name].to_pylist() for name in ("topic", "partition", "offset_max"))
    return {(topic, partition): offset + 1 for topic, partition, offset in zip(*cells, strict=True)}


@dataclass(frozen=True, slots=True)
class Combiner:
    """Adds up for one step."""

    step: AggregateStream | AggregateWindows

    def groups(self, rows: pa.Table) -> list[KeyTotal]:
        """The groups in the order of their times."""
        tally = self.step.tally
        assert tally is not None
        if isinstance(self.step, AggregateWindows) or tally.is_ordered:
            rows = _in_order(rows)
        grouped = self._table(rows).group_by(["key", "start"], use_threads=False)
        parts = [_Part(at, one) for at, one in enumerate(tally.columns)]
        asked = [("at", "max"), *(what for part in parts for what in part.asked())]
        found = grouped.aggregate([*asked, ([], "count_all")])
        found = found.take(pa.array(np.argsort(found["at_max"].to_numpy(), kind="stable")))
        cells = [found[name].to_pylist() for name in ("key", "start", "at_max")]
        return list(map(KeyTotal, *cells, self._rows(found, parts)))

    def _table(self, rows: pa.Table) -> pa.Table:
        columns = {"key": rows["key"], "at": rows["timestamp"]}
        for at, one in enumerate(self.step.tally.columns if self.step.tally else ()):
            columns |= _inputs(at, one, rows)
        if not isinstance(self.step, AggregateWindows):
            nothing = pa.array(np.full(len(rows), _NO_WINDOW))
            return pa.table(columns | {"start": nothing})
        table = pa.table(columns | {"row": pa.array(np.arange(len(rows)))})
        together = in_windows(table, self.step.windows)
        if self.step.tally is None or not self.step.tally.is_ordered:
            return together
        # A record that several windows take is in several pieces; each window wants its own order.
        return together.take(np.argsort(together["row"].to_numpy(), kind="stable"))

    def _rows(self, found: pa.Table, parts: "Sequence[_Part]") -> Iterator[Any]:
        counts = found["count_all"].to_pylist()
        tally = self.step.tally
        if not isinstance(tally, ColumnTally):
            return iter(counts)
        columns = [part.answers(found, counts) for part in parts]
        return (tally.row(list(cells)) for cells in zip(*columns, strict=True))


@dataclass(frozen=True, slots=True)
class _Part:
    """One column of a tally: what Arrow is asked for, and what its answers make."""

    at: int
    column: TypedAggregate

    def asked(self) -> list[tuple[str, str]]:
        name, kind = f"i{self.at}", self.column.kind
        match kind:
            case "count":
                return [] if self.column.column is None else [(name, "count")]
            case "sum" | "avg":
                split = self._input == LONG
                sums = [(f"{name}_high", "sum"), (f"{name}_low", "sum")] if split else []
                return [*(sums or [(name, "sum")]), *([(name, "count")] if kind == "avg" else [])]
            case "collect":
                return [(name, "list")]
        return [(name, kind)]

    def answers(self, found: Any, counts: list[int]) -> Any:
        name, kind = f"i{self.at}", self.column.kind
        match kind:
            case "count":
                return counts if self.column.column is None else self._of(found, "count")
            case "sum":
                return self._sums(found)
            case "avg":
                totals, numbers = self._sums(found), self._of(found, "count")
                return [list(pair) for pair in zip(totals, numbers, strict=True)]
            case "collect":
                lists = found[f"{name}_list"].to_pylist()
                return [[v for v in one if v is not None][: self.column.limit] for one in lists]
        return self._of(found, kind)

    def _of(self, found: Any, what: str) -> list[Any]:
        cells: list[Any] = found[f"i{self.at}_{what}"].to_pylist()
        return cells

    def _sums(self, found: Any) -> list[Any]:
        """Sums of longs in two halves, for together they may be too large for one."""
        name = f"i{self.at}"
        if self._input != LONG:
            return [one or 0.0 for one in found[f"{name}_sum"].to_pylist()]
        highs, lows = (found[f"{name}_{half}_sum"].to_pylist() for half in ("high", "low"))
        pairs = zip(highs, lows, strict=True)
        return [0 if high is None else (high << 32) + low for high, low in pairs]

    @property
    def _input(self) -> ColumnType:
        assert self.column.column is not None
        return self.column.column.type


def _inputs(at: int, column: TypedAggregate, rows: pa.Table) -> dict[str, Any]:
    if column.column is None:
        return {}
    name = f"i{at}"
    cells = rows[name]
    found = {name: cells}
    if column.column.type == LONG and column.kind in ("sum", "avg"):
        low = pc.bit_wise_and(cells, pa.scalar(_LOW, pa.int64()))
        found |= {f"{name}_high": pc.shift_right(cells, 32), f"{name}_low": low}
    return found


def has_nan(rows: pa.Table, columns: Sequence[TypedAggregate]) -> bool:
    """Whether a least or greatest is asked of numbers that are none: Arrow would pass them over."""
    return any(
        bool(pc.any(pc.is_nan(rows[f"i{at}"])).as_py())
        for at, one in enumerate(columns)
        if one.column is not None and one.column.type == DOUBLE and one.kind in ("min", "max")
    )


def _in_order(rows: pa.Table) -> pa.Table:
    """As the records lie in their partitions; they mostly come so."""
    partitions, offsets = rows["partition"].to_numpy(), rows["offset"].to_numpy()
    if (np.diff(partitions) == 0).all() and (np.diff(offsets) > 0).all():
        return rows
    return rows.take(pa.array(np.lexsort((offsets, partitions))))


def in_windows(table: pa.Table, windows: TimeWindows) -> pa.Table:
    """The rows by their times `at`, once for each window that takes them, with its `start`."""
    pieces = []
    for starts, takes in _windows(table["at"].to_numpy(), windows):
        piece = table.append_column("start", pa.array(starts))
        pieces.append(piece.filter(pa.array(takes)))
    return pa.concat_tables(pieces)


def window_pieces(table: pa.Table, windows: TimeWindows) -> Iterator[pa.Table]:
    """The same in pieces of a bounded size, in the order of the rows; no window is in two pieces.

    Of windows that lie side by side a record is in one at most, so each such row of windows is
    taken by itself.
    """
    times, held = table["at"].to_numpy(), []
    numbers, rows_of_windows = times // windows.advance_ms, _windows_at_once(windows)
    for row in range(rows_of_windows):
        starts = (numbers - (numbers - row) % rows_of_windows) * windows.advance_ms
        piece = table.append_column("start", pa.array(starts))
        held.append(piece.filter(pa.array(_takes(times, starts, windows))))
        if sum(map(len, held)) >= _WINDOW_ROWS:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _windows_at_once(windows: TimeWindows) -> int:
    """How many windows a time may be in."""
    return -(-windows.size_ms // windows.advance_ms)


def _windows(times: Any, windows: TimeWindows) -> Iterator[tuple[Any, Any]]:
    """For each window that can hold a time: where it starts, and which records it takes."""
    last = times - times % windows.advance_ms
    for back in range(_windows_at_once(windows)):
        starts = last - back * windows.advance_ms
        yield starts, _takes(times, starts, windows)


def _takes(times: Any, starts: Any, windows: TimeWindows) -> Any:
    """Which records are in the windows that start there, and not late.

    Late is what comes when the batch itself has closed its window; the step knows what was closed
    before.
    """
    seen_ms = np.maximum.accumulate(times) if len(times) else times
    ends = starts + windows.size_ms
    return (starts >= 0) & (ends > times) & (ends > seen_ms - windows.grace_ms)


def slow_groups(step: AggregateStream, rows: pa.Table) -> list[KeyTotal]:
    """The same record by record, for what Arrow sees otherwise."""
    tally, rows = step.tally, _in_order(rows)
    assert isinstance(tally, ColumnTally)
    found: dict[bytes, tuple[int, list[Any]]] = {}
    inputs = [_cells(at, one, rows) for at, one in enumerate(tally.columns)]
    keys, times = rows["key"].to_pylist(), rows["timestamp"].to_pylist()
    for key, at_ms, *values in zip(keys, times, *inputs, strict=False):
        before_ms, parts = found.get(key, (-1, [one.start() for one in tally.columns]))
        parts = [
            part if value is None else column.merged(part, column.single(value))
            for column, part, value in zip(tally.columns, parts, values, strict=True)
        ]
        found[key] = max(before_ms, at_ms), parts
    groups = [KeyTotal(key, _NO_WINDOW, at, tally.row(parts)) for key, (at, parts) in found.items()]
    return sorted(groups, key=lambda one: one.at_ms)


def _cells(at: int, column: TypedAggregate, rows: pa.Table) -> Any:
    return repeat(True) if column.column is None else rows[f"i{at}"].to_pylist()
