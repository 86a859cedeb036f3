"""SCRAM: the examples of the RFCs, and what a false broker may try."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.security.sasl.outcome import SaslRefused
from penstock.security.sasl.scram_client import ScramClient

NONCE = "rOprNGfwEbeRWgbNEkqO"
# The conversation of RFC 7677, section 3.
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def example() -> ScramClient:
    return ScramClient("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)


def test_the_conversation_of_the_rfc_is_spoken_to_the_letter() -> None:
    client = example()
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert client.final(SERVER_FIRST) == CLIENT_FINAL
    client.verify(SERVER_FINAL)


def test_the_longer_hash_gives_a_longer_proof() -> None:
    final = ScramClient("SCRAM-SHA-512", "user", "pencil", nonce=NONCE).final(SERVER_FIRST)
    assert len(base64.b64decode(final.rpartition(b"p=")[2])) == 64


def test_a_broker_without_the_password_is_found_out() -> None:
    client = example()
    client.final(SERVER_FIRST)
    with pytest.raises(SaslRefused, match="could not prove that it knows the password"):
        client.verify(SERVER_FINAL.replace(b"6rri", b"7rri"))


@pytest.mark.parametrize("answer", [b"v=", b"v=!", b"", b"x", b"\xff\xfe=1", b"e=other-error"])
def test_no_other_last_word_passes_for_a_signature(answer: bytes) -> None:
    client = example()
    client.final(SERVER_FIRST)
    with pytest.raises(SaslRefused):
        client.verify(answer)


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (b"r=another%nonce,s=W22Z,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22Z,i=4096", "nonce"),
        (SERVER_FIRST.replace(b"i=4096", b"i=4095"), "iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=1000001"), "iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=-4096"), "iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=many"), "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=,i=4096", "salt"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=?,i=4096", "cannot be read"),
        (b"m=ext," + SERVER_FIRST, "extension"),
        (b"e=unknown-user", "unknown-user"),
        (b"nonsense", "cannot be read"),
        (SERVER_FIRST + b",i=8192", "cannot be read"),
        (b"\xff", "not text"),
    ],
)
def test_a_challenge_that_is_not_as_it_should_be_is_not_answered(
    challenge: bytes, reason: str
) -> None:
    with pytest.raises(SaslRefused, match=reason):
        example().final(challenge)


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_any_user_name_stays_one_attribute(name: str) -> None:
    first = ScramClient("SCRAM-SHA-256", name, "p", nonce="n0").first().decode()
    written = first.removeprefix("n,,n=").removesuffix(",r=n0")
    assert "," not in written
    assert written.replace("=2C", ",").replace("=3D", "=") == name


@given(st.binary(max_size=200))
def test_whatever_a_broker_sends_ends_in_an_answer_or_an_error_of_ours(message: bytes) -> None:
    client = example()
    for step in (client.final, client.verify):
        try:
            step(message)
        except SaslRefused:
            continue
        pytest.fail("a random message was believed")
