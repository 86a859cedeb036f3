"""What a step of authentication can lead to: another token to send, a principal, or a refusal.

A refusal has two sets of words. What the client is told must not say whether the user exists; what
the log is told may. Most mechanisms leave the client's words to `invalid_credentials`.
"""

from dataclasses import dataclass
from typing import Protocol

from penstock.errors import PenstockError
from penstock.security.principals import Principal


class SaslRefused(PenstockError):
    """Authentication failed; `told` is what the other side may know, None: the usual words."""

    def __init__(self, reason: str, *, told: str | None = None) -> None:
        super().__init__(reason)
        self.told = told


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """The exchange goes on: send this, wait for the answer."""

    token: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Authenticated:
    """The exchange is over: send this, and the session belongs to the principal."""

    token: bytes | None = b""  # None: nothing is sent where tokens travel without requests.
    principal: Principal
    expires_ms: int | None = None  # None: the credential has no end of its own.
    is_by_token: bool = False  # Came by a delegation token, and so cannot ask for one.


class SaslServer(Protocol):
    """One authentication of one connection; made anew for each."""

    def step(self, token: bytes) -> Challenge | Authenticated:
        """Take the client's token; SaslRefused ends the exchange."""
        ...


def invalid_credentials(mechanism: str, *, is_again: bool = False) -> str:
    """The words Kafka has for a wrong password and an unknown user alike."""
    what = "re-authentication" if is_again else "authentication"
    return (
        f"Authentication failed during {what} due to invalid credentials "
        f"with SASL mechanism {mechanism}"
    )
