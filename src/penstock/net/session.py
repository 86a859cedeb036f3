"""Who is at the other end of a connection, and what is to be done when they leave.

A connection moves bytes; what the listener, a login or a request tells about the one who sends
them is kept here. Requests without a connection have a session too: what another broker passed
on, and what a broker asks itself.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from penstock.security import principals

ANONYMOUS: Final = str(principals.ANONYMOUS)  # Whoever did not have to say who they are.


class Authentication(Enum):
    """How far somebody is with proving who they are."""

    PENDING = "nothing is proved yet"
    DONE = "the principal is known"  # At once where a listener asks for no proof.
    FAILED = "the proof was refused"


@dataclass(frozen=True, slots=True)
class ClientSoftware:
    """What a client's library calls itself (KIP-511)."""

    name: str
    version: str


class Session:
    """One peer, from its arrival to its leaving."""

    __slots__ = (
        "_on_close",
        "address",
        "authenticated_s",
        "authentication",
        "expires_s",
        "is_by_token",
        "is_closed",
        "listener",
        "login",
        "mechanism",
        "principal",
        "software",
    )

    def __init__(self, *, listener: str, address: str, principal: str = ANONYMOUS) -> None:
        self.listener = listener  # The name of the one the peer came in on.
        self.address = address  # `host:port`; empty: this broker asks itself.
        self.principal = principal
        self.authentication = Authentication.DONE
        # What a listener with SASL keeps here: how far an authentication is (None: there is none
        # under way), by which mechanism the last one was, and on the clock of the event loop when
        # a second one began and when the session ends (None: with the connection).
        self.login: object | None = None
        self.mechanism = ""
        self.authenticated_s = 0.0
        self.expires_s: float | None = None
        self.is_by_token = False  # Whether it was proved by a delegation token.
        self.software: ClientSoftware | None = None  # None: it did not say.
        self.is_closed = False
        self._on_close: dict[Hashable, Callable[[], None]] = {}

    def at_close(self, name: Hashable, act: Callable[[], None]) -> None:
        """Do this when the peer leaves, instead of what was to be done under the same name.

        Of a peer that has left already it is done at once.
        """
        if self.is_closed:
            act()
        else:
            self._on_close[name] = act

    def cancel_at_close(self, name: Hashable) -> None:
        """What was to be done under this name is settled, if there was anything."""
        self._on_close.pop(name, None)

    @property
    def closing_count(self) -> int:
        """How much is to be done when the peer leaves."""
        return len(self._on_close)

    def close(self) -> None:
        """The peer has left."""
        self.is_closed = True
        while self._on_close:  # In order; what is done may settle what was to be done after it.
            self._on_close.pop(next(iter(self._on_close)))()
