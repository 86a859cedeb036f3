"""Calls of a user's code: results are checked, failures are told with their line."""

import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from penstock.sql.types.conforming import conformed
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import DataType

ROWS_MAX: Final = 1_000_000  # From one row: a generator may never end.


def guarded(
    name: str,
    function: Callable[..., Any],
    result: DataType | None,
    wants_null: Sequence[bool] | None,
    *,
    is_rows: bool = False,
) -> Callable[..., Any]:
    """The function as the language calls it; whatever it raises is a RowFailure.

    `wants_null` says which parameters may be NULL, the last for all that follow; None: all may.
    """

    def call(*values: Any) -> Any:
        if wants_null is not None and has_unwanted(values, wants_null):
            return None
        try:
            found = function(*values)
            return conformed(_rows(found) if is_rows else found, result)
        except RowFailure:
            raise
        except Exception as error:
            raise RowFailure(f"{name} failed{_line(error)}: {_words(error)}") from error

    return call


def has_unwanted(values: Sequence[Any], wants_null: Sequence[bool]) -> bool:
    """Whether a NULL is among the values where the function does not take one."""
    last = len(wants_null) - 1
    return any(v is None and not wants_null[min(i, last)] for i, v in enumerate(values))


def _rows(found: Any) -> list[Any]:
    rows: list[Any] = []
    for row in found if found is not None else ():
        if len(rows) == ROWS_MAX:
            raise ValueError(f"more than {ROWS_MAX} rows came from one")
        rows.append(row)
    return rows


def _line(error: BaseException) -> str:
    """Where in the user's file it happened: the innermost line that is not ours."""
    own = str(Path(__file__).parents[2])
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(own)]
    return f" at {theirs[-1].filename}:{theirs[-1].lineno}" if theirs else ""


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
