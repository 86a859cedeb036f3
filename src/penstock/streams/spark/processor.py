"""A stage's tasks inside Spark: rows of data frames in and out, pages in Spark's state store.

Spark calls once for each task and batch, with all its rows. What the task remembers is a map of
pages in Spark's state, which is versioned with the batch: a batch that is taken again finds the
pages as they were before it.

When a query starts, a Python process of Spark's asks the processor for its states, and ends. So
that it need not load pandas and pyarrow for it, only those load them who use them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
)

from penstock.streams.spark.restoring import LostTasks
from penstock.streams.tasks.batch import RowIn, RowOut, StageWork, TaskBatch
from penstock.streams.tasks.failures import FailureNotes
from penstock.streams.tasks.pages import PageShelf
from penstock.streams.values.records import Headers

if TYPE_CHECKING:
    import pandas as pd

ROW_SCHEMA = (
    "topic STRING, partition INT, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, timestamp BIGINT"
)
ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class StateShelf:
    """The pages of one state, in Spark's map of all pages of a task."""

    pages: MapState
    state: str

    def load(self, page: int) -> bytes | None:
        """The page, or None where there is none."""
        found = self.pages.getValue((self.state, page))
        return None if found is None else bytes(found[0])

    def save(self, page: int, data: bytes | None) -> None:
        """Keep the page; None: it is empty now."""
        if data is None:
            self.pages.removeKey((self.state, page))
        else:
            self.pages.updateValue((self.state, page), (data,))


class StageProcessor(StatefulProcessor):
    """Runs the tasks of a stage with state."""

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
        batch.run([row for frame in rows for row in rows_of_frame(frame)])
        written = [*batch.out, *batch.rest_of_failures()]
        for at in range(0, len(written), ROWS_AT_ONCE):
            yield frame_of_rows(written[at : at + ROWS_AT_ONCE])

    def close(self) -> None:
        """Spark's: nothing is held."""

    def _shelf(self, state: str) -> PageShelf:
        return StateShelf(self._pages, state)


@dataclass(frozen=True, slots=True)
class NoShelf:
    """For a stage without state."""

    def load(self, page: int) -> bytes | None:
        """Nothing is there."""
        return None

    def save(self, page: int, data: bytes | None) -> None:
        """Nothing is kept."""


def run_without_state(work: StageWork, batches: Iterator[Any]) -> Iterator[Any]:
    """A stage without state, on Arrow batches: order stays, nothing is shuffled."""
    notes = None if work.failures is None else FailureNotes(work.failures)
    task = None
    for batch in batches:
        task = TaskBatch(work, 0, lambda state: NoShelf(), wall_clock_ms(), notes=notes)
        yield arrow_of_rows(task.run(rows_of_arrow(batch)))
    rest = [] if task is None else task.rest_of_failures()
    if rest:
        yield arrow_of_rows(rest)


def rows_of_frame(frame: "pd.DataFrame") -> Iterator[RowIn]:
    """Rows of a pandas frame."""
    columns = ("topic", "partition", "offset", "timestamp", "key", "value")
    cells = [frame[name].tolist() for name in columns]
    headers = map(_headers_in, frame["headers"])
    return map(RowIn, *cells, headers)


def rows_of_arrow(batch: Any) -> list[RowIn]:
    """Rows of an Arrow batch."""
    columns = ("topic", "partition", "offset", "timestamp", "key", "value")
    cells = [batch.column(name).to_pylist() for name in columns]
    headers = batch.column("headers")
    if not len(headers.flatten()):
        return list(map(RowIn, *cells))
    return list(map(RowIn, *cells, map(_headers_in, headers.to_pylist())))


def _headers_in(cell: Any) -> Headers:
    if cell is None or not len(cell):
        return ()
    return tuple((one["key"], one["value"]) for one in cell)


def frame_of_rows(rows: Sequence[RowOut]) -> "pd.DataFrame":
    """Rows as a pandas frame, in the order of the schema."""
    import pandas as pd

    topics, partitions, keys, values, headers, times = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "topic": pd.Series(topics, dtype=object),
            "partition": pd.Series(partitions, dtype="int32"),
            "key": pd.Series(keys, dtype=object),
            "value": pd.Series(values, dtype=object),
            "headers": pd.Series([_headers_out(each) for each in headers], dtype=object),
            "timestamp": pd.Series(times, dtype="int64"),
        }
    )


def arrow_of_rows(rows: Sequence[RowOut]) -> Any:
    """Rows as an Arrow batch, in the order of the schema."""
    import pyarrow as pa

    topics, partitions, keys, values, headers, times = zip(*rows, strict=True) if rows else [()] * 6
    header_type = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(topics, pa.string()),
            pa.array(partitions, pa.int32()),
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array([_headers_out(each) for each in headers], header_type),
            pa.array(times, pa.int64()),
        ],
        names=["topic", "partition", "key", "value", "headers", "timestamp"],
    )


def _headers_out(headers: Headers) -> list[dict[str, Any]]:
    return [] if not headers else [{"key": key, "value": value} for key, value in headers]


def wall_clock_ms() -> int:
    """Now."""
    import time

    return time.time_ns() // 1_000_000
