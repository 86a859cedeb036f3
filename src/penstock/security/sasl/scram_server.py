"""SCRAM, the server's side: a challenge, then a verdict and the server's own proof.

An unknown user gets a challenge like everybody else (decoys.py), and fails at the proof: neither
words nor work tell whether the user exists. With the extension `tokenauth=true` the name is the id
of a delegation token and the session its owner's.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.security.principals import USER, Principal
from penstock.security.sasl.decoys import DEFAULT_FORM, TOKEN_FORM, CredentialForm, decoy
from penstock.security.sasl.outcome import Authenticated, Challenge, SaslRefused
from penstock.security.sasl.scram import (
    HASHES,
    ITERATIONS_MIN,
    TOKEN_EXTENSION,
    ScramCredential,
    attributes,
    base64_text,
    decode_base64,
    decode_text,
    exclusive_or,
    unescape_name,
)

_OTHER_IDENTITY = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogin:
    """A delegation token that can be logged in with."""

    credential: ScramCredential
    owner: Principal
    expires_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramUsers:
    """Where a server looks somebody up, under the mechanism it serves."""

    credential: Callable[[str], ScramCredential | None]
    token: Callable[[str], TokenLogin | None] = lambda _: None
    decoy_key: bytes = field(repr=False)  # Secret; the same on all brokers, or salts would differ.
    forms: Sequence[CredentialForm] = (DEFAULT_FORM,)  # Of the credentials that users have.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conversation:
    """What was said so far."""

    credential: ScramCredential
    outcome: Authenticated | None  # None: the name is nobody's.
    header: str
    nonce: str
    said: str


class ScramServer:
    """One authentication; the nonce comes from outside and must never come twice."""

    __slots__ = ("_begun", "_hash", "_is_over", "_nonce", "_users")

    def __init__(self, mechanism: str, users: ScramUsers, *, nonce: str) -> None:
        self._hash = HASHES[mechanism]
        self._users = users
        self._nonce = nonce
        self._begun: _Conversation | None = None
        self._is_over = False

    def step(self, token: bytes) -> Challenge | Authenticated:
        """The client's first message, then its last."""
        if self._is_over:
            raise SaslRefused("a message after the last")
        if self._begun is not None:
            self._is_over = True
            return self._judge(self._begun, decode_text(token))
        self._is_over = True  # A first message that cannot be used is the last one, too.
        challenge = self._challenge(decode_text(token))
        self._is_over = False
        return challenge

    def _challenge(self, message: str) -> Challenge:
        header, bare, identity = _without_header(message)
        found = attributes(bare)
        if list(found)[:2] != ["n", "r"]:  # `m`, which must be understood, would stand first.
            raise SaslRefused("Invalid SCRAM client first message format")
        name = unescape_name(found["n"])
        if not name or not _is_printable(found["r"]):
            raise SaslRefused("Invalid SCRAM client first message format")
        if identity not in ("", name):
            raise SaslRefused("wants to act as another", told=_OTHER_IDENTITY)
        is_token = found.get(TOKEN_EXTENSION, "").lower() == "true"
        credential, outcome = self._look_up(name, is_token=is_token)
        nonce = found["r"] + self._nonce
        answer = f"r={nonce},s={base64_text(credential.salt)},i={credential.iterations}"
        self._begun = _Conversation(
            credential=credential,
            outcome=outcome,
            header=header,
            nonce=nonce,
            said=f"{bare},{answer}",
        )
        return Challenge(token=answer.encode())

    def _look_up(
        self, name: str, *, is_token: bool
    ) -> tuple[ScramCredential, Authenticated | None]:
        forms = (TOKEN_FORM,) if is_token else self._users.forms
        # Made for everybody, so that it costs everybody the same.
        nobody = decoy(name, self._hash, key=self._users.decoy_key, forms=forms)
        if is_token:
            login = self._users.token(name)
            if login is None:
                return nobody, None
            outcome = Authenticated(
                principal=login.owner, expires_ms=login.expires_ms, is_by_token=True
            )
            return login.credential, outcome
        credential = self._users.credential(name)
        if credential is None or credential.iterations < ITERATIONS_MIN:
            return nobody, None
        return credential, Authenticated(principal=Principal(USER, name))

    def _judge(self, begun: _Conversation, message: str) -> Authenticated:
        without_proof, _, proof_text = message.rpartition(",p=")
        found = attributes(without_proof)
        if list(found)[:2] != ["c", "r"]:
            raise SaslRefused("Invalid SCRAM client final message format")
        if found["c"] != base64_text(begun.header.encode()):
            raise SaslRefused("the channel binding is not the one that was announced")
        if not hmac.compare_digest(found["r"].encode(), begun.nonce.encode()):
            raise SaslRefused("Invalid client nonce in the final client message.")
        said = f"{begun.said},{without_proof}".encode()
        is_right = self._is_proof(begun.credential, decode_base64(proof_text), said)
        if not is_right or begun.outcome is None:
            raise SaslRefused("Invalid client credentials")
        signature = hmac.digest(begun.credential.server_key, said, self._hash)
        return Authenticated(
            token=f"v={base64_text(signature)}".encode(),
            principal=begun.outcome.principal,
            expires_ms=begun.outcome.expires_ms,
            is_by_token=begun.outcome.is_by_token,
        )

    def _is_proof(self, credential: ScramCredential, proof: bytes, said: bytes) -> bool:
        signature = hmac.digest(credential.stored_key, said, self._hash)
        if len(proof) != len(signature):
            return False
        client_key = exclusive_or(proof, signature)
        stored_key = hashlib.new(self._hash, client_key).digest()
        return hmac.compare_digest(stored_key, credential.stored_key)


def _without_header(message: str) -> tuple[str, str, str]:
    """The header as sent (`n,,`), the rest, and who the client wants to act as."""
    parts = message.split(",", 2)
    # As Kafka: also a client that could bind to the channel, and says so with `y`, is refused.
    if len(parts) != 3 or parts[0] != "n":
        raise SaslRefused("Invalid SCRAM client first message format")
    flag, wanted, bare = parts
    identity = unescape_name(wanted.removeprefix("a="))
    if wanted and not (wanted.startswith("a=") and identity):
        raise SaslRefused("Invalid SCRAM client first message format")
    return f"{flag},{wanted},", bare, identity


def _is_printable(nonce: str) -> bool:
    return bool(nonce) and nonce.isascii() and nonce.isprintable() and " " not in nonce
