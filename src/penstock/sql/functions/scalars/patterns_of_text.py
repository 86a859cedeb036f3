"""Regular expressions. RE2 runs them in time that grows with the text alone.

What Java has and RE2 has not (looking ahead and behind, references back) is left to Python's own
engine, which may take as long as Java's does.
"""

import re
from functools import lru_cache
from typing import Any, Final

import re2

from penstock.sql.functions.catalogue import Catalogue
from penstock.sql.functions.scalars.strings import TEXT_CHARACTERS_MAX

catalogue = Catalogue("REGULAR EXPRESSION")
_PATTERNS_KEPT: Final = 256
_PATTERN_CHARACTERS_MAX: Final = 10_000
_REPLACEMENT: Final = re.compile(r"\\(.)|\$(\d)|\$\{(\w+)\}", re.DOTALL)


@lru_cache(_PATTERNS_KEPT)
def _compiled(pattern: str) -> Any:
    if len(pattern) > _PATTERN_CHARACTERS_MAX:
        raise ValueError(f"the pattern is longer than {_PATTERN_CHARACTERS_MAX} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return _by_python(pattern)


def _by_python(pattern: str) -> Any:
    try:
        return re.compile(re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", pattern))
    except re.error as error:
        raise ValueError(f"Invalid regular expression pattern: {pattern} ({error})") from None


@catalogue.scalar(
    "REGEXP_EXTRACT",
    "(STRING, STRING) -> STRING",
    "(STRING, STRING, INTEGER) -> STRING",
    about="The first part of a text that matches, or one of its groups; NULL if none does.",
)
def extract(pattern: str, text: str, group: int = 0) -> str | None:
    machine = _compiled(pattern)
    if not 0 <= group <= machine.groups:
        return None
    found = machine.search(text)
    return None if found is None else found.group(group)


@catalogue.scalar(
    "REGEXP_EXTRACT_ALL",
    "(STRING, STRING) -> ARRAY<STRING>",
    "(STRING, STRING, INTEGER) -> ARRAY<STRING>",
    about="All parts of a text that match, or one group of each.",
)
def extract_all(pattern: str, text: str, group: int = 0) -> list[str | None] | None:
    machine = _compiled(pattern)
    if not 0 <= group <= machine.groups:
        return None
    return [found.group(group) for found in machine.finditer(text)]


@catalogue.scalar(
    "REGEXP_REPLACE",
    "(STRING, STRING, STRING) -> STRING",
    about="The text with all that matches replaced; $1 stands for the first group.",
)
def replace_all(text: str, pattern: str, replacement: str) -> str:
    pieces, end, size = [], 0, 0
    for found in _compiled(pattern).finditer(text):
        piece = text[end : found.start()] + _expanded(replacement, found)
        size += len(piece)
        if size > TEXT_CHARACTERS_MAX:
            raise ValueError("the result is too long")
        pieces.append(piece)
        end = found.end()
    return "".join(pieces) + text[end:]


def _expanded(replacement: str, found: Any) -> str:
    def piece(sign: re.Match[str]) -> str:
        escaped, number, name = sign.groups()
        if escaped is not None:
            return escaped
        return found.group(int(number) if number else name) or ""

    return _REPLACEMENT.sub(piece, replacement)


@catalogue.scalar(
    "REGEXP_SPLIT_TO_ARRAY",
    "(STRING, STRING) -> ARRAY<STRING>",
    about="The parts of a text between what matches; an empty pattern splits every character.",
)
def split_by(text: str, pattern: str) -> list[str]:
    if not pattern:
        return list(text) or [""]
    pieces, end = [], 0
    for found in _compiled(pattern).finditer(text):
        if found.end() > found.start():
            pieces.append(text[end : found.start()])
            end = found.end()
    return [*pieces, text[end:]]
