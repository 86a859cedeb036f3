"""The controller of several brokers dies before or after any of its writes; the next one goes on.

A broker is taken out of its partitions, partitions are moved, one move is taken back, leaders are
given back: with small batches, so that each of it takes several writes. The controller is killed at
every one of them in turn, and another broker takes over.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from penstock.cluster.control.controller import Controller, ElectionKind, Reassignment
from penstock.cluster.image.image import NO_LEADER, ClusterImage
from penstock.cluster.image.load import load_topics
from penstock.cluster.transition import Expanded
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import MetaStore, Op, Result

WRITES_MAX = 10
COUNT = 9


class Killed(BaseException):
    """The process is gone; nothing may catch this and go on."""


class Mortal:
    """Counts the writes of one broker from `begin` on, and kills it at one of them."""

    def __init__(self, store: MetaStore, kill_at: int | None, *, after: bool) -> None:
        self._store = store
        self._kill_at = kill_at
        self._after = after
        self.count: int | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        if self.count is None:
            return await self._store.multi(ops)
        self.count += 1
        if self._kill_at is not None and self.count > self._kill_at:
            raise Killed
        if self.count == self._kill_at and not self._after:
            raise Killed
        results = await self._store.multi(ops)
        if self.count == self._kill_at:
            raise Killed
        return results


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteStore, "ops_per_multi_max", 6)


async def began(cluster: Any, kill_at: int | None, *, after: bool) -> tuple[Controller, Mortal]:
    """Four brokers, and a topic on three of them; the last of them leads a third of it."""
    for broker_id in range(4):
        await cluster.register(broker_id)
    mortal = Mortal(await cluster.session(0), kill_at, after=after)
    cluster.wrap = lambda store: mortal if store is cluster.sessions[0] else store
    cluster.min_insync_replicas = 2
    controller: Controller = await cluster.elect(0)
    cluster.wrap = lambda store: store
    orders = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    await cluster.place(controller, "t", *(orders[n % 3] for n in range(COUNT)))
    return controller, mortal


async def live(cluster: Any, controller: Controller) -> None:
    await cluster.stop(2)
    await controller.reconcile_brokers()
    moves = [Reassignment("t", n, (3, 1)) for n in range(0, COUNT, 2)]
    await controller.alter_reassignments(moves)
    await controller.alter_reassignments([Reassignment("t", 0, None)])
    for number in range(2, COUNT, 2):
        leader = controller.image.topics["t"].partitions[number].state.leader
        await cluster.leader_writes(Expanded(leader, frozenset((3,))), "t", number)
    await controller.refresh_partitions([("t", n) for n in range(COUNT)])
    await controller.elect_leaders(ElectionKind.PREFERRED, None)


def check_image(image: ClusterImage) -> None:
    for _, partition in image.all_partitions():
        state = partition.state
        assert {*state.isr, *state.elr} <= set(partition.replicas)
        assert state.leader in state.isr
        assert state.leader in image.active_brokers()


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
@pytest.mark.parametrize("kill_at", range(1, WRITES_MAX + 1))
async def test_another_broker_takes_over_a_sound_cluster_and_can_go_on(
    cluster: Any, kill_at: int, after: bool
) -> None:
    controller, mortal = await began(cluster, kill_at, after=after)
    epochs = {key: p.state.leader_epoch for key, p in controller.image.all_partitions()}
    mortal.count = 0
    with suppress(Killed):
        await live(cluster, controller)
    await cluster.stop(0)
    if cluster.sessions[2].session_state.value != "lost":
        await cluster.stop(2)
    successor = await cluster.elect(1)
    check_image(successor.image)
    stored = await load_topics(await cluster.session(1))
    assert dict(successor.image.topics) == dict(stored.topics)
    for key, partition in successor.image.all_partitions():
        assert partition.state.leader_epoch >= epochs[key]
        assert partition.state.leader != NO_LEADER
    # What was begun can be finished, or taken back.
    under_way = [Reassignment(*key, None) for key in successor.reassignments()]
    assert not any(await successor.alter_reassignments(under_way))
    check_image(successor.image)
    assert successor.reassignments() == {}


async def test_a_life_without_a_crash_takes_enough_writes_to_be_worth_killing(
    cluster: Any,
) -> None:
    controller, mortal = await began(cluster, None, after=False)
    mortal.count = 0
    await live(cluster, controller)
    assert 8 < mortal.count <= WRITES_MAX  # Otherwise some write would never be the last.
    check_image(controller.image)
    assert controller.reassignments() == {}
