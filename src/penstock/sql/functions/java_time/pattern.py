"""A pattern read: letters for fields, texts that stand for themselves, optional parts."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final, TypeAlias

DATE_LETTERS: Final = frozenset("GuyYMLdDQqEecwW")
TIME_LETTERS: Final = frozenset("ahKkHmsSAnN")
ZONE_LETTERS: Final = frozenset("VzOXxZ")
_LETTERS: Final = DATE_LETTERS | TIME_LETTERS | ZONE_LETTERS
_COUNT_MAX: Final = {"S": 9, "y": 19, "u": 19, "Y": 19, "A": 19, "n": 19, "N": 19, "D": 3,
                     "V": 2, "z": 4, "a": 1, "W": 1}  # fmt: skip
_COUNT_USUAL: Final = {**dict.fromkeys("hHkKmsdw", 2), **dict.fromkeys("GMLQqEecXxZO", 5)}
_CHARACTERS_MAX: Final = 200
_PATTERNS_KEPT: Final = 256


@dataclass(frozen=True, slots=True)
class Letters:
    """A field: a letter, and how often it is repeated."""

    letter: str
    count: int


@dataclass(frozen=True, slots=True)
class Words:
    """Text that stands for itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Maybe:
    """What stands in [brackets]: read if it is there, and always written."""

    parts: tuple["Part", ...]


Part: TypeAlias = Letters | Words | Maybe


@lru_cache(_PATTERNS_KEPT)
def read_pattern(text: str) -> tuple[Part, ...]:
    """The parts of a pattern; raises ValueError in Java's words."""
    if len(text) > _CHARACTERS_MAX:
        raise ValueError(f"the pattern is longer than {_CHARACTERS_MAX} characters")
    stack: list[list[Part]] = [[]]
    for kind, run in _runs(text):
        if kind == "[":
            stack.append([])
        elif kind == "]":
            if len(stack) == 1:
                raise ValueError("Pattern invalid as it contains ] without previous [")
            inner = tuple(stack.pop())
            stack[-1].append(Maybe(inner))
        else:
            stack[-1].append(Words(run) if kind == "text" else _letters(run))
    while len(stack) > 1:  # Java closes what is left open.
        inner = tuple(stack.pop())
        stack[-1].append(Maybe(inner))
    return tuple(stack[0])


def _runs(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        character = text[at]
        if character == "'":
            literal, at = _quoted(text, at)
            yield "text", literal
            continue
        run = "".join(next(groupby(text[at:]))[1]) if character.isalpha() else character
        at += len(run)
        if character in "[]":
            yield character, run
        elif character in "{}#":
            raise ValueError(f"Pattern includes reserved character: '{character}'")
        else:
            yield ("letters" if character.isascii() and character.isalpha() else "text"), run


def _quoted(text: str, start: int) -> tuple[str, int]:
    """The text in quotes, and where it ends; two quotes are one."""
    if text.startswith("''", start):
        return "'", start + 2
    found, at = "", start + 1
    while at < len(text):
        if text.startswith("''", at):
            found, at = f"{found}'", at + 2
        elif text[at] == "'":
            return found, at + 1
        else:
            found, at = found + text[at], at + 1
    raise ValueError(f"Pattern ends with an incomplete string literal: {text}")


def _letters(run: str) -> Letters:
    letter, count = run[0], len(run)
    if letter not in _LETTERS:
        raise ValueError(f"Unknown pattern letter: {letter}")
    if count > _COUNT_MAX.get(letter, _COUNT_USUAL.get(letter, 5)):
        raise ValueError(f"Too many pattern letters: {letter}")
    return Letters(letter, count)


def letters_of(parts: tuple[Part, ...]) -> set[str]:
    """All letters of a pattern, those in brackets too."""
    found: set[str] = set()
    for part in parts:
        if isinstance(part, Letters):
            found.add(part.letter)
        elif isinstance(part, Maybe):
            found |= letters_of(part.parts)
    return found
