"""Delegation tokens in Kafka's nodes: made, renewed, ended, heard of, and there after a restart."""

from dataclasses import replace
from typing import Any

import pytest

from penstock.cluster.control.settings import ControlSettings
from penstock.cluster.token_nodes import (
    TOKEN_CHANGE_PREFIX,
    decode_token,
    encode_token,
    token_path,
)
from penstock.cluster.znodes import DELEGATION_TOKEN_CHANGES
from penstock.errors import DelegationTokenExpired, DelegationTokenNotFound
from penstock.meta.store import Create, Set
from penstock.security.delegation import TokenInformation
from penstock.security.principals import Principal

ALICE = Principal("User", "alice")


@pytest.fixture(autouse=True)
def secret_key(cluster: Any) -> None:
    cluster.settings = ControlSettings(with_tokens=True)


def token(token_id: str, expires_ms: int = 10) -> TokenInformation:
    return TokenInformation(
        token_id=token_id,
        owner=ALICE,
        requester=ALICE,
        renewers=(),
        issued_ms=0,
        max_ms=100,
        expires_ms=expires_ms,
    )


def until(expires_ms: int) -> Any:
    return lambda found: replace(found, expires_ms=expires_ms)


async def test_tokens_are_made_renewed_and_outlive_a_restart(cluster: Any) -> None:
    controller = await cluster.start(0)
    await controller.create_token(token("a"))
    await controller.create_token(token("b"))
    assert await controller.alter_token("b", until(50)) == token("b", 50)
    for image in (controller.image, (await cluster.restart(0)).image):
        assert image.tokens == {"a": token("a"), "b": token("b", 50)}


async def test_a_token_that_ends_takes_its_node_with_it(cluster: Any) -> None:
    controller = await cluster.start(0)
    await controller.create_token(token("a"))
    await controller.create_token(token("b"))
    assert await controller.alter_token("a", lambda _: None) is None
    await controller.remove_tokens(["a", "b", "nobody's"])
    assert controller.image.tokens == {}
    store = await cluster.session(0)
    assert await store.multi_get([token_path("a"), token_path("b")]) == [None, None]
    with pytest.raises(DelegationTokenNotFound):
        await controller.alter_token("a", until(50))


async def test_a_refused_change_leaves_the_token(cluster: Any) -> None:
    def refuse(_: TokenInformation) -> TokenInformation:
        raise DelegationTokenExpired("too late")

    controller = await cluster.start(0)
    await controller.create_token(token("a"))
    with pytest.raises(DelegationTokenExpired):
        await controller.alter_token("a", refuse)
    assert controller.image.tokens == {"a": token("a")}


async def test_each_change_leaves_a_notice_and_old_ones_go(cluster: Any) -> None:
    controller = await cluster.start(0)
    await controller.create_token(token("a"))
    for number in range(110):
        await controller.alter_token("a", until(11 + number))
    assert len(await (await cluster.session(0)).children(DELEGATION_TOKEN_CHANGES)) == 100


async def test_what_somebody_else_writes_is_heard_of(cluster: Any) -> None:
    controller = await cluster.start(0)
    await controller.create_token(token("a"))
    await (await cluster.session(0)).multi(
        [
            Set(token_path("a"), encode_token(token("a", 60))),
            Create(token_path("b"), encode_token(token("b"))),
            Create(token_path("c"), b"nonsense"),
            *(
                Create(TOKEN_CHANGE_PREFIX, name, sequential=True)
                for name in (b"a", b"b", b"c", b"/", b"\xff", b"")
            ),
        ]
    )
    await controller.hear_of_tokens()
    assert controller.image.tokens == {"a": token("a", 60), "b": token("b")}
    assert (await cluster.restart(0)).image.tokens == {"a": token("a", 60), "b": token("b")}


async def test_a_write_past_the_controller_is_not_lost(cluster: Any) -> None:
    controller = await cluster.start(0)
    await controller.create_token(token("a"))
    store = await cluster.session(0)
    await store.multi([Set(token_path("a"), encode_token(replace(token("a"), renewers=(ALICE,))))])
    await controller.alter_token("a", until(70))
    (node,) = await store.multi_get([token_path("a")])
    assert decode_token("/", node[0]) == replace(token("a", 70), renewers=(ALICE,))


async def test_without_a_secret_key_tokens_are_left_where_they_are(cluster: Any) -> None:
    controller = await cluster.start(0)
    await controller.create_token(token("a"))
    cluster.settings = ControlSettings()
    assert (await cluster.restart(0)).image.tokens == {}
