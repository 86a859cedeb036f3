"""Batches that Arrow adds up give the tables that records one by one give."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.streams_host import DictShelf

from penstock.streams import (
    Avg,
    Collect,
    Count,
    First,
    Last,
    Max,
    Min,
    StreamsBuilder,
    StreamsTopology,
    Sum,
    TestDriver,
    TimeWindows,
    col,
    json_of,
    when,
)
from penstock.streams.columns.aggregates import CountTally
from penstock.streams.columns.in_python import computing
from penstock.streams.plan.native import native_tally, tally_step
from penstock.streams.plan.stages import changelog_topic, cut, own_format_topics
from penstock.streams.spark import combining
from penstock.streams.spark.combining import (
    Combined,
    combine,
    in_windows,
    unpacked,
    window_pieces,
)
from penstock.streams.tasks.batch import RowOut, StageWork, TaskBatch
from penstock.streams.tasks.changelogs import ChangelogRow
from penstock.streams.tasks.paged_memory import ABOUT
from penstock.streams.tasks.progress import TASK_STATE, TaskMarks, progress_from
from penstock.streams.tasks.restoring import restore_store
from penstock.streams.values.lanes import KeyTotal
from penstock.streams.values.records import StreamRecord

SALE = json_of(name="string", cents="long", weight="double", sold="boolean")
LONGS = (None, 0, 5, -7, 2**62, -(2**62), 2**63 - 1)
KINDS = {
    "boolean": pa.bool_(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
}
PROGRESS = "app-stage-0-progress-changelog"
Sale = tuple[str, dict[str, Any], int]


NAMES = ("count", "rows", "windows", "hopping", "hopping in order", "final")


def topology(name: str) -> StreamsTopology:
    builder = StreamsBuilder(value=SALE)
    sales = builder.stream("sales").group_by_key()
    windows = TimeWindows.of(100, grace_ms=50)
    hopping = TimeWindows.of(100, grace_ms=30, advance_ms=40)
    beyond = col("weight") * 1e308 * 1e308
    no_number = beyond - beyond
    match name:
        case "count":
            table: Any = sales.count(store="tallies")
        case "rows":
            table = sales.aggregate(
                count=Count(),
                known=Count(col("cents")),
                total=Sum(col("cents")),
                light=Sum(col("weight").cast("long")),
                least=Min(col("name")),
                most=Max(col("cents")),
                heaviest=Max(when(col("cents") == 5, no_number).otherwise(col("weight"))),
                sold=Max(col("sold")),
                mean=Avg(col("cents")),
                first=First(col("name")),
                last=Last(col("sold")),
                some=Collect(col("cents"), limit=3),
            )
        case "windows":
            table = sales.windowed_by(windows).aggregate(n=Count(), s=Sum(col("cents")))
        case "hopping":
            table = sales.windowed_by(hopping).count()
        case "hopping in order":
            table = sales.windowed_by(hopping).aggregate(
                first=First(col("cents")), some=Collect(col("cents"), limit=3)
            )
        case _:
            table = sales.windowed_by(windows).count().suppress_until_window_closes()
    table.to_stream().to("tallies")
    return builder.build()


def random_sales(chance: random.Random, count: int) -> list[Sale]:
    sales, now_ms = [], 1_000
    weights = (None, 1.5, -2.25, 1e300)
    for _ in range(count):
        now_ms += chance.choice((0, 1, 5, 30))
        value = {
            "name": chance.choice((None, "ada", "bob", "émile")),
            "cents": chance.choice(LONGS),
            "weight": chance.choice(weights),
            "sold": chance.choice((None, True, False)),
        }
        at_ms = max(0, now_ms - chance.choice((0, 0, 3, 40, 100, 300)))
        sales.append((chance.choice("abc"), value, at_ms))
    return sales


class Batches:
    """A stage as Spark runs it: frames of what is added up, pages between the batches."""

    def __init__(self, plan: StreamsTopology) -> None:
        (stage,) = cut(plan)
        native = native_tally(stage.topology)
        assert native is not None
        self.node = native.ways[0].end
        self.work = StageWork(
            application_id="app",
            topology=stage.topology,
            own_format=own_format_topics(plan),
            progress=PROGRESS,
        )
        self.out: list[RowOut] = []
        self.shelves: dict[str, DictShelf] = {}
        self.offset = 0

    def run(self, sales: list[Sale], chance: random.Random) -> list[RowOut]:
        step = tally_step(self.node)
        assert step is not None and step.tally is not None
        rows = self._rows(sales, step.tally.columns)
        order = chance.sample(range(len(sales)), len(sales))
        batches = rows.take(order).to_batches(max_chunksize=7)
        parcels = [cell for one in combine(step, batches) for cell in one["parcel"].to_pylist()]
        found = unpacked(parcels, step.tally)
        assert found.ends == {(0, 0): self.offset}
        batch = TaskBatch(self.work, 0, lambda state: self.shelves.setdefault(state, DictShelf()))
        ends = {("sales", 0): self.offset}
        out = batch.run_groups(self.node, found.groups, found.seen_ms, ends)
        self.out += out
        return out

    def lose_all_but_topics(self, folder: Path) -> None:
        """Forget the pages, and make them anew from changelogs and progress."""
        self.shelves.clear()
        told = progress_from((0, row.key, row.value) for row in self.out if row.topic == PROGRESS)
        assert told.positions == ({("sales", 0): self.offset} if self.offset else {})
        if 0 not in told.marks:
            return
        marks = TaskMarks.read(told.marks[0])
        assert marks.is_placed
        self.shelves[TASK_STATE] = DictShelf({ABOUT: told.marks[0]})
        for store in self.work.topology.stores:
            topic, shelf = f"app-{changelog_topic(store)}", DictShelf()
            rows = [
                ChangelogRow(row.key or b"", row.value, row.timestamp_ms)
                for row in self.out
                if row.topic == topic
            ]
            clock = marks.clocks.get(store.name)
            restore_store(self.work.topology, store, rows, clock, shelf, folder)
            self.shelves[store.name] = shelf

    def _rows(self, sales: list[Sale], columns: Any) -> pa.Table:
        keys, values, times = zip(*sales, strict=True)
        numbers = range(self.offset, self.offset + len(sales))
        self.offset += len(sales)
        nothing = pa.array([0] * len(sales), pa.int32())
        cells = {
            "task": nothing,
            "timestamp": pa.array(times, pa.int64()),
            "topic": nothing,
            "partition": nothing,
            "offset": pa.array(numbers, pa.int64()),
            "key": pa.array([key.encode() for key in keys], pa.binary()),
        }
        records = [
            StreamRecord(key=key, value=value, timestamp_ms=at_ms)
            for key, value, at_ms in zip(keys, values, times, strict=True)
        ]
        for at, one in enumerate(columns):
            if one.column is not None:
                found = list(map(computing(one.column), records))
                cells[f"i{at}"] = pa.array(found, KINDS[one.column.type.name])
        return pa.table(cells)


@pytest.mark.parametrize(
    "name", ["count", "rows", "windows", "hopping", "hopping in order", "final"]
)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("loses", [False, True])
def test_tables_are_those_of_records_one_by_one(
    name: str, seed: int, loses: bool, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    plan = topology(name)
    batches, driver = Batches(plan), TestDriver(plan)
    sink = next(node for node in plan.nodes if node.kind == "sink")
    assert sink.key_serde is not None and sink.value_serde is not None
    found: list[RowOut] = []
    for number in range(chance.randint(1, 8)):
        if loses and chance.random() < 0.5:
            (folder := tmp_path / str(number)).mkdir()
            batches.lose_all_but_topics(folder)
        sales = random_sales(chance, chance.randint(1, 40))
        found += batches.run(sales, chance)
        for key, value, at_ms in sales:
            driver.pipe_input("sales", key, value, at_ms)
    got = [
        (r.key, sink.value_serde.deserialize(r.value), r.timestamp_ms)
        for r in found
        if r.topic == "tallies"
    ]
    wanted = [
        (sink.key_serde.serialize(r.key), r.value, r.timestamp_ms)
        for r in driver.read_all("tallies")
    ]
    if name == "final":
        assert sorted(got) == sorted(wanted)
    else:
        assert {key: row for key, *row in got} == {key: row for key, *row in wanted}


def test_sums_of_longs_are_exact_beyond_a_long() -> None:
    plan = topology("rows")
    batches = Batches(plan)
    sale = {"name": "ada", "cents": 2**63 - 1, "weight": None, "sold": None}
    less = {**sale, "cents": -(2**63 - 1)}
    out = batches.run([("a", sale, 5), ("a", sale, 5)], random.Random(0))
    out += batches.run([("a", less, 6)], random.Random(0))
    values = [SALE_ROW.deserialize(row.value) for row in out if row.topic == "tallies"]
    assert [one["total"] for one in values] == [None, 2**63 - 1]


SALE_ROW = json_of(total="long")


def test_a_key_of_several_topics_has_one_sum() -> None:
    first = Combined([KeyTotal(b"a", 0, 5, 2), KeyTotal(b"b", 0, 6, 1)], 9, {(0, 1): 3})
    second = Combined([KeyTotal(b"a", 0, 7, 4)], 7, {(1, 1): 8})
    found = unpacked([*first.parcels(), *second.parcels()], CountTally())
    groups = [KeyTotal(b"b", 0, 6, 1), KeyTotal(b"a", 0, 7, 6)]
    assert found == Combined(groups, 9, {(0, 1): 3, (1, 1): 8})


def test_many_keys_are_cut_into_parcels_of_some_thousands() -> None:
    groups = [KeyTotal(b"%d" % number, 0, number, 1) for number in range(50_000)]
    parcels = list(Combined(groups, 50_000, {(0, 0): 50_000}).parcels())
    assert len(parcels) == 3
    assert max(map(len, parcels)) < 1_000_000
    assert unpacked(reversed(parcels), CountTally()) == Combined(groups, 50_000, {(0, 0): 50_000})


def test_rows_of_several_tasks_become_parcels_of_each() -> None:
    step = tally_step(Batches(topology("count")).node)
    assert step is not None
    numbers = pa.array([0, 1, 0], pa.int32())
    rows = pa.table(
        {
            "task": numbers,
            "timestamp": pa.array([5, 6, 7]),
            "topic": pa.array([0, 0, 0], pa.int32()),
            "partition": numbers,
            "offset": pa.array([0, 0, 1]),
            "key": pa.array([b"a", b"a", b"a"]),
        }
    )
    found = {
        task: unpacked([parcel], CountTally())
        for batch in combine(step, rows.to_batches())
        for task, parcel in zip(batch["task"].to_pylist(), batch["parcel"].to_pylist(), strict=True)
    }
    assert found == {
        0: Combined([KeyTotal(b"a", 0, 7, 2)], 7, {(0, 0): 2}),
        1: Combined([KeyTotal(b"a", 0, 6, 1)], 6, {(0, 1): 1}),
    }
    assert list(combine(step, [])) == []


def windows_and_rows(table: pa.Table) -> list[tuple[int, int]]:
    return list(zip(table["start"].to_pylist(), table["row"].to_pylist(), strict=True))


@pytest.mark.parametrize("size_ms", [1, 4, 7, 100])
@pytest.mark.parametrize("advance_ms", [1, 3, 4, 7, 100])
@pytest.mark.parametrize("at_once", [1, 20, 100_000])
def test_windows_in_pieces_hold_what_all_windows_hold_and_each_window_is_in_one(
    size_ms: int, advance_ms: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(combining, "_WINDOW_ROWS", at_once)
    windows = TimeWindows.of(size_ms, advance_ms=min(advance_ms, size_ms), grace_ms=5)
    times = [random.Random(size_ms).randrange(60) for _ in range(50)]
    table = pa.table({"at": pa.array(times, pa.int64()), "row": pa.array(range(50))})
    pieces = list(window_pieces(table, windows))
    places = [
        list(zip(*(one[n].to_pylist() for n in ("start", "row")), strict=True)) for one in pieces
    ]
    whole = in_windows(table, windows)
    wanted = zip(*(whole[n].to_pylist() for n in ("start", "row")), strict=True)
    assert sorted(place for piece in places for place in piece) == sorted(wanted)
    starts = [{start for start, _ in piece} for piece in places]
    assert sum(map(len, starts)) == len(set().union(*starts))
    for piece in places:
        for start in {start for start, _ in piece}:
            rows = [row for found, row in piece if found == start]
            assert rows == sorted(rows)
