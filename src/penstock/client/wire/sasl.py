"""SASL over a connection of the wire client; the steps themselves are in `security`."""

import secrets
from typing import Protocol

from penstock.client.errors import AuthenticationError
from penstock.protocol.apis import Request, Response
from penstock.security.sasl.client_exchange import NONCE_BYTES, client_exchange
from penstock.security.sasl.client_tokens import Proof
from penstock.security.sasl.outcome import SaslRefused


class Ask(Protocol):
    """Sends a request, in the highest version both speak unless one is given."""

    def __call__(self, message: Request, version: int | None = None) -> Response:
        """The answer."""
        ...


def authenticate(proof: Proof, ask: Ask, *, host: str) -> int:
    """Prove to the broker on this host who we are; the session's ms, 0 for ever (KIP-368)."""
    exchange = client_exchange(proof, nonce=secrets.token_urlsafe(NONCE_BYTES), host=host)
    question = next(exchange)
    while True:
        answer = ask(question.request, question.version)
        try:
            question = exchange.send(answer)
        except StopIteration as done:
            return int(done.value)
        except SaslRefused as refused:
            raise AuthenticationError(str(refused)) from (refused.__cause__ or refused)
