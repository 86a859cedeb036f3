"""Delegation tokens as Kafka's JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster.token_nodes import decode_token, encode_token, read_token, token_path
from penstock.cluster.znodes import NodeUnreadable
from penstock.security.delegation import TokenInformation
from penstock.security.principals import Principal

# What a client names as owner or renewer is stored as it is: any name, and one of no letters.
NAMES = st.text(max_size=20).map(lambda name: Principal("User", name))
KAFKAS = {
    "version": 3,
    "owner": "User%3Aalice",
    "tokenRequester": "User%3Aadmin",
    "renewers": ["User%3Abob"],
    "issueTimestamp": 1,
    "maxTimestamp": 3,
    "expiryTimestamp": 2,
    "tokenId": "abc",
}
TOKEN = TokenInformation(
    token_id="abc",
    owner=Principal("User", "alice"),
    requester=Principal("User", "admin"),
    renewers=(Principal("User", "bob"),),
    issued_ms=1,
    max_ms=3,
    expires_ms=2,
)


def test_a_token_is_written_as_kafka_writes_it() -> None:
    assert json.loads(encode_token(TOKEN)) == KAFKAS
    assert decode_token("/", json.dumps(KAFKAS).encode()) == TOKEN
    assert token_path("abc") == "/delegation_token/tokens/abc"


def test_older_brokers_named_no_requester() -> None:
    older = {**KAFKAS, "version": 1}
    del older["tokenRequester"]
    assert decode_token("/", json.dumps(older).encode()).requester == TOKEN.owner


@given(NAMES, NAMES, st.lists(NAMES, max_size=3))
def test_any_name_survives(owner: Principal, requester: Principal, some: list[Principal]) -> None:
    token = TokenInformation(
        token_id="t",
        owner=owner,
        requester=requester,
        renewers=tuple(some),
        issued_ms=0,
        max_ms=2**63 - 1,
        expires_ms=7,
    )
    assert decode_token("/", encode_token(token)) == token


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        json.dumps({**KAFKAS, "version": 4}).encode(),
        json.dumps({**KAFKAS, "owner": "alice"}).encode(),
        json.dumps({**KAFKAS, "renewers": None}).encode(),
        json.dumps({**KAFKAS, "maxTimestamp": "soon"}).encode(),
    ],
)
def test_what_is_no_token_is_told_and_opens_no_door(
    content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(NodeUnreadable):
        decode_token("/delegation_token/tokens/t", content)
    assert read_token("/delegation_token/tokens/t", content) is None
    assert "passed over" in caplog.text
