"""What a client says, mechanism by mechanism: a generator of tokens that takes the answers.

Whoever carries the tokens sends what it yields and sends it what came back; when it stops, the
client is satisfied. SaslRefused means that the broker is not who it should be.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.security.sasl.kerberos_login import GSSAPI, KerberosLogin
from penstock.security.sasl.plain import PLAIN, plain_message
from penstock.security.sasl.scram import HASHES
from penstock.security.sasl.scram_client import ScramClient

MECHANISMS = (PLAIN, *HASHES, GSSAPI)

Tokens = Generator[bytes, bytes, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Who to be, and how to prove it. The password is never printed."""

    mechanism: str
    username: str
    password: str = field(repr=False)
    is_token: bool = False  # A delegation token's id and HMAC (SCRAM alone).


Proof: TypeAlias = Credentials | KerberosLogin


def client_tokens(proof: Proof, *, nonce: str, host: str) -> Tokens:
    """One authentication at a host; the nonce is random and used once."""
    if isinstance(proof, KerberosLogin):
        from penstock.security.sasl.gssapi_client import kerberos_tokens

        yield from kerberos_tokens(proof, host=host)
        return
    if proof.mechanism == PLAIN:
        yield plain_message(proof.username, proof.password)
        return
    client = ScramClient(
        proof.mechanism,
        proof.username,
        proof.password,
        nonce=nonce,
        is_token=proof.is_token,
    )
    challenge = yield client.first()
    signature = yield client.final(challenge)
    client.verify(signature)
