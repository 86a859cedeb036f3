"""Table functions: each makes any number of rows from one row."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from penstock.sql.functions.catalogue import Catalogue
from penstock.sql.functions.scalars.arrays import generate_series

catalogue = Catalogue("TABLE")
_CUBE_COLUMNS_MAX = 12  # 4096 rows from one.


@catalogue.scalar(
    "EXPLODE",
    "(ARRAY<T>) -> ARRAY<T>",
    about="A row for each item of an array.",
)
def explode(array: Sequence[Any]) -> list[Any]:
    return list(array)


@catalogue.scalar(
    "CUBE_EXPLODE",
    "(ARRAY<T>) -> ARRAY<ARRAY<T>>",
    about="A row for each way to replace columns by NULL, from all of them to none.",
)
def cube_explode(columns: Sequence[Any]) -> list[list[Any]]:
    if len(columns) > _CUBE_COLUMNS_MAX:
        raise ValueError(f"CUBE_EXPLODE takes at most {_CUBE_COLUMNS_MAX} columns")
    choices = [(None,) if value is None else (None, value) for value in columns]
    return [list(row) for row in product(*choices)]


catalogue.scalar(
    "GENERATE_SERIES",
    "(INTEGER, INTEGER) -> ARRAY<INTEGER>",
    "(INTEGER, INTEGER, INTEGER) -> ARRAY<INTEGER>",
    "(BIGINT, BIGINT) -> ARRAY<BIGINT>",
    "(BIGINT, BIGINT, INTEGER) -> ARRAY<BIGINT>",
    about="A row for each number from start to end.",
)(generate_series)
