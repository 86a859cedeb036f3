"""What a controller does on what others write to the store, and when the store is away."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock.cluster import znodes
from penstock.cluster.control import following
from penstock.cluster.control.controller import (
    Controller,
    ControlSettings,
    Reassignment,
)
from penstock.cluster.control.controller_election import wait_for_vacancy
from penstock.cluster.image.image import NO_LEADER
from penstock.cluster.transition import Expanded, Shrunk
from penstock.meta.store import (
    Create,
    Delete,
    MetaStore,
    Node,
    Op,
    Result,
    SessionLost,
    Set,
    StoreUnavailable,
)

KEY = ("t", 0)


@asynccontextmanager
async def followed(controller: Controller) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.create_task(controller.follow())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], Any], timeout_s: float = 60) -> None:
    async with asyncio.timeout(timeout_s):
        while True:
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            await asyncio.sleep(0.01)


async def gone(store: MetaStore, path: str) -> bool:
    return (await store.multi_get([path])) == [None]


async def two(cluster: Any, **configs: str) -> Controller:
    controller: Controller = await cluster.start(0, 1)
    await cluster.place(controller, "t", (0, 1), **configs)
    return controller


def leader(controller: Controller) -> int:
    found = controller.image.partition(*KEY)
    assert found is not None
    return found.state.leader


# Nodes below /admin


async def test_a_topic_named_below_delete_topics_is_deleted(cluster: Any) -> None:
    controller = await two(cluster)
    store = await cluster.session(1)
    async with followed(controller):
        await store.multi(
            [Create("/admin/delete_topics/t"), Create("/admin/delete_topics/never-was")]
        )
        await until(lambda: "t" not in controller.image.topics)
        await until(lambda: gone(store, "/admin/delete_topics/never-was"))
        await until(lambda: gone(store, "/admin/delete_topics/t"))


async def test_where_deletion_is_off_the_wish_goes_and_the_topic_stays(cluster: Any) -> None:
    cluster.settings = ControlSettings(deletes_topics=False)
    controller = await two(cluster)
    store = await cluster.session(1)
    async with followed(controller):
        await store.multi([Create("/admin/delete_topics/t")])
        await until(lambda: gone(store, "/admin/delete_topics/t"))
    assert "t" in controller.image.topics


async def test_a_reassignment_written_by_the_classic_tool_is_begun(cluster: Any) -> None:
    controller = await two(cluster)
    store = await cluster.session(1)
    wish = (
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]},'
        b'{"topic":"none","partition":0,"replicas":[1]}]}'
    )
    async with followed(controller):
        await store.multi([Create(znodes.REASSIGN_PARTITIONS, wish)])
        await until(lambda: gone(store, znodes.REASSIGN_PARTITIONS))
        found = controller.image.partition(*KEY)
        assert found is not None and found.replicas == (1,)


async def test_a_preferred_election_is_held_as_the_classic_tool_asks(cluster: Any) -> None:
    controller = await cluster.start(0, 1)
    await cluster.place(controller, "t", (1, 0))
    await cluster.stop(1)
    await controller.reconcile_brokers()
    await cluster.register(1)
    await controller.reconcile_brokers()
    await cluster.leader_writes(Expanded(0, frozenset((1,))), "t")
    await controller.refresh_partitions([KEY])
    assert leader(controller) == 0
    store = await cluster.session(1)
    wish = b'{"version":1,"partitions":[{"topic":"t","partition":0}]}'
    async with followed(controller):
        await store.multi([Create(znodes.PREFERRED_ELECTION, wish)])
        await until(lambda: gone(store, znodes.PREFERRED_ELECTION))
    assert leader(controller) == 1


@pytest.mark.parametrize("path", [znodes.REASSIGN_PARTITIONS, znodes.PREFERRED_ELECTION])
@pytest.mark.parametrize("wish", [b"", b"[]", b'{"partitions":[{"topic":"t"}]}', b"\xff"])
async def test_a_wish_that_cannot_be_read_is_taken_away(
    cluster: Any, path: str, wish: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    controller = await two(cluster)
    store = await cluster.session(1)
    async with followed(controller):
        await store.multi([Create(path, wish)])
        await until(lambda: gone(store, path))
    assert "passed over" in caplog.text


# What others edit


async def test_settings_written_by_somebody_else_are_heard_of(cluster: Any) -> None:
    controller = await two(cluster)
    store = await cluster.session(1)
    path = znodes.config_path("topics", "t")
    async with followed(controller):
        for note in (
            b'{"version":2,"entity_path":"topics/t"}',
            b'{"version":1,"entity_type":"topics","entity_name":"t"}',
            b"rubbish",
            b'{"version":2,"entity_path":"planets/t"}',
            b'{"version":2,"entity_path":"users/a//b"}',
        ):
            await store.multi([Create(znodes.CONFIG_CHANGE_PREFIX, note, sequential=True)])
        config = znodes.encode_config({"min.insync.replicas": "2"})
        await store.multi(
            [
                Set(path, config),
                Create(
                    znodes.CONFIG_CHANGE_PREFIX,
                    b'{"version":2,"entity_path":"topics/t"}',
                    sequential=True,
                ),
            ]
        )
        await until(lambda: controller.image.config("topics", "t"))
        await until(lambda: _min_isr(controller) == 2)
        assert controller.config_version("topics", "t") == (await store.get(path))[1].version


def _min_isr(controller: Controller) -> int:
    found = controller.image.partition(*KEY)
    return found.state.min_isr if found else -1


async def test_a_minimum_that_is_no_number_does_not_keep_a_controller_from_beginning(
    cluster: Any,
) -> None:
    controller = await two(cluster)
    store = await cluster.session(1)
    config = znodes.encode_config({"min.insync.replicas": "many"})
    await store.multi([Set(znodes.config_path("topics", "t"), config)])
    await controller.resign()
    assert _min_isr(await cluster.elect(1)) == 1


async def test_a_topic_removed_from_the_store_is_gone(cluster: Any) -> None:
    controller = await two(cluster)
    store = await cluster.session(1)
    async with followed(controller):
        await store.multi(
            [
                Delete(znodes.state_path("t", 0)),
                Delete(znodes.partition_path("t", 0)),
                Delete(znodes.partitions_path("t")),
                Delete(znodes.topic_path("t")),
            ]
        )
        await until(lambda: "t" not in controller.image.topics)
    await cluster.create(controller, "t")


async def test_a_topic_that_cannot_be_read_is_left_alone_and_told_of(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    controller = await two(cluster)
    store = await cluster.session(1)
    async with followed(controller):
        await store.multi([Create(znodes.topic_path("strange"), b"?")])
        await until(lambda: "strange is left as it was" in caplog.text)
        await cluster.create(controller, "other")
    assert sorted(controller.image.topics) == ["other", "t"]


async def test_brokers_that_come_and_go_are_followed(cluster: Any) -> None:
    controller = await two(cluster)
    async with followed(controller):
        await cluster.stop(1)
        await until(lambda: controller.image.active_brokers() == {0})
        await cluster.register(1)
        await until(lambda: controller.image.active_brokers() == {0, 1})


# The timers


async def test_the_sweep_finds_what_nobody_told(cluster: Any) -> None:
    cluster.settings = ControlSettings(sweep_every_s=0.01)
    controller = await two(cluster)
    async with followed(controller):
        await cluster.leader_writes(Shrunk(0, frozenset((1,))), "t")
        await until(lambda: _isr(controller) == (0,))


def _isr(controller: Controller) -> tuple[int, ...]:
    found = controller.image.partition(*KEY)
    return found.state.isr if found else ()


@pytest.mark.parametrize("is_on", [True, False])
async def test_leaders_are_balanced_when_that_is_on(cluster: Any, is_on: bool) -> None:
    cluster.settings = ControlSettings(
        balances_leaders=is_on, balance_every_s=0.01, sweep_every_s=0.01
    )
    controller = await cluster.start(0, 1)
    await cluster.place(controller, "t", (1, 0))
    await cluster.stop(1)
    await controller.reconcile_brokers()
    await cluster.register(1)
    await controller.reconcile_brokers()
    async with followed(controller):
        await cluster.leader_writes(Expanded(0, frozenset((1,))), "t")
        await until(lambda: set(_isr(controller)) == {0, 1})
        if is_on:
            await until(lambda: leader(controller) == 1)
        else:
            await asyncio.sleep(0.1)
            assert leader(controller) == 0


async def test_a_topic_that_allows_it_gets_a_leader_by_itself(cluster: Any) -> None:
    controller = await two(cluster, unclean_leader_election_enable="true")
    await cluster.leader_writes(Shrunk(0, frozenset((1,))), "t")
    await cluster.stop_all()
    await cluster.register(1)
    controller = await cluster.elect(1)
    assert leader(controller) == NO_LEADER
    async with followed(controller):
        await until(lambda: leader(controller) == 1)
    assert controller.unclean_elections == 1


# The election


async def test_whoever_deletes_the_controllers_node_gets_another_election(cluster: Any) -> None:
    controller = await two(cluster)
    store = await cluster.session(1)
    vacant = asyncio.create_task(wait_for_vacancy(store))
    async with followed(controller) as task:
        await asyncio.sleep(0)
        assert not vacant.done()
        await store.multi([Delete(znodes.CONTROLLER)])
        await asyncio.wait_for(vacant, 60)
        await asyncio.wait_for(task, 60)
    assert controller.is_over
    assert await cluster.elect(1)


async def test_a_controller_ends_with_its_session(cluster: Any) -> None:
    controller = await two(cluster)
    async with followed(controller) as task:
        await asyncio.sleep(0.05)
        await cluster.stop(0)
        await asyncio.wait_for(task, 60)
    assert controller.is_over


async def test_waiting_for_a_vacancy_ends_with_the_session(cluster: Any) -> None:
    await two(cluster)
    waiting = asyncio.create_task(wait_for_vacancy(await cluster.session(1)))
    await asyncio.sleep(0.05)
    await cluster.stop(1)
    with pytest.raises(SessionLost):
        await asyncio.wait_for(waiting, 60)


class Away:
    """A store that can be out of reach for a while."""

    def __init__(self, store: MetaStore) -> None:
        self._store = store
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        self._check()
        return await self._store.multi(ops)

    async def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        self._check()
        return await self._store.multi_get(paths)

    async def children(self, path: str) -> list[str]:
        self._check()
        return await self._store.children(path)

    def _check(self) -> None:
        if self.is_away:
            raise StoreUnavailable("no link")


async def test_while_the_store_is_away_the_controller_pauses_and_stays_controller(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "PAUSE_S", 0.01)
    cluster.settings = ControlSettings(sweep_every_s=0.01)
    for broker_id in (0, 1):
        await cluster.register(broker_id)
    away = Away(await cluster.session(0))
    cluster.wrap = lambda store: away if store is cluster.sessions[0] else store
    controller = await cluster.elect(0)
    await cluster.place(controller, "t", (0, 1))
    async with followed(controller) as task:
        await asyncio.sleep(0.05)
        away.is_away = True
        await cluster.stop(1)
        await asyncio.sleep(0.2)
        assert not task.done() and not controller.is_over
        assert controller.image.active_brokers() == {0, 1}
        away.is_away = False
        await until(lambda: controller.image.active_brokers() == {0} and _isr(controller) == (0,))


async def test_a_move_that_ends_while_the_store_is_away_ends_afterwards(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "PAUSE_S", 0.01)
    cluster.settings = ControlSettings(sweep_every_s=0.01)
    for broker_id in (0, 1):
        await cluster.register(broker_id)
    away = Away(await cluster.session(0))
    cluster.wrap = lambda store: away if store is cluster.sessions[0] else store
    controller = await cluster.elect(0)
    await cluster.place(controller, "t", (0,))
    await controller.alter_reassignments([Reassignment("t", 0, (1,))])
    async with followed(controller):
        away.is_away = True
        cluster.wrap = lambda store: store
        await cluster.leader_writes(Expanded(0, frozenset((1,))), "t")
        await asyncio.sleep(0.05)
        assert controller.reassignments()
        away.is_away = False
        await until(lambda: not controller.reassignments())
    assert leader(controller) == 1


async def test_a_cancellation_that_meets_the_end_of_a_controller_is_not_lost(
    cluster: Any,
) -> None:
    controller = await two(cluster)
    task = asyncio.create_task(controller.follow())
    await asyncio.sleep(0.05)
    store = await cluster.session(1)
    await store.multi([Delete(znodes.CONTROLLER)])
    for _ in range(1000):
        if controller.is_over:
            break
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# A store that takes its time


class Delayed:
    """Every answer comes late, and the first that matters tells somebody that it is on its way."""

    def __init__(self, store: Any, on_read: Callable[[], Any]) -> None:
        self._store = store
        self._on_read = on_read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        found: list[Node | None] = await self._store.multi_get(paths)
        if znodes.state_path(*KEY) in paths:
            await self._on_read()
        await asyncio.sleep(0.05)
        return found

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        await asyncio.sleep(0.05)
        result: list[Result] = await self._store.multi(ops)
        return result


async def test_who_dies_while_a_new_controller_reads_a_slow_store_is_missed_all_the_same(
    cluster: Any,
) -> None:
    before = await two(cluster)
    await cluster.register(2)
    await before.resign()
    is_dead = False

    async def die() -> None:
        nonlocal is_dead
        if not is_dead:
            is_dead = True
            await cluster.stop(0)

    cluster.wrap = lambda store: Delayed(store, die)
    entered: list[Controller] = []
    controller = await Controller.elect(
        await cluster.session(2), 2, now_ms=1000, enter=entered.append
    )
    assert controller is not None
    assert entered == [controller]
    async with followed(controller):
        await until(lambda: leader(controller) == 1)
    assert set(controller.image.brokers) == {1, 2}


async def test_of_two_who_stand_at_a_slow_store_one_is_elected(cluster: Any) -> None:
    await cluster.start(0, 1)
    await cluster.register(2)
    await cluster.stop(0)

    async def nothing() -> None:
        pass

    cluster.wrap = lambda store: Delayed(store, nothing)
    entered: list[Controller] = []
    stores = [await cluster.session(number) for number in (1, 2)]
    elected = await asyncio.gather(
        *(
            Controller.elect(store, number, now_ms=1000, enter=entered.append)
            for number, store in enumerate(stores, start=1)
        )
    )
    assert [found for found in elected if found is not None] == entered
    assert len(entered) == 1
