"""Where the answer to a request stands in the row of answers of its connection.

Answers go out in the order of the requests, so each that is not there at once has a place. A task
works on it, or somebody who keeps the place and fills it.
"""

import asyncio
from typing import TYPE_CHECKING, Protocol

from penstock.net.transport import Parts

if TYPE_CHECKING:
    from penstock.net.connection import IncomingConnection


class AnswerToCome(Protocol):
    """What works on an answer without a task."""

    def leave(self) -> None:
        """The peer is gone: nobody is there to be answered."""


class AnswerPlace:
    """The place of one answer in the queue of answers."""

    __slots__ = ("_connection", "holds", "parts", "ready", "task", "waiting")

    def __init__(
        self,
        connection: "IncomingConnection",
        *,
        parts: Parts | None = None,  # None: they are still to come.
        waiting: AnswerToCome | None = None,
        holds: bool = False,
    ) -> None:
        self._connection = connection
        self.parts = parts
        self.ready = parts is not None
        self.waiting = waiting
        self.task: asyncio.Task[Parts | None] | None = None
        self.holds = holds  # Nothing else of this peer is begun before this answer is there.

    def fill(self, parts: Parts | None) -> None:
        """The answer, which goes out once all before it are there; None: there is none."""
        self.parts = parts
        self.ready = True
        self._connection.take_turn()

    def fail(self, reason: str) -> None:
        """There will be no answer, so nothing behind it can be answered either."""
        self._connection.close(reason)

    def give_up(self) -> None:
        """The peer is gone."""
        if self.waiting is not None:
            self.waiting.leave()
        elif self.task is not None:
            # Behind its first step: a task that never began would leave the handler's
            # coroutine behind, which nobody awaits then.
            asyncio.get_running_loop().call_soon(self.task.cancel)
