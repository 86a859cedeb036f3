"""What a batch of rows adds to the states of groups: by Arrow where it adds up exactly as rows do.

Where the order of rows matters, as for sums of doubles, the values of a group are gathered and
added one after the other to its state, so that the result is that of single rows to the last digit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sql.columns.cells import NotInColumns
from penstock.sql.functions.aggregates.aggregate import SqlAggregator
from penstock.sql.types.kinds import WHOLE, DataType
from penstock.sql.types.numbers import wrapped
from penstock.streams.values.lanes import KeyTotal

Adding = Literal["rows", "count", "sum", "min", "max", "each"]
_LOW: Final = 0xFFFFFFFF
# What takes values one after the other, and cannot fail for one of the right type.
_EACH: Final = frozenset(
    {"SUM", "MIN", "MAX", "AVG", "EARLIEST_BY_OFFSET", "LATEST_BY_OFFSET", "COLLECT_LIST"}
)


def adding_of(function: str, kinds: Sequence[DataType | None]) -> Adding:
    """How a built-in aggregate of some arguments adds a batch up; NotInColumns if it cannot."""
    match function, kinds:
        case "COUNT", []:
            return "rows"
        case "COUNT", [_]:
            return "count"
        case "SUM" | "MIN" | "MAX", [kind] if kind in WHOLE:
            found: Adding = "sum" if function == "SUM" else "min" if function == "MIN" else "max"
            return found
        case _, [_] if function in _EACH:
            return "each"
    raise NotInColumns


@dataclass(frozen=True, slots=True)
class BatchPart:
    """One aggregate: its column among what is added up, and how."""

    adding: Adding
    aggregator: SqlAggregator
    column: str | None  # None: it counts rows.

    def inputs(self, rows: pa.Table) -> dict[str, Any]:
        """Columns beside its own: whole numbers in two halves, for a sum may need more bits."""
        if self.adding != "sum":
            return {}
        cells = rows[self.column]
        low = pc.bit_wise_and(cells, pa.scalar(_LOW, pa.int64()))
        return {f"{self.column}_high": pc.shift_right(cells, 32), f"{self.column}_low": low}

    def asked(self) -> list[tuple[Any, str]]:
        """What Arrow is asked for."""
        match self.adding:
            case "rows":
                return []
            case "sum":
                return [(f"{self.column}_high", "sum"), (f"{self.column}_low", "sum")]
            case "each":
                return [(self.column, "list")]
        return [(self.column, self.adding)]

    def answers(self, found: pa.Table) -> Iterable[Any]:
        """What came of it for each group."""
        match self.adding:
            case "rows":
                return _listed(found, "count_all")
            case "sum":
                highs = _listed(found, f"{self.column}_high_sum")
                lows = _listed(found, f"{self.column}_low_sum")
                return [self._sum(high, low) for high, low in zip(highs, lows, strict=True)]
            case "each":
                return _listed(found, f"{self.column}_list")
        return _listed(found, f"{self.column}_{self.adding}")

    def merged(self, state: Any, part: Any) -> Any:
        """A state with what a batch adds."""
        if self.adding != "each":
            return self.aggregator.merge(state, part)
        for value in part:
            state = self.aggregator.add(state, value)
        return state

    def _sum(self, high: int | None, low: int | None) -> int:
        if high is None or low is None:
            return 0
        return wrapped((high << 32) + low, self.aggregator.state_type)


@dataclass(frozen=True, slots=True)
class RowTally:
    """All aggregates of a group together; what is added up is one list, as their states are."""

    parts: tuple[BatchPart, ...]

    def totals(self, pieces: Iterable[pa.Table]) -> list[KeyTotal]:
        """A row for each group, in the order of their last records."""
        found = pa.concat_tables([self._groups(rows) for rows in pieces])
        order = np.lexsort((found["start"].to_numpy(), found["row_max"].to_numpy()))
        found = found.take(pa.array(order))
        cells = [_listed(found, name) for name in ("key", "start", "at_max")]
        parts = zip(*(part.answers(found) for part in self.parts), strict=True)
        return list(map(KeyTotal, *cells, map(list, parts) if self.parts else [[]] * len(found)))

    def _groups(self, rows: pa.Table) -> pa.Table:
        inputs = {name: cells for part in self.parts for name, cells in part.inputs(rows).items()}
        for name, cells in inputs.items():
            rows = rows.append_column(name, cells)
        asked: list[Any] = [("at", "max"), ("row", "max"), ([], "count_all")]
        asked += [what for part in self.parts for what in part.asked()]
        return rows.group_by(["key", "start"], use_threads=False).aggregate(asked)

    def merge(self, key: Any, one: Sequence[Any], two: Sequence[Any]) -> list[Any]:
        """The states of a group with what a batch adds."""
        return [
            part.merged(state, more) for part, state, more in zip(self.parts, one, two, strict=True)
        ]


def _listed(found: pa.Table, name: str) -> list[Any]:
    cells: list[Any] = found[name].to_pylist()
    return cells
