"""Whoever signs web tokens, and the keys that it shows."""

import base64
import json
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int) -> str:
    return encoded(value.to_bytes(32, "big"))


class Issuer:
    """One key, by its id. `now_s` is when tokens are made; they last for a minute."""

    def __init__(self, key_id: str, now_s: int) -> None:
        self.now_s = now_s
        self.key_id = key_id
        self.key = ec.generate_private_key(ec.SECP256R1())

    def public(self) -> dict[str, str]:
        numbers = self.key.public_key().public_numbers()
        point = {"x": number(numbers.x), "y": number(numbers.y)}
        return {"kty": "EC", "crv": "P-256", "kid": self.key_id, "use": "sig", **point}

    def token(self, **claims: Any) -> str:
        head = {"alg": "ES256", "kid": self.key_id}
        said = {"sub": "alice", "iat": self.now_s, "exp": self.now_s + 60, **claims}
        text = ".".join(encoded(json.dumps(part).encode()) for part in (head, said))
        der = self.key.sign(text.encode(), ec.ECDSA(hashes.SHA256()))
        r, s = utils.decode_dss_signature(der)
        return f"{text}.{encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def keys(self) -> str:
        """The set of keys, as it is fetched."""
        return json.dumps({"keys": [self.public()]})
