"""What tests of plans share: a script's plan, batches of records, a stage by both its ways."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from tests.support.sql_functions import sql_functions
from tests.support.streams_host import DictShelf

from penstock.sql.analysis.persistent import QueryInto
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.commands.applying import COMMANDS, Commands
from penstock.sql.language.parse import parse
from penstock.sql.planning.planner import Planner
from penstock.sql.running.processing_log import query_log
from penstock.sql.testing.memory_schemas import MemorySchemas
from penstock.streams import StreamsTopology
from penstock.streams.plan.stages import cut
from penstock.streams.spark.lane_rows import lane_parcels, lane_totals, run_in_lane, run_parcels
from penstock.streams.spark.processor import rows_of_arrow, run_without_state
from penstock.streams.tasks.batch import RowOut, StageWork, TaskBatch
from penstock.streams.tasks.paged_memory import ABOUT
from penstock.streams.tasks.pages import unpack_page
from penstock.streams.tasks.progress import TASK_STATE

TOPIC = "s"
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Record = tuple[bytes | None, bytes | None, int]  # Key, value, time.


def planned(text: str) -> StreamsTopology:
    """The topology of a script's last query."""
    catalog, schemas, query = Catalog(), MemorySchemas(), None
    for statement in parse(text):
        if isinstance(statement, COMMANDS):
            change: Any = statement
            outcome = Commands(sql_functions(), schemas).apply(catalog, change)
            catalog, query = outcome.catalog, outcome.started or query
    assert isinstance(query, QueryInto)
    return Planner.of(catalog, sql_functions(), schemas).plan(query)


def stage_work(topology: StreamsTopology, *, letters: bool = True) -> StageWork:
    """The work of a plan of one stage, as it comes to a worker."""
    (stage,) = cut(topology)
    work = StageWork(
        application_id="app",
        topology=stage.topology,
        own_format=frozenset(),
        dead_letters="letters" if letters else None,
        failures=query_log("log", "Q", shows_rows=True),
        progress="app-progress",
        has_state=stage.has_state,
        merges=True,
    )
    travelled: StageWork = cloudpickle.loads(cloudpickle.dumps(work))
    return travelled


def without_lane(work: StageWork) -> StageWork:
    """The same, step by step."""
    nodes = tuple(replace(node, lane=None) for node in work.topology.nodes)
    return replace(work, topology=replace(work.topology, nodes=nodes))


def table_of(
    records: Sequence[Record], *, first: int = 0, headers: Sequence[Any] | None = None
) -> pa.Table:
    """Records of partition 0, as Spark hands them over."""
    keys, values, times = zip(*records, strict=True) if records else ((), (), ())
    size = len(records)
    return pa.table(
        {
            "topic": pa.array([TOPIC] * size, pa.string()),
            "partition": pa.array([0] * size, pa.int32()),
            "offset": pa.array(range(first, first + size), pa.int64()),
            "timestamp": pa.array(times, pa.int64()),
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(headers or [[]] * size, HEADERS),
        }
    )


def batches_of(table: pa.Table, rows: int) -> list[pa.RecordBatch]:
    """The table in pieces."""
    return list(table.combine_chunks().to_batches(max_chunksize=rows))


def written_in_lane(work: StageWork, batches: Iterable[Any]) -> list[dict[str, Any]]:
    """What a stage without state writes, through its lane."""
    return _rows(run_in_lane(work, iter(batches)))


def written_by_steps(work: StageWork, batches: Iterable[Any]) -> list[dict[str, Any]]:
    """The same, step by step."""
    return _rows(run_without_state(work, iter(batches)))


def _rows(batches: Iterator[Any]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


@dataclass
class StatefulTask:
    """A task with its pages, which takes batch after batch by either way."""

    work: StageWork
    shelves: dict[str, DictShelf] = field(default_factory=lambda: defaultdict(DictShelf))

    def in_lane(self, table: pa.Table) -> list[RowOut]:
        """A batch through the lane."""
        tasks = pa.array([0] * len(table), pa.int32())
        found = lane_parcels(self.work, table.append_column("task", tasks).to_batches())
        batch = TaskBatch(self.work, 0, lambda state: self.shelves[state], 7)
        run_parcels(batch, (cell for parcels in found for cell in parcels["parcel"].to_pylist()))
        return [*batch.out, *batch.rest_of_failures()]

    def by_steps(self, table: pa.Table) -> list[RowOut]:
        """A batch record by record."""
        batch = TaskBatch(self.work, 0, lambda state: self.shelves[state], 7)
        batch.run(rows_of_arrow(table.combine_chunks()))
        return [*batch.out, *batch.rest_of_failures()]

    def takes_lane(self, table: pa.Table) -> bool:
        """Whether the lane adds a batch up."""
        return lane_totals(self.work, table) is not None

    @property
    def states(self) -> dict[str, Any]:
        """What is remembered; a store that was looked into and stayed empty is none."""
        return {
            name: {at: _page(at, page) for at, page in shelf.pages.items()}
            for name, shelf in self.shelves.items()
            if name == TASK_STATE or set(shelf.pages) > {ABOUT}
        }


def _page(number: int, page: bytes) -> Any:
    """A page's entries in any order."""
    return page if number == ABOUT else sorted(unpack_page(page).items())


def by_topic(rows: Iterable[RowOut]) -> dict[str, list[RowOut]]:
    """Rows of a topic in their order; of changelogs, where keys have no order, sorted."""
    found: dict[str, list[RowOut]] = defaultdict(list)
    for row in rows:
        found[row.topic].append(row)
    return {t: sorted(r) if t.endswith("changelog") else r for t, r in found.items()}


def cuts(table: pa.Table, places: Sequence[int]) -> list[pa.Table]:
    """The table cut at some places; no piece is empty."""
    edges = sorted({0, len(table), *(place % (len(table) + 1) for place in places)})
    return [table.slice(a, b - a) for a, b in pairwise(edges)]
