"""PLAIN: one message, and nothing learned from being refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.security.principals import Principal
from penstock.security.sasl.client_tokens import Credentials, client_tokens
from penstock.security.sasl.outcome import Authenticated, SaslRefused
from penstock.security.sasl.plain import PlainServer, PlainUsers, plain_message

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="broker" password="b" user_broker="b" user_alice="al;ice" user_Bo.b-2="x";'
)
USERS = PlainUsers.from_jaas(JAAS)


@pytest.mark.parametrize(("name", "password"), [("alice", "al;ice"), ("broker", "b")])
def test_users_of_the_jaas_line_come_in(name: str, password: str) -> None:
    credentials = Credentials(mechanism="PLAIN", username=name, password=password)
    (token,) = client_tokens(credentials, nonce="", host="h")
    assert PlainServer(USERS).step(token) == Authenticated(principal=Principal("User", name))


def test_unknown_user_and_wrong_password_are_told_the_same() -> None:
    told = set()
    for name, password in (("alice", "x"), ("nobody", "x"), ("nobody", "b")):
        with pytest.raises(SaslRefused) as caught:
            PlainServer(USERS).step(plain_message(name, password))
        told.add((str(caught.value), caught.value.told))
    assert told == {
        ("wrong user or password", "Authentication failed: Invalid username or password")
    }


def test_nobody_acts_as_another() -> None:
    assert PlainServer(USERS).step(b"alice\0alice\0al;ice")
    with pytest.raises(SaslRefused, match="another"):
        PlainServer(USERS).step(b"broker\0alice\0al;ice")


@pytest.mark.parametrize(
    "token",
    [b"", b"\0", b"\0\0", b"\0alice\0", b"\0\0al;ice", b"\0alice\0al;ice\0more", b"\xff\0a\0b"],
)
def test_other_messages_are_refused(token: bytes) -> None:
    with pytest.raises(SaslRefused):
        PlainServer(USERS).step(token)


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0a\0b\0c\0d\0e", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0al;ice", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\xff\0a\0b", "Authentication failed: Invalid username or password"),
    ],
)
def test_what_is_no_login_is_told_in_the_words_of_kafka(token: bytes, told: str) -> None:
    with pytest.raises(SaslRefused) as caught:
        PlainServer(USERS).step(token)
    assert caught.value.told == told


@given(st.binary(max_size=40))
def test_random_bytes_do_not_come_in(token: bytes) -> None:
    with pytest.raises(SaslRefused):
        PlainServer(USERS).step(token)


def test_a_user_needs_a_name_and_passwords_are_not_shown() -> None:
    with pytest.raises(ConfigError, match="no name"):
        PlainUsers.from_jaas('user_="x"')
    assert "ice" not in repr(USERS)
