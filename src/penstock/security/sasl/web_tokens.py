"""JSON web tokens (RFC 7519): who a token is for and until when, if a known key signed it.

The key decides how it may be used, never the token: a key for RSA checks RSA signatures alone, so
nobody can have a public key taken for a shared secret. Tokens without a signature are for
`read_unsecured`, which a setting must ask for. A key set comes as text; who fetches it, and when,
is known elsewhere: `UnknownKey` says that it may be time to.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError, PenstockError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

TOKEN_CHARACTERS_MAX = 64 * 1024
_RSA_BITS_MIN = 2048
_HASHES = {"256": "SHA256", "384": "SHA384", "512": "SHA512"}
_CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
_RSA_ALGORITHMS = tuple(f"{family}{bits}" for family in ("RS", "PS") for bits in _HASHES)
_PART = re.compile(r"[A-Za-z0-9_-]*")


class WebTokenRefused(PenstockError):
    """The token is damaged, expired, for others, or signed by nobody known."""


class UnknownKey(WebTokenRefused):
    """No key of the set has the id that the token names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """What a token must say; `sasl.oauthbearer.*`. Empty: not checked."""

    audiences: frozenset[str] = frozenset()
    issuer: str = ""
    clock_skew_s: int = 30
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    required_scopes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadToken:
    """What a good token says."""

    name: str
    expires_ms: int
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebKey:
    """A public key and the algorithms it is for."""

    key_id: str | None
    algorithms: frozenset[str]
    public: "RSAPublicKey | EllipticCurvePublicKey"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySet:
    """The keys of an issuer (RFC 7517)."""

    keys: tuple[WebKey, ...]

    @classmethod
    def parse(cls, text: str | bytes) -> "KeySet":
        """Keys of other kinds and for other uses are left out; ConfigError when none is left."""
        try:
            listed = json.loads(text)["keys"]
            found = [key for one in listed if (key := _web_key(one)) is not None]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ConfigError("a set of keys (JWKS) cannot be read") from None
        if not found:
            raise ConfigError("a set of keys (JWKS) holds no key for signatures")
        return cls(keys=tuple(found))

    def read(self, token: str, rules: TokenRules, *, now_ms: int) -> ReadToken:
        """Check a token; WebTokenRefused says what is wrong with it, for the log."""
        header, claims, signature, signed = _parts(token)
        algorithm = header.get("alg")
        if "crit" in header:
            raise WebTokenRefused("it demands what is not known (crit)")
        if not isinstance(algorithm, str):
            raise WebTokenRefused("its algorithm is no text")
        for key in self._candidates(header, algorithm):
            if _is_signed(key, algorithm, signature, signed):
                _check_order(claims)
                _check_scopes(claims.get(rules.scope_claim))
                return check_claims(claims, rules, now_ms=now_ms)
        raise WebTokenRefused("the signature is not that of the key")

    def _candidates(self, header: dict[str, Any], algorithm: str) -> Iterable[WebKey]:
        key_id = header.get("kid")
        named = [key for key in self.keys if key_id is None or key.key_id == key_id]
        if not named:
            raise UnknownKey("it names a key that is not known")
        fitting = [key for key in named if algorithm in key.algorithms]
        if not fitting:
            raise WebTokenRefused(f"no key of the set is for the algorithm {algorithm!r}")
        return fitting


def read_unsecured(token: str, rules: TokenRules, *, now_ms: int) -> ReadToken:
    """Believe a token that nobody signed: for developing, and only where a setting asks for it."""
    header, claims, signature, _ = _parts(token)
    if header.get("alg") != "none" or signature:
        raise WebTokenRefused("it is signed, and no keys are known here")
    return check_claims(claims, rules, now_ms=now_ms, needs_issue_time=False)


def check_claims(
    claims: dict[str, Any], rules: TokenRules, *, now_ms: int, needs_issue_time: bool = True
) -> ReadToken:
    """What the token says of itself, against the rules."""
    skew_ms = rules.clock_skew_s * 1000
    expires_ms = _time_ms(claims, "exp")
    if expires_ms is None:
        raise WebTokenRefused("it has no end (exp)")
    if now_ms - skew_ms >= expires_ms:
        raise WebTokenRefused("it has expired")
    if needs_issue_time and _time_ms(claims, "iat") is None:
        raise WebTokenRefused("it does not say when it was issued (iat)")
    not_before_ms = _time_ms(claims, "nbf")
    if not_before_ms is not None and now_ms + skew_ms < not_before_ms:
        raise WebTokenRefused("it is not valid yet")
    if rules.issuer and claims.get("iss") != rules.issuer:
        raise WebTokenRefused("it is of another issuer")
    if rules.audiences and not rules.audiences & _texts(claims.get("aud")):
        raise WebTokenRefused("it is for another audience")
    scopes = _texts(claims.get(rules.scope_claim), splits=True)
    if not rules.required_scopes <= scopes:
        raise WebTokenRefused("it lacks a scope")
    name = claims.get(rules.subject_claim)
    if not isinstance(name, str) or not name.strip() or not _is_sendable(name):
        raise WebTokenRefused(f"it names nobody ({rules.subject_claim})")
    return ReadToken(name=name, expires_ms=expires_ms, scopes=scopes)


def _check_order(claims: dict[str, Any]) -> None:
    """A token that ends before it begins was made by mistake; Kafka refuses it, too."""
    times = {name: _time_ms(claims, name) for name in ("iat", "nbf", "exp")}
    if any(at_ms is not None and at_ms < 0 for at_ms in times.values()):
        raise WebTokenRefused("one of its times is before 1970")
    begins_ms = max((times["iat"] or 0, times["nbf"] or 0))
    if times["exp"] is not None and times["exp"] < begins_ms:
        raise WebTokenRefused("it ends before it begins")


def _check_scopes(value: object) -> None:
    """Each scope is a word of its own, as Kafka has it for tokens that are signed."""
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    words = [one.strip() for one in listed if isinstance(one, str)]
    if len(words) < len(listed) or "" in words or len(set(words)) < len(words):
        raise WebTokenRefused("its scopes are not words that differ")


def _is_sendable(name: str) -> bool:
    """JSON can hold halves of characters, which no answer and no log can."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parts(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    """Header, claims, signature, and what was signed."""
    if len(token) > TOKEN_CHARACTERS_MAX:
        raise WebTokenRefused("it is too long")
    parts = token.split(".")
    if len(parts) != 3:
        raise WebTokenRefused("it has not three parts")
    header, claims = (_object(_decoded(part)) for part in parts[:2])
    return header, claims, _decoded(parts[2]), ".".join(parts[:2]).encode()


def _decoded(part: str) -> bytes:
    if _PART.fullmatch(part) is None:
        raise WebTokenRefused("a part of it is no base64url")
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error:
        raise WebTokenRefused("a part of it is no base64url") from None


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError):
        raise WebTokenRefused("a part of it is no JSON") from None
    if not isinstance(found, dict):
        raise WebTokenRefused("a part of it is no JSON object")
    return found


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers of one token must not see two different claims."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _time_ms(claims: dict[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    # A bool is an int to Python; NaN and the infinities compare with nothing.
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e15 < value < 1e15:
        raise WebTokenRefused(f"its {name} is no time")
    return int(value * 1000)


def _texts(value: object, *, splits: bool = False) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset(value.split() if splits else [value])
    if isinstance(value, list):
        return frozenset(one for one in value if isinstance(one, str))
    return frozenset()


def _is_signed(key: WebKey, algorithm: str, signature: bytes, signed: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, utils

    digest = getattr(hashes, _HASHES[algorithm[2:]])()
    try:
        if isinstance(key.public, ec.EllipticCurvePublicKey):
            half = (key.public.key_size + 7) // 8
            if len(signature) != 2 * half:
                return False
            numbers = (signature[:half], signature[half:])
            der = utils.encode_dss_signature(*(int.from_bytes(one, "big") for one in numbers))
            key.public.verify(der, signed, ec.ECDSA(digest))
        elif algorithm.startswith("PS"):
            salted = padding.PSS(padding.MGF1(digest), digest.digest_size)
            key.public.verify(signature, signed, salted, digest)
        else:
            key.public.verify(signature, signed, padding.PKCS1v15(), digest)
    except InvalidSignature:
        return False
    return True


def _web_key(jwk: dict[str, Any]) -> WebKey | None:
    """None: a key of another kind, or for another use."""
    if jwk.get("use", "sig") != "sig" or "verify" not in jwk.get("key_ops", ["verify"]):
        return None
    if jwk["kty"] == "RSA":
        return _named(jwk, _rsa(jwk), frozenset(_RSA_ALGORITHMS))
    if jwk["kty"] == "EC" and jwk["crv"] in _CURVES:
        return _named(jwk, _elliptic(jwk), frozenset({_CURVES[jwk["crv"]]}))
    return None


def _named(
    jwk: dict[str, Any],
    public: "RSAPublicKey | EllipticCurvePublicKey",
    algorithms: frozenset[str],
) -> WebKey | None:
    if "alg" in jwk:
        algorithms &= {jwk["alg"]}
    if not algorithms:
        return None
    return WebKey(key_id=jwk.get("kid"), algorithms=algorithms, public=public)


def _rsa(jwk: dict[str, Any]) -> "RSAPublicKey":
    from cryptography.hazmat.primitives.asymmetric import rsa

    public = rsa.RSAPublicNumbers(_number(jwk["e"]), _number(jwk["n"])).public_key()
    if public.key_size < _RSA_BITS_MIN:
        raise ValueError("an RSA key that is too short")
    return public


def _elliptic(jwk: dict[str, Any]) -> "EllipticCurvePublicKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    curves = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
    point = (_number(jwk["x"]), _number(jwk["y"]))
    return ec.EllipticCurvePublicNumbers(*point, curves[jwk["crv"]]).public_key()


def _number(text: str) -> int:
    try:
        return int.from_bytes(_decoded(text), "big")
    except WebTokenRefused:
        raise ValueError("a number that cannot be read") from None
