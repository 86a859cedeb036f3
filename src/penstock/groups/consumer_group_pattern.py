"""Subscription patterns as machines that read a name once, whatever the pattern.

A pattern comes from a client and is run over every topic of the cluster in the one thread that
serves everybody, so no pattern may take long: the machine keeps the set of all places in the
pattern where the match may be, remembers each step from set to set, and counts the steps that
it had to work out.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from penstock.errors import InvalidRegularExpression
from penstock.groups.consumer_group_pattern_classes import LEGAL
from penstock.groups.consumer_group_pattern_syntax import (
    BEGIN,
    BOUNDARY,
    END,
    BadPattern,
    Chars,
    Choice,
    Node,
    Place,
    Repeat,
    Row,
    parse,
)

PROGRAM_MAX: Final = 10_000  # Instructions; a counted repetition is written out.
EFFORT_MAX: Final = 1_000_000  # Instructions looked at while matching: about a third of a second.
REMEMBERED_MAX: Final = 2_000  # States; the largest hold a good part of the program.

_WORD: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_MATCHED: Final = 0  # The place in the program where a match ends.
_EDGE: Final = ""  # Stands for the character before the first and behind the last.


class _Read(NamedTuple):
    """Go on when the next character is one of these."""

    chars: frozenset[str]
    to: int


class _Look(NamedTuple):
    """Go on when this is such a place."""

    kind: str
    to: int


class _Fork(NamedTuple):
    """Go on at all of these."""

    to: tuple[int, ...]


class _State:
    """Where in the program the match may be, and what kind of character brought it there."""

    __slots__ = ("accepts", "last", "places", "steps")

    def __init__(self, places: frozenset[int], last: str) -> None:
        self.places = places
        self.last = last  # Of a word, not of a word, or the edge: one character stands for all.
        self.steps: dict[str, _State] = {}  # Those taken before.
        self.accepts: bool | None = None  # None: not asked yet.


class TopicPattern:
    """A compiled pattern; `matches` is asked of whole names."""

    def __init__(self, text: str, alphabet: frozenset[str] = LEGAL) -> None:
        """Raises InvalidRegularExpression in the words of Apache Kafka.

        The names that will be asked about consist of characters of the alphabet.
        """
        self.text = text
        self._program: list[_Read | _Look | _Fork | None] = [None]  # At _MATCHED.
        self.effort = 0  # Instructions looked at for the names at hand.
        try:
            start = self._compile(parse(text, alphabet), _MATCHED)
        except BadPattern as error:
            raise _invalid(text, str(error)) from None
        self._start = _State(frozenset([start]), _EDGE)
        self._states = {(self._start.places, _EDGE): self._start}

    def select(self, names: Iterable[str]) -> frozenset[str]:
        """The names that match; raises InvalidRegularExpression when that takes too long."""
        self.effort = 0
        return frozenset(filter(self.matches, names))

    def matches(self, name: str) -> bool:
        state = self._start
        for char in name:
            state = state.steps.get(char) or self._step(state, char)
            if not state.places:
                return False
        if state.accepts is None:
            state.accepts = _MATCHED in self._reach(state, _EDGE)
        return state.accepts

    def _step(self, state: _State, char: str) -> _State:
        places = set()
        for at in self._reach(state, char):
            instruction = self._program[at]
            if isinstance(instruction, _Read) and char in instruction.chars:
                places.add(instruction.to)
        after = self._state(frozenset(places), "w" if char in _WORD else "-")
        state.steps[char] = after
        return after

    def _state(self, places: frozenset[int], last: str) -> _State:
        found = self._states.get((places, last))
        if found is None:
            if len(self._states) >= REMEMBERED_MAX:
                self._forget()
            found = self._states[places, last] = _State(places, last)
        return found

    def _forget(self) -> None:
        self._start.steps.clear()
        self._states = {(self._start.places, _EDGE): self._start}

    def _reach(self, state: _State, following: str) -> set[int]:
        """All places that the match can be at without reading anything."""
        reached: set[int] = set()
        waiting = list(state.places)
        while waiting:
            at = waiting.pop()
            if at in reached:
                continue
            reached.add(at)
            instruction = self._program[at]
            if isinstance(instruction, _Fork):
                waiting += instruction.to
            elif isinstance(instruction, _Look) and _holds(instruction, state.last, following):
                waiting.append(instruction.to)
        self.effort += len(reached)
        if self.effort > EFFORT_MAX:
            raise _invalid(self.text, "it takes too long to match")
        return reached

    # From the tree to the program: each part is compiled with the place that follows it.

    def _compile(self, node: Node, to: int) -> int:
        if isinstance(node, Chars):
            return self._add(_Read(node.chars, to))
        if isinstance(node, Place):
            return self._add(_Look(node.kind, to))
        if isinstance(node, Row):
            for part in reversed(node.nodes):
                to = self._compile(part, to)
            return to
        if isinstance(node, Choice):
            return self._add(_Fork(tuple(self._compile(part, to) for part in node.nodes)))
        return self._repeat(node, to)

    def _repeat(self, repeat: Repeat, to: int) -> int:
        if repeat.most is None:
            at = self._add(None)
            self._program[at] = _Fork((self._compile(repeat.node, at), to))
            to = at
        else:
            end = to
            for _ in range(repeat.most - repeat.least):
                to = self._add(_Fork((self._compile(repeat.node, to), end)))
        for _ in range(repeat.least):
            to = self._compile(repeat.node, to)
        return to

    def _add(self, instruction: _Read | _Look | _Fork | None) -> int:
        if len(self._program) >= PROGRAM_MAX:
            raise BadPattern("expression is too large")
        self._program.append(instruction)
        return len(self._program) - 1


def _holds(look: _Look, before: str, after: str) -> bool:
    if look.kind == BEGIN:
        return before == _EDGE
    if look.kind == END:
        return after == _EDGE
    between = (before in _WORD) != (after in _WORD)
    return between if look.kind == BOUNDARY else not between


def _invalid(text: str, reason: str) -> InvalidRegularExpression:
    return InvalidRegularExpression(
        f"SubscribedTopicRegex `{text}` is not a valid regular expression: {reason}."
    )
