"""What brokers pull from the controller, and what the controller learns from their pulls."""

import asyncio
from typing import Any

import pytest

from penstock.cluster.control import ledger as ledger_module
from penstock.cluster.control.controller import Controller
from penstock.cluster.image.follower import ImageFollower
from penstock.cluster.image.stream import ImageNews
from penstock.errors import NotController, StaleBrokerEpoch
from penstock.protocol.messages.image_fetch import ImageFetchResponse


async def pull(
    controller: Controller, follower: ImageFollower, broker_id: int = 1, wait_s: float = 0
) -> ImageNews:
    """As a broker does; the answer is taken."""
    known = controller.image.brokers.get(broker_id)
    request = follower.request(broker_id, known.epoch if known else 5, max_wait_ms=0)
    news = await controller.stream.news(
        request.broker_id, request.broker_epoch, request.controller_epoch, request.seq, wait_s
    )
    follower.take(
        ImageFetchResponse(
            controller_epoch=news.controller_epoch,
            seq=news.seq,
            is_snapshot=news.is_snapshot,
            payload=news.payload,
        )
    )
    return news


async def test_the_first_answer_is_all_and_then_come_changes(cluster: Any) -> None:
    controller, follower = await cluster.start(0, 1), ImageFollower()
    assert (await pull(controller, follower)).is_snapshot
    for count in (1, 2, 3):
        for number in range(count):
            await cluster.create(controller, f"t{count}-{number}")
        news = await pull(controller, follower)
        assert not news.is_snapshot
        assert follower.image == controller.image


async def test_who_is_up_to_date_waits_for_the_next_change(cluster: Any) -> None:
    controller, follower = await cluster.start(0, 1), ImageFollower()
    await pull(controller, follower)
    assert (await pull(controller, follower)).payload == b""
    waiting = asyncio.create_task(pull(controller, follower, wait_s=30))
    await asyncio.sleep(0)
    assert not waiting.done()
    await cluster.create(controller, "t")
    await waiting
    assert follower.image == controller.image


async def test_who_is_too_far_behind_gets_all(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "DELTAS_KEPT", 2)
    controller, follower = await cluster.start(0, 1), ImageFollower()
    await pull(controller, follower)
    for name in ("a", "b", "c"):
        await cluster.create(controller, name)
    assert (await pull(controller, follower)).is_snapshot
    assert follower.image == controller.image


async def test_another_controller_sends_all(cluster: Any) -> None:
    controller, follower = await cluster.start(0, 1), ImageFollower()
    await pull(controller, follower)
    await controller.resign()
    controller = await cluster.elect(1)
    assert (await pull(controller, follower)).is_snapshot
    assert follower.controller_epoch == controller.image.controller_epoch


async def test_a_controller_that_is_over_has_nothing_to_tell(cluster: Any) -> None:
    controller, follower = await cluster.start(0, 1), ImageFollower()
    await pull(controller, follower)
    waiting = asyncio.create_task(pull(controller, follower, wait_s=30))
    await asyncio.sleep(0)
    await controller.resign()
    controller.stream.close()
    with pytest.raises(NotController):
        await waiting
    with pytest.raises(NotController):
        await pull(controller, follower)


async def test_a_predecessor_is_refused_and_a_newcomer_is_not(cluster: Any) -> None:
    controller = await cluster.start(0, 1)
    epoch = controller.image.brokers[1].epoch
    with pytest.raises(StaleBrokerEpoch):
        await controller.stream.news(1, epoch - 1, -1, -1, 0)
    # It has registered, and the controller has not seen that yet.
    news = await controller.stream.news(1, epoch + 1, -1, -1, 0)
    assert news.is_snapshot


async def test_a_change_is_seen_when_all_have_asked_for_what_follows(cluster: Any) -> None:
    controller: Controller = await cluster.start(0, 1, 2)
    followers = {1: ImageFollower(), 2: ImageFollower()}
    await cluster.create(controller, "t")
    seen = asyncio.create_task(controller.stream.until_seen(controller.image.seq, {1, 2}, 30))
    for broker_id, follower in followers.items():
        await pull(controller, follower, broker_id)
        await asyncio.sleep(0)
        assert not seen.done()
    await pull(controller, followers[1], 1)
    await asyncio.sleep(0)
    assert not seen.done()
    await pull(controller, followers[2], 2)
    assert await seen


async def test_a_broker_that_does_not_ask_is_waited_for_in_vain(cluster: Any) -> None:
    controller = await cluster.start(0, 1)
    assert not await controller.stream.until_seen(controller.image.seq, {1}, 0.01)


async def test_nobody_waits_for_a_broker_that_goes(cluster: Any) -> None:
    controller = await cluster.start(0, 1)
    seen = asyncio.create_task(controller.stream.until_seen(controller.image.seq, {1}, 30))
    await asyncio.sleep(0)
    await cluster.stop(1)
    await controller.reconcile_brokers()
    assert await seen


async def test_what_an_earlier_incarnation_has_seen_does_not_count(cluster: Any) -> None:
    controller, follower = await cluster.start(0, 1), ImageFollower()
    await pull(controller, follower)
    await pull(controller, follower)
    assert await controller.stream.until_seen(controller.image.seq, {1}, 0)
    await cluster.stop(1)
    await cluster.register(1)
    await controller.reconcile_brokers()
    assert not await controller.stream.until_seen(0, {1}, 0.01)
