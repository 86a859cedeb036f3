r"""The syntax of subscription patterns: that of RE2, the one Apache Kafka's coordinator takes.

It has no look-around and no references back, so that a match never takes more than one pass over
the name. Names of topics consist of few characters, so every class of characters, `\p{Lu}` or
`[^[:punct:]]`, is reduced to those of them that it holds. What a parsed pattern matches is left
to consumer_group_pattern.py.
"""

import string
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from penstock.groups.consumer_group_pattern_classes import (
    LEGAL,
    PERL,
    POSIX,
    cases,
    unicode_class,
)

REPEAT_MAX: Final = 1000
DEPTH_MAX: Final = 100  # Of groups within groups.
LENGTH_MAX: Final = 10_000

BEGIN: Final = "^"
END: Final = "$"
BOUNDARY: Final = r"\b"
NO_BOUNDARY: Final = r"\B"


class BadPattern(ValueError):
    """What is wrong, in the words of RE2."""


class Chars(NamedTuple):
    """Any one of these characters."""

    chars: frozenset[str]


class Place(NamedTuple):
    """A place between characters: BEGIN, END, BOUNDARY or NO_BOUNDARY."""

    kind: str


class Row(NamedTuple):
    """One after the other."""

    nodes: "tuple[Node, ...]"


class Choice(NamedTuple):
    """One or the other."""

    nodes: "tuple[Node, ...]"


class Repeat(NamedTuple):
    """So many times."""

    node: "Node"
    least: int
    most: int | None  # None: any number.


Node: TypeAlias = Chars | Place | Row | Choice | Repeat

EMPTY: Final = Row(())


def parse(text: str, alphabet: frozenset[str] = LEGAL) -> Node:
    """The pattern as a tree for names of these characters; BadPattern says what is wrong."""
    if len(text) > LENGTH_MAX:
        raise BadPattern("expression is too large")
    reader = _Reader(text)
    node = reader.choice(_Flags(alphabet=alphabet))
    if not reader.at_end():
        raise BadPattern("unexpected )")
    return node


class _Flags(NamedTuple):
    """The flags that say what is matched; greediness only says in which order to try."""

    fold: bool = False
    alphabet: frozenset[str] = LEGAL

    def chars(self, test: Callable[[str], bool]) -> frozenset[str]:
        """The characters of names for which the test holds, whatever the case if folding."""
        if not self.fold:
            return frozenset(filter(test, self.alphabet))
        return frozenset(c for c in self.alphabet if any(map(test, cases(c))))


_OCTAL: Final = frozenset(string.octdigits)
_ESCAPED: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(slots=True)
class _Reader:
    """Reads a pattern from left to right; each method reads one thing and stops behind it."""

    text: str
    at: int = 0
    depth: int = 0
    names: set[str] = field(default_factory=set)

    def at_end(self) -> bool:
        return self.at >= len(self.text)

    def looking_at(self, *starts: str) -> bool:
        return self.text.startswith(starts, self.at)

    def take(self, start: str) -> bool:
        if not self.text.startswith(start, self.at):
            return False
        self.at += len(start)
        return True

    def next(self) -> str:
        char = self.text[self.at]
        self.at += 1
        return char

    # A pattern, from the whole to its parts

    def choice(self, flags: _Flags) -> Node:
        """Alternatives, up to the end or to a closing parenthesis, which is left to the caller."""
        branches: list[Node] = []
        row: list[Node] = []
        while not self.at_end() and not self.looking_at(")"):
            if self.take("|"):
                branches.append(_row(row))
                row = []
            elif (bounds := self._bounds()) is not None:
                if not row:
                    raise BadPattern("missing argument to repetition operator")
                row[-1] = _repeat(row[-1], *bounds)
            elif self.looking_at("(?") and (changed := self._flags_alone(flags)) is not None:
                flags = changed
            else:
                row += self._atoms(flags)
        branches.append(_row(row))
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _bounds(self) -> tuple[int, int | None] | None:
        bounds = self._one_bounds()
        if bounds is not None:
            self.take("?")  # A lazy repetition matches the same names.
            if self._one_bounds() is not None:
                raise BadPattern("invalid nested repetition operator")
        return bounds

    def _one_bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return bounds
        return self._counted() if self.looking_at("{") else None

    def _counted(self) -> tuple[int, int | None] | None:
        """`{2}`, `{2,}` or `{2,3}`; None: a brace that stands for itself."""
        end = self.text.find("}", self.at)
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        if end < 0 or not _is_number(low) or (high and not _is_number(high)):
            return None
        self.at = end + 1
        least = _count(low)
        most = _count(high) if high else None if comma else least
        if least > REPEAT_MAX or (most is not None and (most > REPEAT_MAX or most < least)):
            raise BadPattern("invalid repeat count")
        return least, most

    def _atoms(self, flags: _Flags) -> list[Node]:
        """One, or as many as there are characters between quotes."""
        if self.take("("):
            return [self._group(flags)]
        if self.looking_at("["):
            return [Chars(self._bracket(flags))]
        char = self.next()
        if char == ".":
            return [Chars(flags.alphabet)]
        if char in "^$":
            return [Place(BEGIN if char == "^" else END)]
        if char == "\\":
            return self._escape(flags)
        return [Chars(flags.chars(char.__eq__))]

    # Groups and flags

    def _group(self, flags: _Flags) -> Node:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise BadPattern("expression nests too deeply")
        if self.looking_at("?"):
            flags = self._group_opening(flags)
        node = self.choice(flags)
        if not self.take(")"):
            raise BadPattern("missing closing )")
        self.depth -= 1
        return node

    def _group_opening(self, flags: _Flags) -> _Flags:
        if self.looking_at("?P<", "?<"):
            self._group_name()
            return flags
        changed, end = self._read_flags(flags, self.at + 1)
        if self.text[end] != ":":
            raise BadPattern("invalid or unsupported Perl syntax")
        self.at = end + 1
        return changed

    def _group_name(self) -> None:
        start = self.text.index("<", self.at) + 1
        end = self.text.find(">", start)
        name = self.text[start:end]
        if end < 0 or not name or not all(char in PERL["w"] for char in name):
            raise BadPattern("invalid named capture")
        if name in self.names:
            raise BadPattern("duplicate capture group name")
        self.names.add(name)
        self.at = end + 1

    def _flags_alone(self, flags: _Flags) -> _Flags | None:
        """`(?i)` holds up to the end of the group that it stands in; None: it opens a group."""
        if self.looking_at("(?P<", "(?<"):
            return None
        changed, end = self._read_flags(flags, self.at + 2)
        if self.text[end] == ":":
            return None
        self.at = end + 1
        return changed

    def _read_flags(self, flags: _Flags, at: int) -> tuple[_Flags, int]:
        sign, named = True, False
        while at < len(self.text):
            char = self.text[at]
            if char in "imsU":
                named = True
                flags = flags._replace(fold=sign) if char == "i" else flags
            elif char == "-" and sign:
                sign, named = False, False
            elif char in ":)" and (sign or named):
                return flags, at
            else:
                break
            at += 1
        raise BadPattern("invalid or unsupported Perl syntax")

    # Characters and classes of them

    def _escape(self, flags: _Flags) -> list[Node]:
        if self.at_end():
            raise BadPattern("trailing backslash at end of expression")
        places = {"A": BEGIN, "z": END, "b": BOUNDARY, "B": NO_BOUNDARY}
        if self.text[self.at] in places:
            return [Place(places[self.next()])]
        if self.take("Q"):
            return self._quoted(flags)
        found = self._class_escape(flags)
        if found is not None:
            return [Chars(found)]
        char = self._char_escape()
        return [Chars(flags.chars(char.__eq__))]

    def _quoted(self, flags: _Flags) -> list[Node]:
        literal, _, _ = self.text[self.at :].partition(r"\E")
        self.at += len(literal)
        self.take(r"\E")
        return [Chars(flags.chars(char.__eq__)) for char in literal]

    def _class_escape(self, flags: _Flags) -> frozenset[str] | None:
        r"""`\d`, `\PL`, `\p{Greek}` and the like, behind the backslash; None: something else."""
        kind = self.text[self.at]
        if kind.lower() in PERL:
            self.at += 1
            chars = flags.chars(PERL[kind.lower()].__contains__)
            return flags.alphabet - chars if kind.isupper() else chars
        if kind not in "pP":
            return None
        self.at += 1
        return self._unicode_class(flags, negated=kind == "P")

    def _unicode_class(self, flags: _Flags, *, negated: bool) -> frozenset[str]:
        if self.at_end():
            raise BadPattern("invalid character class range")
        if self.take("{"):
            name, brace, _ = self.text[self.at :].partition("}")
            if not brace:
                raise BadPattern("invalid character class range")
            self.at += len(name) + 1
        else:
            name = self.next()
        if name.startswith("^"):
            negated, name = not negated, name[1:]
        test = unicode_class(name)
        if test is None:
            raise BadPattern("invalid character class range")
        chars = flags.chars(test)
        return flags.alphabet - chars if negated else chars

    def _char_escape(self) -> str:
        char = self.next()
        if char in "1234567" and self.text[self.at : self.at + 1] not in _OCTAL:
            raise BadPattern("invalid escape sequence")  # A reference back.
        if char in _OCTAL:
            return self._octal(char)
        if char == "x":
            return self._hexadecimal()
        if char in _ESCAPED:
            return _ESCAPED[char]
        if char.isascii() and char.isalnum():
            raise BadPattern("invalid escape sequence")
        return char

    def _octal(self, digits: str) -> str:
        while len(digits) < 3 and self.text[self.at : self.at + 1] in _OCTAL:
            digits += self.next()
        return chr(int(digits, 8))

    def _hexadecimal(self) -> str:
        if self.take("{"):
            digits, brace, _ = self.text[self.at :].partition("}")
            self.at += len(digits) + len(brace)
            valid = brace and 0 < len(digits) <= 8
        else:
            digits = self.text[self.at : self.at + 2]
            self.at += 2
            valid = len(digits) == 2
        if not valid or not set(digits) <= set(string.hexdigits) or int(digits, 16) > 0x10FFFF:
            raise BadPattern("invalid escape sequence")
        return chr(int(digits, 16))

    def _bracket(self, flags: _Flags) -> frozenset[str]:
        self.take("[")
        negated = self.take("^")
        chars: frozenset[str] = frozenset()
        first = True
        while first or not self.looking_at("]"):
            if self.at_end():
                raise BadPattern("missing closing ]")
            chars |= self._bracket_item(flags)
            first = False
        self.take("]")
        return flags.alphabet - chars if negated else chars

    def _bracket_item(self, flags: _Flags) -> frozenset[str]:
        if self.looking_at("[:") and (end := self.text.find(":]", self.at + 2)) >= 0:
            return self._posix(flags, end)
        if self.looking_at("\\") and len(self.text) > self.at + 1:
            self.at += 1
            found = self._class_escape(flags)
            if found is not None:
                return found
            self.at -= 1
        low = high = self._bracket_char()
        if self.looking_at("-") and not self.looking_at("-]"):
            self.at += 1
            high = self._bracket_char()
            if high < low:
                raise BadPattern("invalid character class range")
        return flags.chars(lambda char: low <= char <= high)

    def _posix(self, flags: _Flags, end: int) -> frozenset[str]:
        name = self.text[self.at + 2 : end]
        self.at = end + 2
        known = POSIX.get(name.removeprefix("^"))
        if known is None:
            raise BadPattern("invalid character class range")
        chars = flags.chars(known.__contains__)
        return flags.alphabet - chars if name.startswith("^") else chars

    def _bracket_char(self) -> str:
        if self.at_end():
            raise BadPattern("missing closing ]")
        if not self.take("\\"):
            return self.next()
        if self.at_end():
            raise BadPattern("trailing backslash at end of expression")
        return self._char_escape()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and (len(text) == 1 or text[0] != "0")


def _count(digits: str) -> int:
    """Large counts are refused anyway, so their digits need not be read."""
    return int(digits) if len(digits) <= 8 else REPEAT_MAX + 1


def _row(nodes: list[Node]) -> Node:
    """Without what matches nothing but the empty name, so that each node left has a cost."""
    costly = tuple(node for node in nodes if node != EMPTY)
    return costly[0] if len(costly) == 1 else Row(costly)


def _repeat(node: Node, least: int, most: int | None) -> Node:
    return EMPTY if node == EMPTY or most == 0 else Repeat(node, least, most)
