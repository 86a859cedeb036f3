"""A broker that registers anew just before it is elected: someone else is, or nobody."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster import znodes
from penstock.cluster.control.controller import Controller, ElectionKind, Reassignment
from penstock.cluster.control.partition_changes import newly_trusted
from penstock.cluster.image.image import NO_LEADER, PartitionState
from penstock.cluster.transition import Expanded, Shrunk
from penstock.errors import EligibleLeadersNotAvailable, PreferredLeaderNotAvailable
from penstock.meta.store import Op, Result, Set

KEY = ("t", 0)


class Interrupted:
    """A store in which something happens just before the next state is written."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.first: Callable[[], Awaitable[None]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        if self.first and any(isinstance(op, Set) and op.path.endswith("/state") for op in ops):
            first, self.first = self.first, None
            await first()
        return await self._store.multi(ops)


async def bounce(cluster: Any, broker_id: int) -> None:
    await cluster.stop(broker_id)
    await cluster.register(broker_id)


async def governed(cluster: Any, *broker_ids: int) -> tuple[Controller, Interrupted]:
    """The first of these governs."""
    opened: list[Interrupted] = []

    def wrap(store: Any) -> Interrupted:
        opened.append(Interrupted(store))
        return opened[-1]

    for broker_id in broker_ids:
        await cluster.register(broker_id)
    cluster.wrap = wrap
    controller: Controller = await cluster.elect(broker_ids[0])
    return controller, opened[-1]


def state(controller: Controller) -> PartitionState:
    found = controller.image.partition(*KEY)
    assert found is not None
    return found.state


async def assert_stored(cluster: Any, controller: Controller) -> None:
    path = znodes.state_path(*KEY)
    data, stat = await (await cluster.session(0)).get(path)
    assert znodes.decode_state(path, data, stat.version) == state(controller)


async def test_after_a_death_the_next_one_leads(cluster: Any) -> None:
    controller, store = await governed(cluster, 0, 1, 2)
    await cluster.place(controller, "t", (1, 2, 0))
    await cluster.stop(1)
    store.first = partial(bounce, cluster, 2)
    await controller.reconcile_brokers()
    assert (state(controller).leader, state(controller).isr) == (0, (2, 0))
    assert not controller.image.brokers[2].is_active
    await assert_stored(cluster, controller)
    await controller.reconcile_brokers()
    assert (state(controller).leader, state(controller).isr) == (0, (0,))
    assert controller.image.brokers[2].is_active


async def test_whoever_leaves_hands_over_to_the_next_one(cluster: Any) -> None:
    controller, store = await governed(cluster, 0, 1, 2)
    await cluster.place(controller, "t", (1, 2, 0))
    store.first = partial(bounce, cluster, 2)
    assert await controller.begin_shutdown(1) == 0
    assert (state(controller).leader, state(controller).isr) == (0, (2, 0))
    await assert_stored(cluster, controller)


async def test_whoever_leaves_keeps_what_nobody_else_can_lead_now(cluster: Any) -> None:
    controller, store = await governed(cluster, 0, 1, 2)
    await cluster.place(controller, "t", (1, 2))
    store.first = partial(bounce, cluster, 2)
    assert await controller.begin_shutdown(1) == 1
    assert (state(controller).leader, state(controller).leader_epoch) == (1, 0)
    await assert_stored(cluster, controller)


async def test_a_preferred_leader_has_to_wait(cluster: Any) -> None:
    controller, store = await governed(cluster, 0, 1, 2)
    await cluster.place(controller, "t", (2, 1, 0))
    await bounce(cluster, 2)
    await controller.reconcile_brokers()
    await cluster.leader_writes(Expanded(1, frozenset((2,))), "t")
    await controller.refresh_partitions([KEY])
    store.first = partial(bounce, cluster, 2)
    outcomes = await controller.elect_leaders(ElectionKind.PREFERRED, [KEY])
    assert isinstance(outcomes[KEY], PreferredLeaderNotAvailable)
    assert state(controller).leader == 1
    await assert_stored(cluster, controller)


async def test_an_unclean_election_is_off(cluster: Any) -> None:
    controller, _ = await governed(cluster, 0, 1, 2)
    await cluster.place(controller, "t", (1, 2))
    await cluster.leader_writes(Shrunk(1, frozenset((2,))), "t")
    await cluster.stop_all()
    controller, store = await governed(cluster, 0, 2)
    assert state(controller).leader == NO_LEADER
    store.first = partial(bounce, cluster, 2)
    outcomes = await controller.elect_leaders(ElectionKind.UNCLEAN, [KEY])
    assert isinstance(outcomes[KEY], EligibleLeadersNotAvailable)
    assert (state(controller).leader, state(controller).elr) == (NO_LEADER, (1,))
    assert controller.unclean_elections == 0
    await assert_stored(cluster, controller)


async def test_one_that_is_let_in_does_not_hand_over_to_it(cluster: Any) -> None:
    """What one write does: it opens a fence, and gives away what the old incarnation led."""
    controller, store = await governed(cluster, 0, 1, 2)
    await cluster.place(controller, "t", (1, 2, 0))
    await bounce(cluster, 1)
    store.first = partial(bounce, cluster, 2)
    await controller.reconcile_brokers()
    assert (state(controller).leader, state(controller).isr) == (0, (2, 0))
    assert controller.image.active_brokers() == {0, 1}
    await assert_stored(cluster, controller)


async def test_a_move_ends_with_another_leader(cluster: Any) -> None:
    controller, store = await governed(cluster, 0, 1, 2, 3)
    await cluster.place(controller, "t", (0, 1))
    assert await controller.alter_reassignments([Reassignment("t", 0, (2, 3))]) == [None]
    await cluster.leader_writes(Expanded(0, frozenset((2, 3))), "t")
    store.first = partial(bounce, cluster, 2)
    await controller.refresh_partitions([KEY])
    moved = controller.image.partition(*KEY)
    assert moved is not None
    assert (moved.replicas, moved.adding, moved.removing) == ((2, 3), (), ())
    assert (moved.state.leader, sorted(moved.state.isr)) == (3, [2, 3])
    await assert_stored(cluster, controller)


members = st.lists(st.integers(0, 4), unique=True).map(tuple)
leaders = st.sampled_from((NO_LEADER, 0, 1, 2, 3, 4))
partitions = st.builds(
    PartitionState, leader=leaders, leader_epoch=st.just(0), isr=members, min_isr=st.just(1)
)


@given(partitions, partitions)
def test_whoever_gains_anything_is_newly_trusted(
    before: PartitionState, after: PartitionState
) -> None:
    trusted = newly_trusted(before, after)
    for broker in (NO_LEADER, *range(5)):
        joins = broker in after.isr and broker not in before.isr
        is_elected = broker == after.leader and broker not in (before.leader, NO_LEADER)
        assert (broker in trusted) == (joins or is_elected)


@pytest.mark.parametrize("victims", [(2,), (2, 3), (3, 2)])
async def test_several_that_register_anew_are_all_passed_over(
    cluster: Any, victims: tuple[int, ...]
) -> None:
    controller, store = await governed(cluster, 0, 1, 2, 3)
    await cluster.place(controller, "t", (1, 2, 3, 0))
    await cluster.stop(1)

    async def bounce_all() -> None:
        for victim in victims:
            await bounce(cluster, victim)

    store.first = bounce_all
    await controller.reconcile_brokers()
    assert state(controller).leader == (0 if 3 in victims else 3)
    assert controller.image.active_brokers().isdisjoint(victims)
    await assert_stored(cluster, controller)
