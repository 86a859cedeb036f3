"""What a client says, mechanism by mechanism: a generator of tokens that takes the answers.

Whoever carries the tokens sends what it yields and sends it what came back; when it stops, the
client is satisfied. SaslRefused means that the broker is not who it should be.
"""

from collections.abc import Generator
from dataclasses import dataclass, field

from penstock.security.sasl.plain import PLAIN, plain_message
from penstock.security.sasl.scram import HASHES
from penstock.security.sasl.scram_client import ScramClient

MECHANISMS = (PLAIN, *HASHES)

Tokens = Generator[bytes, bytes, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Who to be, and how to prove it. The password is never printed."""

    mechanism: str
    username: str
    password: str = field(repr=False)


def client_tokens(credentials: Credentials, *, nonce: str) -> Tokens:
    """The conversation of one authentication; the nonce is random and used once."""
    if credentials.mechanism == PLAIN:
        yield plain_message(credentials.username, credentials.password)
        return
    client = ScramClient(
        credentials.mechanism, credentials.username, credentials.password, nonce=nonce
    )
    challenge = yield client.first()
    signature = yield client.final(challenge)
    client.verify(signature)
