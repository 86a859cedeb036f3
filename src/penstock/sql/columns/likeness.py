"""LIKE on columns: a text that begins, ends or has a part; other patterns go row by row."""

from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc

from penstock.sql.columns.cells import NotInColumns


def likeness(pattern: Any, escape: str | None) -> Callable[[Any], Any]:
    """Whether texts are like a pattern; NULL is neither."""
    if not isinstance(pattern, str) or "_" in pattern or (escape and escape in pattern):
        raise NotInColumns
    pattern.encode()  # UnicodeError for a text that no column holds.
    match pattern.split("%"):
        case [whole]:
            return lambda values: pc.equal(values, whole)
        case [start, ""]:
            return lambda values: pc.starts_with(values, start)
        case ["", end]:
            return lambda values: pc.ends_with(values, end)
        case ["", part, ""]:
            return lambda values: pc.match_substring(values, part)
    raise NotInColumns
