"""Tokens: what a good one says, and every way a bad one may try to pass for it."""

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from hypothesis import given
from hypothesis import strategies as st
from tests.support.apache_kafka import CURRENT
from tests.support.java import compiled, run_java
from tests.support.outside import needs

from penstock.errors import ConfigError
from penstock.security.principals import Principal
from penstock.security.sasl.bearer import BearerServer, bearer_message, bearer_tokens
from penstock.security.sasl.outcome import Authenticated, Challenge, SaslRefused
from penstock.security.sasl.web_tokens import (
    KeySet,
    ReadToken,
    TokenRules,
    UnknownKey,
    WebTokenRefused,
    read_unsecured,
)

SOURCE = Path(__file__).with_name("WebTokens.java")
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
RSA = rsa.generate_private_key(65537, 2048)
CURVES: dict[str, ec.EllipticCurve] = {
    "ES256": ec.SECP256R1(),
    "ES384": ec.SECP384R1(),
    "ES512": ec.SECP521R1(),
}
ELLIPTIC = {name: ec.generate_private_key(curve) for name, curve in CURVES.items()}
CURVE_NAMES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
CLAIMS = {"sub": "alice", "iat": 1000, "exp": 2000, "aud": "kafka", "iss": "me", "scope": "a b"}
NOW_MS = 1_500_000


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int) -> str:
    return b64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def jwk(algorithm: str, **more: str) -> dict[str, str]:
    if algorithm.startswith("ES"):
        point = ELLIPTIC[algorithm].public_key().public_numbers()
        size = (CURVES[algorithm].key_size + 7) // 8
        x, y = (b64(one.to_bytes(size, "big")) for one in (point.x, point.y))
        return {"kty": "EC", "crv": CURVE_NAMES[algorithm], "x": x, "y": y, "kid": algorithm} | more
    numbers = RSA.public_key().public_numbers()
    return {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e), "kid": "rsa"} | more


def key_set(*keys: dict[str, str]) -> KeySet:
    return KeySet.parse(json.dumps({"keys": list(keys)}))


ALL_KEYS = key_set(jwk("RS256"), *(jwk(name) for name in CURVES))


def signature(algorithm: str, signed: bytes) -> bytes:
    digest: hashes.HashAlgorithm = {
        "256": hashes.SHA256(),
        "384": hashes.SHA384(),
        "512": hashes.SHA512(),
    }[algorithm[2:]]
    if algorithm.startswith("ES"):
        key = ELLIPTIC[algorithm]
        numbers = utils.decode_dss_signature(key.sign(signed, ec.ECDSA(digest)))
        return b"".join(one.to_bytes((key.key_size + 7) // 8, "big") for one in numbers)
    if algorithm.startswith("PS"):
        pss = padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
        return RSA.sign(signed, pss, digest)
    return RSA.sign(signed, padding.PKCS1v15(), digest)


def token(algorithm: str = "ES256", claims: Any = None, **header: object) -> str:
    kid = algorithm if algorithm.startswith("ES") else "rsa"
    head = {"alg": algorithm, "kid": kid} | header
    signed = ".".join(b64(json.dumps(one).encode()) for one in (head, claims or CLAIMS))
    return f"{signed}.{b64(signature(algorithm, signed.encode()))}"


def read(text: str, rules: TokenRules | None = None, now_ms: int = NOW_MS) -> ReadToken:
    return ALL_KEYS.read(text, rules or TokenRules(), now_ms=now_ms)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_of_each_algorithm_is_read(algorithm: str) -> None:
    expected = ReadToken(name="alice", expires_ms=2_000_000, scopes=frozenset("ab"))
    assert read(token(algorithm)) == expected


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_changed_token_is_refused(algorithm: str) -> None:
    head, claims, signed = token(algorithm).split(".")
    root = b64(json.dumps(CLAIMS | {"sub": "root"}).encode())
    for changed in (f"{head}.{root}.{signed}", f"{head}.{claims}.{'A' * len(signed)}"):
        with pytest.raises(WebTokenRefused, match="signature"):
            read(changed)
    with pytest.raises(WebTokenRefused):
        read(f"{head}.{claims}.")


def test_the_public_key_is_not_taken_for_a_shared_secret() -> None:
    public = RSA.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head = {"alg": "HS256", "kid": "rsa"}
    signed = ".".join(b64(json.dumps(one).encode()) for one in (head, CLAIMS))
    forged = b64(hmac.digest(public, signed.encode(), hashlib.sha256))
    with pytest.raises(WebTokenRefused, match="no key of the set is for the algorithm 'HS256'"):
        read(f"{signed}.{forged}")


@pytest.mark.parametrize("algorithm", ["none", "None", "", None, 7, ["ES256"], "ES256K"])
def test_other_algorithms_are_refused_whatever_the_signature(algorithm: object) -> None:
    signed = ".".join(b64(json.dumps(one).encode()) for one in ({"alg": algorithm}, CLAIMS))
    for tail in ("", b64(b"x" * 64)):
        with pytest.raises(WebTokenRefused, match="algorithm"):
            read(f"{signed}.{tail}")


@pytest.mark.parametrize("algorithm", [["ES256"], {}, {"ES256": 1}, None])
def test_an_algorithm_that_is_no_text_is_refused(algorithm: object) -> None:
    for kid in ("ES256", None):
        with pytest.raises(WebTokenRefused, match="algorithm is no text"):
            read(token("ES256", alg=algorithm, kid=kid))


def test_a_key_is_used_only_as_it_says() -> None:
    pinned = key_set(jwk("RS256", alg="PS256"))
    with pytest.raises(WebTokenRefused, match="algorithm 'RS256'"):
        pinned.read(token("RS256"), TokenRules(), now_ms=NOW_MS)
    pinned.read(token("PS256"), TokenRules(), now_ms=NOW_MS)
    with pytest.raises(WebTokenRefused, match="algorithm 'ES256'"):
        ALL_KEYS.read(token("ES256", kid="rsa"), TokenRules(), now_ms=NOW_MS)


def test_a_token_without_a_key_id_is_tried_with_all_and_one_with_another_is_told() -> None:
    assert read(token("ES384", kid=None)).name == "alice"
    with pytest.raises(UnknownKey):
        read(token("ES384", kid="new"))


def test_what_a_token_demands_must_be_known() -> None:
    with pytest.raises(WebTokenRefused, match="crit"):
        read(token(crit=["b64"], b64=False))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": None}, "no end"),
        ({"exp": True}, "no time"),
        ({"exp": "2000"}, "no time"),
        ({"exp": float("inf")}, "no time"),
        ({"exp": 1400}, "expired"),
        ({"iat": None}, "issued"),
        ({"nbf": 1600}, "not valid yet"),
        ({"iss": "you"}, "issuer"),
        ({"aud": "others"}, "audience"),
        ({"aud": ["x", 7]}, "audience"),
        ({"aud": None}, "audience"),
        ({"scope": "b"}, "scope"),
        ({"sub": ""}, "nobody"),
        ({"sub": 7}, "nobody"),
        ({"sub": None}, "nobody"),
        ({"sub": "half \ud800"}, "nobody"),
        ({"iat": 2001}, "before it begins"),
        ({"nbf": 2001}, "before it begins"),
        ({"iat": -1}, "before 1970"),
        ({"scope": ""}, "scopes are not words"),
        ({"scope": ["a", " "]}, "scopes are not words"),
        ({"scope": ["a", "b", "a"]}, "scopes are not words"),
        ({"scope": ["a", 7]}, "scopes are not words"),
    ],
)
def test_what_a_token_says_must_fit_the_rules(changes: dict[str, object], reason: str) -> None:
    rules = TokenRules(
        audiences=frozenset({"kafka", "k2"}), issuer="me", required_scopes=frozenset({"a"})
    )
    read(token(claims=CLAIMS | {"aud": ["other", "k2"]}), rules)
    with pytest.raises(WebTokenRefused, match=reason):
        read(token(claims=CLAIMS | changes), rules)


def test_clocks_may_differ_by_the_skew_and_no_more() -> None:
    text = token(claims=CLAIMS | {"nbf": 1000})
    for now_ms in (970_000, 2_029_999):
        assert read(text, now_ms=now_ms)
    for now_ms in (969_999, 2_030_000):
        with pytest.raises(WebTokenRefused):
            read(text, now_ms=now_ms)


def test_a_claim_that_stands_twice_is_refused() -> None:
    head = b64(b'{"alg":"ES256","kid":"ES256"}')
    claims = b64(b'{"sub":"alice","sub":"root","iat":1000,"exp":2000}')
    signed = f"{head}.{claims}"
    with pytest.raises(WebTokenRefused, match="no JSON"):
        read(f"{signed}.{b64(signature('ES256', signed.encode()))}")


@given(st.text(st.sampled_from("abc.-_=eyJ\n 0{}")) | st.text())
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(WebTokenRefused):
        read(text)


def test_a_token_may_not_be_endless() -> None:
    with pytest.raises(WebTokenRefused, match="too long"):
        read("a" * 70_000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"keys":[]}',
        '{"keys":[7]}',
        '{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}',
        json.dumps({"keys": [jwk("RS256", use="enc")]}),
        json.dumps({"keys": [jwk("RS256", alg="HS256")]}),
        json.dumps({"keys": [jwk("RS256", n=number(3 * 5))]}),
        json.dumps({"keys": [jwk("ES256", x=number(1))]}),
        json.dumps({"keys": [jwk("RS256", n="?")]}),
    ],
)
def test_a_set_without_a_usable_key_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="set of keys"):
        KeySet.parse(text)


def unsecured(claims: object = None, algorithm: str = "none") -> str:
    parts = ({"alg": algorithm}, claims or CLAIMS)
    return ".".join(b64(json.dumps(one).encode()) for one in parts) + "."


def test_a_token_that_nobody_signed_is_believed_only_where_asked_for() -> None:
    assert read_unsecured(unsecured(), TokenRules(), now_ms=NOW_MS).name == "alice"
    with pytest.raises(WebTokenRefused):
        read(unsecured())
    for other in (token(), unsecured(algorithm="ES256"), unsecured() + "AAAA"):
        with pytest.raises(WebTokenRefused):
            read_unsecured(other, TokenRules(), now_ms=NOW_MS)


@pytest.mark.kafka
def test_tokens_of_the_library_kafka_uses_are_read() -> None:
    class_path = compiled(SOURCE, needs(CURRENT))
    for line in run_java(class_path, "WebTokens", *ALGORITHMS).splitlines():
        algorithm, keys, text = line.split("\t")
        rules = TokenRules(audiences=frozenset({"kafka"}))
        assert KeySet.parse(keys).read(text, rules, now_ms=NOW_MS).name == "alice", algorithm


def server() -> BearerServer:
    return BearerServer(read)


def test_a_good_token_makes_a_session_that_ends_with_it() -> None:
    assert server().step(bearer_message(token(), extensions={"trace": "7"})) == Authenticated(
        principal=Principal("User", "alice"), expires_ms=2_000_000
    )
    assert isinstance(server().step(bearer_message(token(), identity="alice")), Authenticated)


def test_a_refused_token_is_told_in_json_and_owned_up_to() -> None:
    side, client = server(), bearer_tokens("a.b.c")
    challenge = side.step(next(client))
    assert challenge == Challenge(token=b'{"status":"invalid_token"}')
    answer = client.send(challenge.token)
    assert answer == b"\x01"
    with pytest.raises(SaslRefused) as caught:
        side.step(answer)
    assert caught.value.told == '{"status":"invalid_token"}'
    with pytest.raises(SaslRefused, match="invalid_token"):
        client.send(b"")


def test_after_a_refused_token_another_cannot_be_tried() -> None:
    side = server()
    side.step(bearer_message("a.b.c"))
    with pytest.raises(SaslRefused):
        side.step(bearer_message(token()))


def test_nobody_takes_the_token_of_another_for_themselves() -> None:
    with pytest.raises(SaslRefused, match="different from the token's"):
        server().step(bearer_message(token(), identity="root"))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Basic x\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01",
        b"n,,\x01auth=Bearer x",
        b"n,alice,\x01auth=Bearer x\x01\x01",
        b"n,,\x01a b=c\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Bearer x\xff\x01\x01",
    ],
)
def test_other_messages_end_it(message: bytes) -> None:
    with pytest.raises(SaslRefused):
        server().step(message)
