"""Arrays: sets of their items, order, parts."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from penstock.sql.functions.catalogue import Catalogue
from penstock.sql.types.text import plain_text

catalogue = Catalogue("ARRAY")
_SORTED: Final = ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "STRING", "BOOLEAN",
                  "DATE", "TIME", "TIMESTAMP", "BYTES")  # fmt: skip
_JOINED: Final = (*_SORTED[:9],)
_SERIES_MAX: Final = 1_000_000


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Each value once, in the order of its first; values may be lists and dicts."""
    try:
        return list(dict.fromkeys(values))
    except TypeError:
        found: list[Any] = []
        for value in values:
            if value not in found:
                found.append(value)
        return found


@catalogue.scalar("ARRAY_LENGTH", "(ARRAY<T>) -> INTEGER", about="The number of items.")
def array_length(array: Sequence[Any]) -> int:
    return len(array)


@catalogue.scalar(
    "ARRAY_CONTAINS",
    "(ARRAY<T>, T) -> BOOLEAN",
    takes_nulls=True,
    about="Whether an item is equal to the value; NULL is equal to NULL here.",
)
def array_contains(array: Sequence[Any] | None, value: Any) -> bool:
    return array is not None and value in array


@catalogue.scalar("ARRAY_DISTINCT", "(ARRAY<T>) -> ARRAY<T>", about="Each item once.")
def array_distinct(array: Sequence[Any]) -> list[Any]:
    return _distinct(array)


@catalogue.scalar(
    "ARRAY_EXCEPT",
    "(ARRAY<T>, ARRAY<T>) -> ARRAY<T>",
    about="The different items of one array that the other has not.",
)
def array_except(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    return _distinct(value for value in left if value not in right)


@catalogue.scalar(
    "ARRAY_INTERSECT",
    "(ARRAY<T>, ARRAY<T>) -> ARRAY<T>",
    about="The different items that both arrays have.",
)
def array_intersect(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    return _distinct(value for value in left if value in right)


@catalogue.scalar(
    "ARRAY_UNION",
    "(ARRAY<T>, ARRAY<T>) -> ARRAY<T>",
    about="The different items of both arrays.",
)
def array_union(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    return _distinct([*left, *right])


@catalogue.scalar(
    "ARRAY_CONCAT",
    "(ARRAY<T>, ARRAY<T>) -> ARRAY<T>",
    takes_nulls=True,
    about="The items of one array and then of the other; an array that is NULL counts as empty.",
)
def array_concat(left: Sequence[Any] | None, right: Sequence[Any] | None) -> list[Any] | None:
    if left is None and right is None:
        return None
    return [*(left or ()), *(right or ())]


@catalogue.scalar(
    "ARRAY_REMOVE",
    "(ARRAY<T>, T) -> ARRAY<T>",
    takes_nulls=True,
    about="The array without the items that are equal to the value.",
)
def array_remove(array: Sequence[Any] | None, value: Any) -> list[Any] | None:
    return None if array is None else [item for item in array if item != value]


@catalogue.scalar(
    "ARRAY_MAX",
    *(f"(ARRAY<{kind}>) -> {kind}" for kind in _SORTED),
    about="The largest item; NULLs do not count.",
)
def array_max(array: Sequence[Any]) -> Any:
    return max((item for item in array if item is not None), default=None)


@catalogue.scalar(
    "ARRAY_MIN",
    *(f"(ARRAY<{kind}>) -> {kind}" for kind in _SORTED),
    about="The smallest item; NULLs do not count.",
)
def array_min(array: Sequence[Any]) -> Any:
    return min((item for item in array if item is not None), default=None)


@catalogue.scalar(
    "ARRAY_SORT",
    *(f"(ARRAY<{kind}>) -> ARRAY<{kind}>" for kind in _SORTED),
    *(f"(ARRAY<{kind}>, STRING) -> ARRAY<{kind}>" for kind in _SORTED),
    about="The items in order, ASC or DESC, NULLs last.",
)
def array_sort(array: Sequence[Any], direction: str = "ASC") -> list[Any] | None:
    word = direction.strip().upper()
    if word not in ("ASC", "ASCENDING", "DESC", "DESCENDING"):
        return None
    kept = [item for item in array if item is not None]
    kept.sort(reverse=word.startswith("DESC"))
    return kept + [None] * (len(array) - len(kept))


@catalogue.scalar(
    "ARRAY_JOIN",
    *(f"(ARRAY<{kind}>) -> STRING" for kind in _JOINED),
    *(f"(ARRAY<{kind}>, STRING) -> STRING" for kind in _JOINED),
    takes_nulls=True,
    about="The items as one text, with a comma or another delimiter between them.",
)
def array_join(array: Sequence[Any] | None, delimiter: str | None = ",") -> str | None:
    if array is None:
        return None
    return (delimiter or "").join("null" if item is None else plain_text(item) for item in array)


@catalogue.scalar(
    "SLICE",
    "(ARRAY<T>, INTEGER, INTEGER) -> ARRAY<T>",
    takes_nulls=True,
    about="The items from one position to another, both included and counted from 1.",
)
def array_slice(array: Sequence[Any] | None, first: int | None, last: int | None) -> Any:
    if array is None:
        return None
    start = 0 if first is None else first - 1
    end = len(array) if last is None else last
    if start < 0 or start > end:
        return None
    return list(array[start:end])


@catalogue.scalar(
    "GENERATE_SERIES",
    "(INTEGER, INTEGER) -> ARRAY<INTEGER>",
    "(INTEGER, INTEGER, INTEGER) -> ARRAY<INTEGER>",
    "(BIGINT, BIGINT) -> ARRAY<BIGINT>",
    "(BIGINT, BIGINT, INTEGER) -> ARRAY<BIGINT>",
    about="The numbers from start to end, both included, by steps of 1 or of another size.",
)
def generate_series(start: int, end: int, step: int | None = None) -> list[int]:
    stride = step if step is not None else (1 if end >= start else -1)
    if stride == 0:
        raise ValueError("GENERATE_SERIES step cannot be zero")
    if (end - start) * stride < 0:
        raise ValueError("GENERATE_SERIES step has wrong sign")
    series = range(start, end + (1 if stride > 0 else -1), stride)
    if len(series) > _SERIES_MAX:
        raise ValueError(f"a series of {len(series)} numbers is too long")
    return list(series)
