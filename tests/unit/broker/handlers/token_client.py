"""Somebody who asks about delegation tokens, having come in one way or another."""

from typing import Any

from penstock.net.session import Session
from penstock.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)

SETTINGS = {
    "delegation.token.secret.key": "key",
    "delegation.token.max.lifetime.ms": "100000",
    "delegation.token.expiry.time.ms": "1000",
}


def session(user: str = "alice", *, listener: str = "SASL", by_token: bool = False) -> Session:
    """On a listener that is not the broker's own: as passed on by a broker that has it."""
    made = Session(listener=listener, address="127.0.0.1", principal=f"User:{user}")
    made.is_by_token = by_token
    return made


# Who gets nothing: on a listener without encryption and proof, and by a token.
STRANGERS = (session("ANONYMOUS", listener="PLAINTEXT"), session(by_token=True))


def create(served: Any, version: int = 3, who: Session | None = None, **fields: Any) -> Any:
    renewers = [
        CreatableRenewers(principal_type=kind, principal_name=name)
        for kind, name in fields.pop("renewers", ())
    ]
    request = CreateDelegationTokenRequest(renewers=renewers, **{"max_lifetime_ms": -1, **fields})
    return served.ask(request, version, session=who or session())
