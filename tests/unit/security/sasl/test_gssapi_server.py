"""The steps of RFC 4752 on the server's side, with a context whose words are known beforehand.

What a real library makes of real tickets is shown against a ticket service, in
tests/integration/security/test_kerberos.py.
"""

from dataclasses import dataclass

import pytest

from penstock.security.kerberos_names import KerberosNames
from penstock.security.sasl.gssapi_server import OFFER, GssapiServer
from penstock.security.sasl.outcome import Authenticated, Challenge, SaslRefused

NAMES = KerberosNames.parse(["DEFAULT"], default_realm="R")


@dataclass
class Wrapped:
    message: bytes


@dataclass
class Context:
    """Believes every ticket, and seals a message by turning it around."""

    answer: bytes | None = None
    initiator_name: str = "alice@R"
    complete: bool = True

    def step(self, _token: bytes) -> bytes | None:
        return self.answer

    def wrap(self, message: bytes, _encrypt: bool) -> Wrapped:
        return Wrapped(message[::-1])

    def unwrap(self, message: bytes) -> Wrapped:
        return Wrapped(message[::-1])


def server(context: Context) -> GssapiServer:
    return GssapiServer(context, failure=ValueError, names=NAMES)


def test_a_client_that_asks_for_no_proof_is_offered_the_layer_at_once() -> None:
    steps = server(Context())
    assert steps.step(b"ticket") == Challenge(token=OFFER[::-1])
    outcome = steps.step((OFFER + b"alice@R")[::-1])
    assert isinstance(outcome, Authenticated)
    assert (str(outcome.principal), outcome.token) == ("User:alice", None)


def test_a_client_that_asks_for_proof_says_nothing_before_the_layer() -> None:
    steps = server(Context(answer=b"proof"))
    assert steps.step(b"ticket") == Challenge(token=b"proof")
    assert steps.step(b"") == Challenge(token=OFFER[::-1])
    assert isinstance(steps.step(OFFER[::-1]), Authenticated)


def test_whom_the_client_would_like_to_be_does_not_count() -> None:
    steps = server(Context())
    steps.step(b"ticket")
    outcome = steps.step((OFFER + b"admin@R")[::-1])
    assert isinstance(outcome, Authenticated)
    assert str(outcome.principal) == "User:alice"


@pytest.mark.parametrize(
    ("context", "tokens"),
    [
        (Context(), [b""]),
        (Context(complete=False), [b"ticket"]),
        (Context(answer=b"proof"), [b"ticket", b"more"]),
        (Context(), [b"ticket", bytes([4, 0, 0, 0])[::-1]]),  # Encryption by GSSAPI.
        (Context(), [b"ticket", b"\1"]),
        (Context(), [b"ticket", b""]),
        (Context(initiator_name="alice@OTHER"), [b"ticket"]),
        (Context(initiator_name="a/b/c@R"), [b"ticket"]),
        (Context(initiator_name="admin\\/x@R"), [b"ticket"]),
    ],
)
def test_everything_else_is_refused(context: Context, tokens: list[bytes]) -> None:
    steps = server(context)
    for token in tokens[:-1]:
        steps.step(token)
    with pytest.raises(SaslRefused):
        steps.step(tokens[-1])
