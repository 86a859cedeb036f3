"""SCRAM on the server: the RFC's example, its own client, and what a stranger may try."""

import base64
import hashlib
import hmac
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import ConfigError, UnacceptableCredential
from penstock.security.principals import Principal
from penstock.security.sasl.outcome import (
    Authenticated,
    Challenge,
    SaslRefused,
    invalid_credentials,
)
from penstock.security.sasl.scram import HASHES, ScramCredential, ScramKeys
from penstock.security.sasl.scram_client import ScramClient
from penstock.security.sasl.scram_server import ScramServer, ScramUsers, TokenLogin

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
PENCIL = ScramCredential.from_password("SCRAM-SHA-256", "pencil", salt=SALT)
PENCIL_512 = ScramCredential.from_password("SCRAM-SHA-512", "pencil", salt=SALT)
OWNER = Principal("User", "owner")


def users(mechanism: str = "SCRAM-SHA-256") -> ScramUsers:
    credential = PENCIL if mechanism == "SCRAM-SHA-256" else PENCIL_512
    login = TokenLogin(credential=credential, owner=OWNER, expires_ms=77)
    return ScramUsers(
        credential={"user": credential, "a=b,c": credential}.get,
        token={"token-id": login}.get,
        decoy_key=b"secret of the cluster",
    )


def server(mechanism: str = "SCRAM-SHA-256", nonce: str = "server") -> ScramServer:
    return ScramServer(mechanism, users(mechanism), nonce=nonce)


def first_answer(token: bytes, **more: str) -> bytes:
    answer = server(**more).step(token)
    assert isinstance(answer, Challenge)
    return answer.token


def log_in(client: ScramClient, side: ScramServer) -> Authenticated:
    challenge = side.step(client.first())
    assert isinstance(challenge, Challenge)
    outcome = side.step(client.final(challenge.token))
    assert isinstance(outcome, Authenticated)
    client.verify(outcome.token)
    return outcome


def test_the_conversation_of_the_rfc_is_held_to_the_letter() -> None:
    side = server(nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert side.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == Challenge(
        token=f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    )
    proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert side.step(f"c=biws,r={nonce},p={proof}".encode()) == Authenticated(
        token=b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        principal=Principal("User", "user"),
    )


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize("name", ["user", "a=b,c"])
def test_who_knows_the_password_comes_in(mechanism: str, name: str) -> None:
    client = ScramClient(mechanism, name, "pencil", nonce="client")
    outcome = log_in(client, server(mechanism))
    assert outcome.principal == Principal("User", name)
    assert (outcome.expires_ms, outcome.is_by_token) == (None, False)


def test_a_token_makes_its_bearer_the_owner_until_it_ends() -> None:
    client = ScramClient("SCRAM-SHA-256", "token-id", "pencil", nonce="client", is_token=True)
    outcome = log_in(client, server())
    assert outcome.principal == OWNER
    assert (outcome.expires_ms, outcome.is_by_token) == (77, True)


def test_a_token_is_no_user_and_a_user_no_token() -> None:
    for name, is_token in (("token-id", False), ("user", True)):
        client = ScramClient("SCRAM-SHA-256", name, "pencil", nonce="c", is_token=is_token)
        with pytest.raises(SaslRefused):
            log_in(client, server())


def test_unknown_user_and_wrong_password_cannot_be_told_apart() -> None:
    reasons = []
    for name, password in (("user", "wrong"), ("nobody", "wrong"), ("nobody", "pencil")):
        client = ScramClient("SCRAM-SHA-256", name, password, nonce="client")
        with pytest.raises(SaslRefused) as caught:
            log_in(client, server())
        reasons.append((str(caught.value), caught.value.told))
    assert len(set(reasons)) == 1


def test_an_unknown_user_has_the_same_salt_each_time_and_not_that_of_another() -> None:
    salts = [
        first_answer(f"n,,n={name},r=c".encode()).split(b"s=")[1]
        for name in ("ghost", "ghost", "spirit")
    ]
    assert salts[0] == salts[1] != salts[2]


def test_a_credential_with_too_few_rounds_lets_nobody_in() -> None:
    weak = replace(PENCIL, iterations=1)
    known = ScramUsers(credential=lambda _: weak, decoy_key=b"k")
    answer = ScramServer("SCRAM-SHA-256", known, nonce="s").step(b"n,,n=user,r=c")
    assert isinstance(answer, Challenge) and b"i=4096" in answer.token


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"n,,",
        b"n=user,r=c",
        b"p=tls-unique,,n=user,r=c",
        b"y,,n=user,r=c",
        b"n,a=,n=user,r=c",
        b"n,,r=c,n=user",
        b"n,,m=must,n=user,r=c",
        b"n,,n=,r=c",
        b"n,,n=user,r=",
        b"n,,n=us=er,r=c",
        b"n,,n=us=2cer,r=c",
        b"n,,n=user,r=c d",
        b"n,,n=user,r=c,r=d",
        b"n,user,n=user,r=c",
        b"n,a=other,n=user,r=c",
        b"\xff",
    ],
)
def test_a_first_message_that_is_not_as_it_should_be_ends_it(token: bytes) -> None:
    side = server()
    with pytest.raises(SaslRefused):
        side.step(token)
    with pytest.raises(SaslRefused, match="after the last"):
        side.step(b"n,,n=user,r=c")


def final_message(side: ScramServer, **changes: str) -> bytes:
    """A right final message, but for the changes."""
    challenge = side.step(b"n,,n=user,r=client")
    assert isinstance(challenge, Challenge)
    parts = {"c": "biws", "r": "clientserver"} | changes
    without = ",".join(f"{name}={value}" for name, value in parts.items() if name != "p")
    said = b",".join([b"n=user,r=client", challenge.token, without.encode()])
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
    keys = ScramKeys.of("sha256", salted)
    mask = hmac.digest(keys.stored_key, said, "sha256")
    proof = bytes(a ^ b for a, b in zip(keys.client_key, mask, strict=True))
    return f"{without},p={changes.get('p', base64.b64encode(proof).decode())}".encode()


def test_the_message_the_next_test_changes_is_right() -> None:
    side = server()
    assert isinstance(side.step(final_message(side)), Authenticated)


@pytest.mark.parametrize(
    "changes",
    [
        {"r": "client"},
        {"r": "clientserver2"},
        {"c": "eSws"},
        {"c": "cD10bHMtdW5pcXVlLCw="},
        {"p": ""},
        {"p": "AAAA"},
        {"p": base64.b64encode(bytes(32)).decode()},
        {"p": "ä"},
    ],
)
def test_a_final_message_that_was_tampered_with_is_refused(changes: dict[str, str]) -> None:
    side = server()
    with pytest.raises(SaslRefused):
        side.step(final_message(side, **changes))


def test_a_conversation_cannot_be_replayed() -> None:
    side = server()
    message = final_message(side)
    side.step(message)
    with pytest.raises(SaslRefused):
        side.step(message)
    other = server(nonce="another")
    other.step(b"n,,n=user,r=client")
    with pytest.raises(SaslRefused):
        other.step(message)


@settings(max_examples=300)
@given(st.binary(max_size=60), st.binary(max_size=60))
def test_no_random_bytes_come_in_or_break_it(first: bytes, second: bytes) -> None:
    side = server()
    for token in (b"n,,n=user,r=c" if first[:1] < b"\x80" else first, second):
        try:
            assert isinstance(side.step(token), Challenge)
        except SaslRefused:
            continue


def test_a_credential_is_kept_in_kafkas_words() -> None:
    text = PENCIL.text()
    assert [part.partition("=")[0] for part in text.split(",")] == [
        "salt",
        "stored_key",
        "server_key",
        "iterations",
    ]
    assert ScramCredential.from_text(text) == PENCIL


@pytest.mark.parametrize(
    "text",
    [
        "",
        "salt=AA==",
        PENCIL.text() + ",more=1",
        PENCIL.text().replace("4096", "many"),
        PENCIL.text().replace("salt=", "salt=!"),
        PENCIL.text() + ",salt=AA==",
    ],
)
def test_a_credential_that_cannot_be_read_is_told_without_its_text(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ScramCredential.from_text(text)
    assert base64.b64encode(PENCIL.stored_key).decode() not in str(caught.value)


@pytest.mark.parametrize("iterations", [4095, 16385])
def test_rounds_are_bounded(iterations: int) -> None:
    with pytest.raises(UnacceptableCredential, match="iterations"):
        ScramCredential.from_salted("SCRAM-SHA-256", b"x" * 32, salt=SALT, iterations=iterations)


def test_a_password_of_nothing_is_none() -> None:
    with pytest.raises(UnacceptableCredential, match="password"):
        ScramCredential.from_salted("SCRAM-SHA-256", b"", salt=SALT, iterations=4096)


def test_no_secret_is_printed() -> None:
    shown = repr(PENCIL) + repr(users()) + repr(ScramKeys.of("sha256", b"salted"))
    for secret in (PENCIL.salt, PENCIL.stored_key, PENCIL.server_key, b"secret of the cluster"):
        assert repr(secret) not in shown


def test_the_words_for_a_client_name_no_user() -> None:
    assert invalid_credentials("SCRAM-SHA-256") == (
        "Authentication failed during authentication due to invalid credentials "
        "with SASL mechanism SCRAM-SHA-256"
    )
    assert "re-authentication" in invalid_credentials("PLAIN", is_again=True)
