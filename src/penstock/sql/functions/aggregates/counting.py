"""COUNT, COUNT_DISTINCT and HISTOGRAM: how many."""

from typing import Any, Final

from penstock.sql.functions.aggregates.aggregate import SqlAggregator
from penstock.sql.functions.aggregates.declare import aggregate, variant
from penstock.sql.functions.aggregates.sketch import add_to_sketch, merge_sketches, sketch_size
from penstock.sql.types.kinds import BIGINT, BYTES, STRING, MapOf

_HISTOGRAM_ENTRIES_MAX: Final = 1000


def _count_rows(_kinds: Any, _constants: Any) -> SqlAggregator:
    return SqlAggregator(
        type=BIGINT,
        state_type=BIGINT,
        initialize=int,
        add=lambda state: state + 1,
        undo=lambda state: state - 1,
        merge=lambda left, right: left + right,
        result=lambda state: state,
    )


def _count_values(_kinds: Any, _constants: Any) -> SqlAggregator:
    return SqlAggregator(
        type=BIGINT,
        state_type=BIGINT,
        initialize=int,
        add=lambda state, value: state + (value is not None),
        undo=lambda state, value: state - (value is not None),
        merge=lambda left, right: left + right,
        result=lambda state: state,
    )


def _count_distinct(_kinds: Any, _constants: Any) -> SqlAggregator:
    return SqlAggregator(
        type=BIGINT,
        state_type=BYTES,
        initialize=bytes,
        add=lambda state, value: state if value is None else add_to_sketch(state, value),
        merge=merge_sketches,
        result=sketch_size,
    )


def _histogram(_kinds: Any, _constants: Any) -> SqlAggregator:
    kind = MapOf(STRING, BIGINT)
    return SqlAggregator(
        type=kind,
        state_type=kind,
        initialize=dict,
        add=lambda state, value: _counted(state, value, 1),
        undo=lambda state, value: _counted(state, value, -1),
        merge=_merged,
        result=lambda state: state,
    )


def _counted(state: dict[str, int], value: str | None, change: int) -> dict[str, int]:
    if value is None or (value not in state and len(state) >= _HISTOGRAM_ENTRIES_MAX):
        return state
    count = state.get(value, 0) + change
    if count > 0:
        return {**state, value: count}
    return {key: known for key, known in state.items() if key != value}


def _merged(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    merged = dict(left)
    for value, count in right.items():
        if value in merged or len(merged) < _HISTOGRAM_ENTRIES_MAX:
            merged[value] = merged.get(value, 0) + count
    return merged


FUNCTIONS: Final = [
    aggregate(
        "COUNT",
        "The number of rows, or of values that are not NULL.",
        variant("() -> BIGINT", _count_rows, names=()),
        variant("(T) -> BIGINT", _count_values),
    ),
    aggregate(
        "COUNT_DISTINCT",
        "The number of different values, NULL not among them: exact up to 511, then within 2 %.",
        variant("(T) -> BIGINT", _count_distinct),
    ),
    aggregate(
        "HISTOGRAM",
        "How often each text occurs, for the first 1000 of them.",
        variant("(STRING) -> MAP<STRING, BIGINT>", _histogram),
    ),
]
