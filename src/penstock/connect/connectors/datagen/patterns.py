"""Texts that a regular expression matches, made by chance.

The part of regular expressions that generators need: letters, `.`, classes in brackets with ranges,
`\\d`, `\\w`, `\\s` and escaped signs, groups, `|`, and `?`, `*`, `+`, `{n}`, `{n,m}`.
"""

import random
import string
from collections.abc import Callable

from penstock.errors import ConfigError

TextMaker = Callable[[random.Random], str]
_REPEAT_MAX = 8  # Of `*` and `+`, which have no end.
_COUNT_MAX = 10_000
_DEPTH_MAX = 50
_ANY = string.ascii_letters + string.digits
_CLASSES = {"d": string.digits, "w": _ANY + "_", "s": " "}


def text_maker(pattern: str) -> TextMaker:
    """Makes texts that the pattern matches as a whole; ConfigError for one it does not know."""
    reader = _PatternReader(pattern)
    made = reader.alternatives(0)
    if not reader.at_end:
        raise reader.wrong("an unexpected )")
    return made


class _PatternReader:
    """A pattern and the place in it that is read next."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._pattern)

    def wrong(self, what: str) -> ConfigError:
        return ConfigError(f"the regex {self._pattern!r} has {what} at {self._at}")

    def alternatives(self, depth: int) -> TextMaker:
        if depth > _DEPTH_MAX:
            raise self.wrong("too many groups in groups")
        rows = [self._row(depth)]
        while self._next_is("|"):
            rows.append(self._row(depth))
        return rows[0] if len(rows) == 1 else lambda chance: chance.choice(rows)(chance)

    def _row(self, depth: int) -> TextMaker:
        parts: list[TextMaker] = []
        while not self.at_end and self._pattern[self._at] not in "|)":
            parts.append(self._counted(self._piece(depth)))
        return lambda chance: "".join([part(chance) for part in parts])

    def _piece(self, depth: int) -> TextMaker:
        sign = self._take()
        if sign == "(":
            return self._group(depth)
        if sign == "[":
            return _one_of(self._bracket())
        if sign == "\\":
            return _one_of(self._escaped())
        if sign in "?*+{":
            raise self.wrong(f"a {sign} with nothing before it")
        if sign in "^$":
            return lambda _: ""
        return _one_of(_ANY if sign == "." else sign)

    def _group(self, depth: int) -> TextMaker:
        if self._next_is("?") and not self._next_is(":"):
            raise self.wrong("a kind of group that is not supported")
        made = self.alternatives(depth + 1)
        if not self._next_is(")"):
            raise self.wrong("a ( without its )")
        return made

    def _bracket(self) -> str:
        if self._next_is("^"):
            raise self.wrong("a negated class, which is not supported")
        found = ""
        while not self._next_is("]"):
            sign = self._take()
            signs = self._escaped() if sign == "\\" else sign
            found += self._ranged(signs) if len(signs) == 1 else signs
        if not found:
            raise self.wrong("an empty class")
        return found

    def _ranged(self, first: str) -> str:
        rest = self._pattern[self._at : self._at + 2]
        if len(rest) < 2 or rest[0] != "-" or rest[1] == "]":
            return first
        self._at += 2
        if ord(rest[1]) < ord(first):
            raise self.wrong("a range that ends before it begins")
        return "".join(map(chr, range(ord(first), ord(rest[1]) + 1)))

    def _escaped(self) -> str:
        sign = self._take()
        if sign.isalnum() and sign not in _CLASSES:
            raise self.wrong(f"\\{sign}, which is not supported")
        return _CLASSES.get(sign, sign)

    def _counted(self, piece: TextMaker) -> TextMaker:
        if self._next_is("?"):
            low, high = 0, 1
        elif self._next_is("*"):
            low, high = 0, _REPEAT_MAX
        elif self._next_is("+"):
            low, high = 1, _REPEAT_MAX
        elif self._next_is("{"):
            low, high = self._bounds()
        else:
            return piece
        return lambda chance: "".join([piece(chance) for _ in range(chance.randint(low, high))])

    def _bounds(self) -> tuple[int, int]:
        end = self._pattern.find("}", self._at)
        inside = self._pattern[self._at : end] if end >= 0 else ""
        low, comma, high = inside.partition(",")
        if not low.isdigit() or (high and not high.isdigit()):
            raise self.wrong("a { without a count")
        self._at = end + 1
        first = int(low)
        last = first if not comma else int(high) if high else first + _REPEAT_MAX
        if last < first or last > _COUNT_MAX:
            raise self.wrong("a count that is out of bounds")
        return first, last

    def _take(self) -> str:
        if self.at_end:
            raise self.wrong("its end too early")
        self._at += 1
        return self._pattern[self._at - 1]

    def _next_is(self, sign: str) -> bool:
        found = not self.at_end and self._pattern[self._at] == sign
        self._at += found
        return found


def _one_of(signs: str) -> TextMaker:
    return (lambda _: signs) if len(signs) == 1 else (lambda chance: chance.choice(signs))
