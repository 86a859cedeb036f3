"""LIKE: `%` stands for any text, `_` for one character; an escape character takes their meaning."""

import re
from functools import lru_cache

from penstock.sql.types.failures import RowFailure

_PATTERNS_KEPT = 256
_CHARACTERS_MAX = 10_000  # Of a pattern, which may come from a row.


def is_like(text: str, pattern: str, escape: str | None = None) -> bool:
    """Whether the whole text is like the pattern."""
    first, *rest = _parts(pattern, escape)
    if not rest:
        return first.fullmatch(text) is not None
    if (found := first.match(text)) is None:
        return False
    position = found.end()
    for part in rest[:-1]:  # Greedy from the left is enough: `%` takes whatever lies between.
        if (found := part.search(text, position)) is None:
            return False
        position = found.end()
    return _ends(rest[-1], text, position)


def _ends(part: re.Pattern[str], text: str, position: int) -> bool:
    start = len(text) - part.groups
    return start >= position and part.fullmatch(text, start) is not None


@lru_cache(_PATTERNS_KEPT)
def _parts(pattern: str, escape: str | None) -> tuple[re.Pattern[str], ...]:
    """What stands between the `%`, one group for each character."""
    if len(pattern) > _CHARACTERS_MAX:
        raise RowFailure(f"a LIKE pattern is longer than {_CHARACTERS_MAX} characters")
    parts: list[str] = [""]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            follower = next(characters, None)
            if follower is None:
                raise RowFailure(f"LIKE pattern must not end with the escape character: {pattern}")
            parts[-1] += f"({re.escape(follower)})"
        elif character == "%":
            parts.append("")
        else:
            parts[-1] += "(.)" if character == "_" else f"({re.escape(character)})"
    return tuple(re.compile(part, re.DOTALL) for part in parts)
