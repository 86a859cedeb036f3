"""COLLECT_LIST, COLLECT_SET and ATTR: the values themselves."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.sql.functions.aggregates.aggregate import SqlAggregator
from penstock.sql.functions.aggregates.declare import aggregate, variant
from penstock.sql.types.kinds import INTEGER, ArrayOf, DataType, StructOf

# What is beyond is left out, as with ksql.functions.collect_list.limit, so a row stays bounded.
ITEMS_MAX: Final = 100_000


def _collect_list(kinds: Sequence[DataType | None], _constants: Any) -> SqlAggregator:
    kind = ArrayOf(kinds[0])
    return SqlAggregator(
        type=kind,
        state_type=kind,
        initialize=list,
        add=lambda state, value: [*state, value] if len(state) < ITEMS_MAX else state,
        undo=_without_last,
        merge=lambda left, right: [*left, *right][:ITEMS_MAX],
        result=lambda state: state,
    )


def _without_last(state: Sequence[Any], value: Any) -> list[Any]:
    kept = list(state)
    for at in reversed(range(len(kept))):
        if kept[at] == value:
            del kept[at]
            break
    return kept


def _collect_set(kinds: Sequence[DataType | None], _constants: Any) -> SqlAggregator:
    kind = ArrayOf(kinds[0])
    return SqlAggregator(
        type=kind,
        state_type=kind,
        initialize=list,
        add=lambda state, value: _distinct(state, [value]),
        merge=_distinct,
        result=lambda state: state,
    )


def _distinct(state: Sequence[Any], values: Sequence[Any]) -> Sequence[Any]:
    fresh = [value for value in values if value not in state]
    return [*state, *fresh][:ITEMS_MAX] if fresh else state


def _attribute(kinds: Sequence[DataType | None], _constants: Any) -> SqlAggregator:
    entry = StructOf((("VALUE", kinds[0]), ("COUNT", INTEGER)))
    return SqlAggregator(
        type=kinds[0],
        state_type=ArrayOf(entry),
        initialize=list,
        add=lambda state, value: _changed(state, value, 1),
        undo=lambda state, value: _changed(state, value, -1),
        merge=_all_of,
        result=lambda state: state[0]["VALUE"] if len(state) == 1 else None,
    )


def _changed(state: Sequence[Mapping[str, Any]], value: Any, change: int) -> list[Any]:
    found = [entry for entry in state if entry["VALUE"] == value]
    count = change + (found[0]["COUNT"] if found else 0)
    others = [entry for entry in state if entry["VALUE"] != value]
    return [*others, {"VALUE": value, "COUNT": count}] if count > 0 else others


def _all_of(left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]) -> Any:
    merged: Sequence[Mapping[str, Any]] = left
    for entry in right:
        merged = _changed(merged, entry["VALUE"], entry["COUNT"])
    return merged


FUNCTIONS: Final = [
    aggregate(
        "COLLECT_LIST",
        "All values in the order of their rows, NULLs too.",
        variant("(T) -> ARRAY<T>", _collect_list),
    ),
    aggregate(
        "COLLECT_SET",
        "The different values in the order in which they came first, NULL too.",
        variant("(T) -> ARRAY<T>", _collect_set),
    ),
    aggregate(
        "ATTR",
        "The value that all rows have; NULL if they have different ones.",
        variant("(T) -> T", _attribute),
    ),
]
