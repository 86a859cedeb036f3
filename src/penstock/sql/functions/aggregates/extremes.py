"""MIN, MAX, TOPK and TOPKDISTINCT. None can take a row back: what was before is gone."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from penstock.sql.functions.aggregates.aggregate import SqlAggregator
from penstock.sql.functions.aggregates.declare import aggregate, variant
from penstock.sql.functions.overloads import FunctionRefused
from penstock.sql.types.kinds import ArrayOf, DataType, StructOf

_ORDERED: Final = (
    "INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "STRING", "BYTES", "DATE", "TIME", "TIMESTAMP",
)  # fmt: skip


def _extreme(choose: Callable[[Any, Any], Any]) -> Any:
    def of(left: Any, right: Any) -> Any:
        if left is None or right is None:
            return left if right is None else right
        return choose(left, right)

    def make(kinds: Sequence[DataType | None], _constants: Any) -> SqlAggregator:
        return SqlAggregator(
            type=kinds[0], state_type=kinds[0], initialize=lambda: None, add=of, merge=of,
            result=lambda state: state,
        )  # fmt: skip

    return make


def _count(constants: Sequence[Any], name: str) -> int:
    count: int | None = constants[0]
    if count is None or count < 1:
        raise FunctionRefused(f"{name} takes a number of 1 or more, not {count}")
    return count


def _top(name: str, *, is_distinct: bool) -> Any:
    def make(kinds: Sequence[DataType | None], constants: Sequence[Any]) -> SqlAggregator:
        count = _count(constants, name)

        def best(values: Sequence[Any]) -> list[Any]:
            kept = dict.fromkeys(values) if is_distinct else values
            return sorted(kept, reverse=True)[:count]

        return SqlAggregator(
            type=ArrayOf(kinds[0]),
            state_type=ArrayOf(kinds[0]),
            initialize=list,
            add=lambda state, value: state if value is None else best([*state, value]),
            merge=lambda left, right: best([*left, *right]),
            result=lambda state: state,
        )

    return make


def _top_rows(kinds: Sequence[DataType | None], constants: Sequence[Any]) -> SqlAggregator:
    """The largest of the first column, with the other columns of their rows."""
    count = _count(constants, "TOPK")
    names = ["sort_col", *(f"col{i}" for i in range(len(kinds) - 1))]
    kind = ArrayOf(StructOf(tuple(zip(names, kinds, strict=True))))

    def best(rows: Sequence[Any]) -> list[Any]:
        return sorted(rows, key=lambda row: row["sort_col"], reverse=True)[:count]

    def add(state: Sequence[Any], *values: Any) -> Any:
        if values[0] is None:
            return state
        return best([*state, dict(zip(names, values, strict=True))])

    return SqlAggregator(
        type=kind, state_type=kind, initialize=list, add=add,
        merge=lambda left, right: best([*left, *right]), result=lambda state: state,
    )  # fmt: skip


_K: Final = ("value", "k")
FUNCTIONS: Final = [
    aggregate(
        "MIN",
        "The smallest value; NULLs do not count.",
        *(variant(f"({kind}) -> {kind}", _extreme(min)) for kind in _ORDERED),
    ),
    aggregate(
        "MAX",
        "The largest value; NULLs do not count.",
        *(variant(f"({kind}) -> {kind}", _extreme(max)) for kind in _ORDERED),
    ),
    aggregate(
        "TOPK",
        "The k largest values, the largest first; with more columns, structs of their rows.",
        *(
            variant(f"({kind}, INTEGER) -> ARRAY<{kind}>", _top("TOPK", is_distinct=False),
                    constants=1, names=_K)
            for kind in _ORDERED
        ),
        *(
            variant(f"({', '.join(['T', *blanks])}, INTEGER) -> ARRAY<T>", _top_rows,
                    constants=1, names=("value", *(f"other{i}" for i in range(len(blanks))), "k"))
            for blanks in ("A", "AB", "ABC", "ABCD", "ABCDE", "ABCDEF")
        ),
    ),
    aggregate(
        "TOPKDISTINCT",
        "The k largest of the different values, the largest first.",
        *(
            variant(f"({kind}, INTEGER) -> ARRAY<{kind}>",
                    _top("TOPKDISTINCT", is_distinct=True), constants=1, names=_K)
            for kind in _ORDERED
        ),
    ),
]  # fmt: skip
