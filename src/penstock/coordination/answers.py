"""Answers that a machine gives later: named by tickets, handed over as values.

A request such as JoinGroup waits for others. The machine answers it with a ticket and remembers the
ticket, not whoever asked. When the answer is known, perhaps while it works on the request of
somebody else, it gives the answer under that ticket. The shell takes all that was given when the
machine's turn ends, and knows who waits for which ticket (`led_shard.py`).
"""

from collections.abc import Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Ticket(Generic[T]):
    """Stands for one request that is answered with a T; equal to itself alone."""

    __slots__ = ()


class LateAnswer(NamedTuple):
    """What is answered, and to which request."""

    ticket: Ticket[Any]
    response: Any


_NOTHING: Final = ()


class LateAnswers:
    """What a machine has answered since the shell last looked."""

    def __init__(self) -> None:
        self._given: list[LateAnswer] = []

    def give(self, ticket: Ticket[T], response: T) -> None:
        self._given.append(LateAnswer(ticket, response))

    def take(self) -> Sequence[LateAnswer]:
        """All of them, in the order in which they were given; each is taken once."""
        if not self._given:
            return _NOTHING
        taken, self._given = self._given, []
        return taken
