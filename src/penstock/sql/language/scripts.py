"""Where the statements of a text end, before any of them is read.

A semicolon in a string, a quoted name or a comment ends nothing. What `${name}` stands for is known
only when the statements before have run, so a script is cut first and read piece by piece.
"""

import re
from collections.abc import Iterator
from typing import Final

# Quotes and comments that do not end reach to the end of the text.
_ENDS: Final = re.compile(
    r"""--[^\r\n]*|/\*.*?(?:\*/|\Z)|'[^']*(?:'|\Z)|`[^`]*(?:`|\Z)|"[^"]*(?:"|\Z)|;""", re.DOTALL
)
_COLUMNS_MAX: Final = 2_000  # Beyond it columns count from the statement's own beginning.
_COMMENTS: Final = re.compile(r"""--[^\r\n]*|/\*.*?\*/|('[^']*'|`[^`]*`|"[^"]*")""", re.DOTALL)


def statement_texts(text: str) -> Iterator[str]:
    """The texts of a script's statements, each where it stood: blank lines come before it."""
    begin = 0
    for end in _semicolons(text):
        yield _placed(text, begin, end)
        begin = end
    if text[begin:].strip():
        yield _placed(text, begin, len(text))


def statement_count(text: str) -> int:
    """How many statements a script has at most."""
    return 1 + sum(1 for _ in _semicolons(text))


def is_complete(text: str) -> bool:
    """Whether the last statement has its semicolon, and nothing but comments follows."""
    ends = list(_semicolons(text))
    return bool(ends) and not without_comments(text[ends[-1] :]).strip()


def without_comments(text: str) -> str:
    """The text with each comment as a space."""
    return _COMMENTS.sub(lambda found: found[1] or " ", text)


def _semicolons(text: str) -> Iterator[int]:
    return (found.end() for found in _ENDS.finditer(text) if found[0] == ";")


def _placed(text: str, begin: int, end: int) -> str:
    column = begin - (text.rfind("\n", 0, begin) + 1)
    # In a script of one line all statements together would be the square of its length.
    indent = column if column <= _COLUMNS_MAX else 0
    return "\n" * text.count("\n", 0, begin) + " " * indent + text[begin:end]
