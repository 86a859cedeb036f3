"""EARLIEST_BY_OFFSET and LATEST_BY_OFFSET: the first or last values, in the order rows came.

A row that is added came after those before it. Of two sessions that meet, the left one is earlier.
"""

from collections.abc import Sequence
from typing import Any, Final

from penstock.sql.functions.aggregates.aggregate import (
    AggregateFunction,
    AggregateOverload,
    SqlAggregator,
)
from penstock.sql.functions.aggregates.declare import aggregate, variant
from penstock.sql.functions.overloads import FunctionRefused
from penstock.sql.types.kinds import BOOLEAN, ArrayOf, DataType, StructOf


def _kept(values: Sequence[Any], count: int, *, is_latest: bool) -> list[Any]:
    return list(values[-count:] if is_latest else values[:count])


def _one(is_latest: bool) -> Any:
    """The state tells a NULL that was seen from nothing seen."""

    def make(kinds: Sequence[DataType | None], constants: Sequence[Any]) -> SqlAggregator:
        ignores_nulls = constants[0] if constants else True

        def both(left: Any, right: Any) -> Any:
            if not left["SEEN"] or not right["SEEN"]:
                return left if left["SEEN"] else right
            return right if is_latest else left

        def add(state: Any, value: Any) -> Any:
            if value is None and ignores_nulls:
                return state
            return both(state, {"SEEN": True, "VAL": value})

        return SqlAggregator(
            type=kinds[0], state_type=StructOf((("SEEN", BOOLEAN), ("VAL", kinds[0]))),
            initialize=lambda: {"SEEN": False, "VAL": None}, add=add, merge=both,
            result=lambda state: state["VAL"],
        )  # fmt: skip

    return make


def _many(is_latest: bool) -> Any:
    def make(kinds: Sequence[DataType | None], constants: Sequence[Any]) -> SqlAggregator:
        count, ignores_nulls = (*constants, True)[:2]
        if count is None or count < 1:
            word = "latestN" if is_latest else "earliestN"
            raise FunctionRefused(f"{word} must be 1 or greater")

        def add(state: Sequence[Any], value: Any) -> Any:
            if value is None and ignores_nulls:
                return state
            return _kept([*state, value], count, is_latest=is_latest)

        return SqlAggregator(
            type=ArrayOf(kinds[0]), state_type=ArrayOf(kinds[0]), initialize=list, add=add,
            merge=lambda left, right: _kept([*left, *right], count, is_latest=is_latest),
            result=lambda state: state,
        )  # fmt: skip

    return make


def _variants(*, is_latest: bool) -> list[AggregateOverload]:
    one, many, count = _one(is_latest), _many(is_latest), "latestN" if is_latest else "earliestN"
    return [
        variant("(T) -> T", one),
        variant("(T, BOOLEAN) -> T", one, constants=1, names=("value", "ignoreNulls")),
        variant("(T, INTEGER) -> ARRAY<T>", many, constants=1, names=("value", count)),
        variant("(T, INTEGER, BOOLEAN) -> ARRAY<T>", many, constants=2,
                names=("value", count, "ignoreNulls")),
    ]  # fmt: skip


FUNCTIONS: Final[list[AggregateFunction]] = [
    aggregate(
        "EARLIEST_BY_OFFSET",
        "The first value, or an array of the first N; NULLs do not count unless told so.",
        *_variants(is_latest=False),
    ),
    aggregate(
        "LATEST_BY_OFFSET",
        "The last value, or an array of the last N; NULLs do not count unless told so.",
        *_variants(is_latest=True),
    ),
]
