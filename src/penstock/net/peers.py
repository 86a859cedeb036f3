"""How brokers talk to each other: one port, so that a simulated network can stand in for TCP.

A question goes to a broker by its number; where that broker is found, and over what, is for the
one who answers to this protocol (net/outgoing.py does it over TCP). Nothing here is asked twice:
whoever asks knows whether asking again is safe.
"""

from typing import Protocol

from penstock.errors import PenstockError
from penstock.protocol.apis import Request, Response


class PeerUnreachable(PenstockError):
    """No connection, the connection was lost, or no answer came in time."""

    def __init__(self, reason: str, *, is_refused: bool = False, was_sent: bool = True) -> None:
        super().__init__(reason)
        self.is_refused = is_refused  # Nobody listens there: the process is gone.
        self.was_sent = was_sent  # False: the question certainly never reached the other side.


class Peers(Protocol):
    """The other brokers, by their numbers."""

    async def ask(
        self,
        broker_id: int,
        request: Request,
        *,
        timeout_s: float,
        channel: str = "control",
        version: int | None = None,
    ) -> Response:
        """The answer to the question; raises PeerUnreachable.

        Questions on one channel are answered in the order they were asked; channels do not wait
        for each other. Without a version it is the highest this broker knows.
        """
        ...

    def forget(self, broker_id: int) -> None:
        """Drop all connections to a broker: it moved, or it is gone."""
        ...
