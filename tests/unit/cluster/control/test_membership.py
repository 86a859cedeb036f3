"""Brokers come and go: fences, elections, and who is never elected."""

import asyncio
from typing import Any

import pytest

from penstock.cluster import znodes
from penstock.cluster.control.controller import Controller, TopicToCreate
from penstock.cluster.image.image import NO_LEADER, PartitionState
from penstock.cluster.image.load import find_states, load_topics
from penstock.cluster.registration import load_fence, register, withdraw
from penstock.cluster.transition import Expanded, Shrunk
from penstock.cluster.znodes import FenceState, PreviousShutdown
from penstock.errors import StaleBrokerEpoch
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import Set

LOSSY = PreviousShutdown.LOSSY


def states(controller: Controller, topic: str = "t") -> list[PartitionState]:
    return [p.state for p in controller.image.topics[topic].partitions.values()]


def leaders(controller: Controller, topic: str = "t") -> list[int]:
    return [state.leader for state in states(controller, topic)]


async def stored(cluster: Any, topic: str = "t") -> list[PartitionState]:
    """As `states`, whatever the controller has heard."""
    found = await find_states(await cluster.session(0), [(topic, n) for n in range(3)])
    return list(found.values())


async def three(cluster: Any, *, min_isr: int = 2) -> Controller:
    """Three brokers and a topic with its three replicas in the tutorial's order."""
    controller: Controller = await cluster.start(0, 1, 2, min_insync_replicas=min_isr)
    layout = {0: (2, 0, 1), 1: (0, 1, 2), 2: (1, 2, 0)}
    new = TopicToCreate(
        name="t", partition_count=-1, replication_factor=-1, configs={}, assignments=layout
    )
    (made,) = await controller.create_topics([new], validate_only=False)
    assert not isinstance(made, Exception)
    return controller


async def test_registered_brokers_become_active_with_their_epochs(cluster: Any) -> None:
    registrations = [await cluster.register(n) for n in (0, 1)]
    controller = await cluster.elect(0)
    assert controller.image.active_brokers() == {0, 1}
    for registration in registrations:
        broker = controller.image.brokers[registration.broker_id]
        assert broker.epoch == registration.epoch
        assert broker.fence_version == registration.fence_version + 1
    store = await cluster.session(0)
    _, stat = await store.get(znodes.fence_path(1))
    assert stat.version == controller.image.brokers[1].fence_version


async def test_when_a_broker_dies_the_next_in_sync_replica_leads(cluster: Any) -> None:
    controller = await three(cluster)
    assert leaders(controller) == [2, 0, 1]
    await cluster.stop(2)
    await controller.reconcile_brokers()
    assert leaders(controller) == [0, 0, 1]
    assert [state.isr for state in states(controller)] == [(0, 1), (0, 1), (1, 0)]
    assert [state.leader_epoch for state in states(controller)] == [1, 0, 0]
    assert sorted(controller.image.brokers) == [0, 1]
    kept = await load_fence(await cluster.session(0), 2)
    assert kept is not None and kept.state is FenceState.FENCED


async def test_a_broker_that_returns_follows_and_does_not_lead(cluster: Any) -> None:
    controller = await three(cluster)
    await cluster.stop(2)
    await controller.reconcile_brokers()
    await cluster.register(2)
    await controller.reconcile_brokers()
    assert controller.image.active_brokers() == {0, 1, 2}
    assert leaders(controller) == [0, 0, 1]
    assert all(2 not in state.isr for state in states(controller))


async def test_a_broker_that_bounced_unseen_loses_what_its_old_life_had(cluster: Any) -> None:
    """Gone and back before the controller looked: the node is there, but it is another."""
    controller = await three(cluster)
    before = controller.image.brokers[2]
    await cluster.stop(2)
    await cluster.register(2)
    await controller.reconcile_brokers()
    assert controller.image.brokers[2].epoch > before.epoch
    assert leaders(controller) == [0, 0, 1]
    assert all(2 not in state.isr for state in states(controller))


async def test_below_the_minimum_the_departed_stay_eligible_and_return(cluster: Any) -> None:
    controller = await three(cluster)
    for broker_id in (2, 1):
        await cluster.stop(broker_id)
        await controller.reconcile_brokers()
    assert [(s.leader, s.isr, s.elr) for s in states(controller)] == [(0, (0,), (1,))] * 3
    controller = await cluster.restart(1)
    # Broker 0 is gone now too; broker 1 has every committed record and leads.
    assert [(s.leader, s.isr, s.elr) for s in states(controller)] == [(1, (1,), (0,))] * 3


async def test_who_was_not_eligible_is_not_elected(cluster: Any) -> None:
    controller = await three(cluster)
    for broker_id in (2, 1):
        await cluster.stop(broker_id)
        await controller.reconcile_brokers()
    controller = await cluster.restart(2)
    assert leaders(controller) == [NO_LEADER] * 3
    assert [(s.isr, s.elr) for s in states(controller)] == [((), (0, 1))] * 3
    await cluster.register(0)
    await controller.reconcile_brokers()
    assert leaders(controller) == [0] * 3


async def test_a_broker_that_lost_records_is_neither_in_sync_nor_eligible(cluster: Any) -> None:
    controller = await three(cluster)
    await cluster.stop(2)
    await controller.reconcile_brokers()
    await cluster.stop(1)
    await cluster.register(1, prev_shutdown=LOSSY)
    await controller.reconcile_brokers()
    assert [(s.leader, s.isr, s.elr, s.lke) for s in states(controller)] == [
        (0, (0,), (), (1,))
    ] * 3


async def test_a_loss_counts_where_leaders_added_the_broker_unheard(cluster: Any) -> None:
    """It came back, leaders took it into their in-sync sets, and no notice of that arrived."""
    controller = await three(cluster)
    await cluster.stop(2)
    await cluster.register(2)
    await controller.reconcile_brokers()
    for partition, leader in enumerate(leaders(controller)):
        await cluster.leader_writes(Expanded(leader, frozenset({2})), "t", partition)
    assert all(2 in state.isr for state in await stored(cluster))
    await cluster.stop(2)
    await cluster.register(2, prev_shutdown=LOSSY)
    await controller.reconcile_brokers()
    assert [(s.leader, s.isr, s.elr, s.lke) for s in await stored(cluster)] == [
        (0, (0, 1), (), ()),
        (0, (0, 1), (), ()),
        (1, (1, 0), (), ()),
    ]
    assert await stored(cluster) == states(controller)


async def test_a_loss_counts_where_leaders_made_the_broker_eligible_unheard(cluster: Any) -> None:
    controller = await three(cluster)
    for broker_id in (2, 1):
        await cluster.stop(broker_id)
        await controller.reconcile_brokers()
    await cluster.register(2)
    await controller.reconcile_brokers()
    for partition in range(3):
        await cluster.leader_writes(Expanded(0, frozenset({2})), "t", partition)
        await cluster.leader_writes(Shrunk(0, frozenset({2})), "t", partition)
    assert [(s.isr, s.elr) for s in await stored(cluster)] == [((0,), (2,))] * 3
    await cluster.stop(2)
    await cluster.register(2, prev_shutdown=LOSSY)
    await controller.reconcile_brokers()
    assert [(s.isr, s.elr, s.lke) for s in await stored(cluster)] == [((0,), (), (2,))] * 3


async def test_a_loss_counts_where_the_broker_was_added_while_a_controller_took_over(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new controller has read the partitions; then the broker joins, goes and returns."""
    controller = await three(cluster)
    await cluster.stop(2)
    await cluster.register(2)
    await controller.reconcile_brokers()
    await controller.resign()

    async def load_late(store: Any) -> Any:
        loaded = await load_topics(store)
        await cluster.leader_writes(Expanded(0, frozenset({2})), "t", 1)
        await cluster.stop(2)
        await cluster.register(2, prev_shutdown=LOSSY)
        return loaded

    monkeypatch.setattr("penstock.cluster.control.controller.load_topics", load_late)
    controller = await cluster.elect(1)
    assert [s.isr for s in await stored(cluster)] == [(0, 1), (0, 1), (1, 0)]
    assert await stored(cluster) == states(controller)


async def test_a_disk_that_fails_counts_where_a_leader_added_the_broker_unheard(
    cluster: Any,
) -> None:
    controller = await three(cluster)
    await cluster.stop(2)
    registration = await cluster.register(2)
    await controller.reconcile_brokers()
    await cluster.leader_writes(Expanded(0, frozenset({2})), "t", 1)
    assert (await stored(cluster))[1].isr == (0, 1, 2)
    await controller.remove_lost_replicas(2, registration.epoch, [("t", 1)])
    assert (await stored(cluster))[1].isr == states(controller)[1].isr == (0, 1)


async def test_a_lone_broker_leads_again_with_a_new_epoch(cluster: Any) -> None:
    controller = await cluster.start(0)
    await cluster.create(controller, "t", 3)
    for restart in (1, 2):
        controller = await cluster.restart(0, prev_shutdown=PreviousShutdown.CRASH)
        assert [(s.leader, s.leader_epoch, s.isr) for s in states(controller)] == [
            (0, restart, (0,))
        ] * 3
        assert all(s.leader_recovery_state == 0 for s in states(controller))


async def test_a_lone_broker_after_a_power_cut_leads_and_says_so(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    controller = await cluster.start(0)
    await cluster.create(controller, "t", 3)
    controller = await cluster.restart(0, prev_shutdown=LOSSY)
    assert [(s.leader, s.isr, s.leader_recovery_state) for s in states(controller)] == [
        (0, (0,), 1)
    ] * 3
    assert "UNCLEAN ELECTION: 3 partition(s) of topic t are led by broker 0" in caplog.text


async def test_more_partitions_than_fit_one_write_are_settled_all_the_same(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteStore, "ops_per_multi_max", 6)
    controller = await cluster.start(0)
    await cluster.create(controller, "t", 11)
    controller = await cluster.restart(0)
    assert leaders(controller) == [0] * 11
    assert all(state.leader_epoch >= 1 for state in states(controller))
    assert controller.image.brokers[0].is_active


async def test_the_image_never_shows_an_inactive_leader(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteStore, "ops_per_multi_max", 4)
    controller = await three(cluster)
    seen: list[set[int]] = []

    def check(image: Any) -> None:
        for _, partition in image.all_partitions():
            if partition.state.leader not in image.active_brokers():
                seen.append({partition.state.leader})

    controller.subscribe(check)
    await cluster.stop(1)
    await cluster.register(1)
    await controller.reconcile_brokers()
    assert all(leader == {1} for leader in seen)  # Only in the moment of its going.
    assert controller.image.active_brokers() == {0, 1, 2}
    assert set(leaders(controller)) <= {0, 2}


async def test_a_broker_that_shuts_down_hands_over_first(cluster: Any) -> None:
    controller = await three(cluster)
    registration = controller.image.brokers[2]
    await controller.begin_shutdown(2)
    assert leaders(controller) == [0, 0, 1]
    assert all(2 not in state.isr for state in states(controller))
    assert not controller.image.brokers[2].is_active
    assert controller.image.brokers[2].epoch == registration.epoch
    # Nobody can put it back into an in-sync set: its fence has another version now.
    assert controller.image.brokers[2].fence_version == registration.fence_version + 1


async def test_the_last_replica_keeps_what_nobody_can_take(cluster: Any) -> None:
    registration = await cluster.register(0)
    controller = await cluster.elect(0)
    await cluster.create(controller, "t", 2)
    await controller.begin_shutdown(0)
    assert [(s.leader, s.isr, s.leader_epoch) for s in states(controller)] == [(0, (0,), 0)] * 2
    store = await cluster.session(0)
    await controller.resign()
    await withdraw(store, registration)
    assert await store.children(znodes.BROKER_IDS) == []
    assert await store.multi_get([znodes.CONTROLLER]) == [None]
    controller = await cluster.restart(0)
    assert [(s.leader, s.isr, s.leader_epoch) for s in states(controller)] == [(0, (0,), 1)] * 2


async def test_a_leader_that_wrote_first_is_read_and_obeyed(cluster: Any) -> None:
    """The leader of partition 0 shrank its in-sync set; the controller did not know yet."""
    controller = await three(cluster)
    store = await cluster.session(1)
    shrunk = states(controller)[0]._replace(isr=(2, 0))
    await store.multi([Set(znodes.state_path("t", 0), znodes.encode_state(shrunk), 0)])
    await cluster.stop(2)
    await controller.reconcile_brokers()
    after = states(controller)[0]
    assert (after.leader, after.isr, after.elr, after.partition_epoch) == (0, (0,), (2,), 2)
    data, stat = await store.get(znodes.state_path("t", 0))
    assert znodes.decode_state("/x", data, stat.version) == after


async def test_the_controller_takes_over_what_leaders_wrote(cluster: Any) -> None:
    controller = await three(cluster)
    store = await cluster.session(1)
    shrunk = states(controller)[1]._replace(isr=(0, 1))
    await store.multi([Set(znodes.state_path("t", 1), znodes.encode_state(shrunk), 0)])
    await controller.refresh_partitions([("t", 0), ("t", 1), ("none", 0)])
    assert [s.isr for s in states(controller)] == [(2, 0, 1), (0, 1), (1, 2, 0)]
    assert states(controller)[1].partition_epoch == 1


async def test_a_fence_written_by_a_registration_meanwhile_is_read_again(cluster: Any) -> None:
    controller = await three(cluster)
    await cluster.stop(2)
    store = await cluster.session(0)
    original = store.multi
    met = False

    async def meddle(ops: Any) -> Any:
        nonlocal met
        if not met and any(op.path == znodes.fence_path(2) for op in ops):
            met = True
            await register(await cluster.session(2), cluster.newcomer(2), now_ms=1, wait_s=0)
        return await original(ops)

    store.multi = meddle
    await controller.reconcile_brokers()
    assert met
    assert controller.image.active_brokers() == {0, 1, 2}
    assert all(2 not in state.isr for state in states(controller))


async def test_the_controller_follows_comings_and_goings_by_itself(cluster: Any) -> None:
    controller = await three(cluster)
    following = asyncio.create_task(controller.follow())

    async def until(condition: Any) -> None:
        changed = asyncio.Event()
        stop = controller.subscribe(lambda image: changed.set())
        async with asyncio.timeout(60):
            while not condition():
                await changed.wait()
                changed.clear()
        stop()

    await cluster.stop(2)
    await until(lambda: leaders(controller) == [0, 0, 1])
    await cluster.register(2)
    await until(lambda: controller.image.active_brokers() == {0, 1, 2})
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_a_crash_is_not_a_loss(cluster: Any) -> None:
    controller = await three(cluster)
    for broker_id in (2, 1):
        await cluster.stop(broker_id)
        await controller.reconcile_brokers()
    await cluster.register(1, prev_shutdown=PreviousShutdown.CRASH)
    await controller.reconcile_brokers()
    assert [(s.isr, s.elr) for s in states(controller)] == [((0,), (1,))] * 3


# Leaving, and being gone


async def test_a_broker_that_leaves_is_told_what_others_could_lead_if_they_were_there(
    cluster: Any,
) -> None:
    controller = await three(cluster)
    await cluster.place(controller, "alone", (2,))
    assert await controller.begin_shutdown(2) == 0
    assert leaders(controller) == [0, 0, 1]
    assert leaders(controller, "alone") == [2]
    assert all(2 not in state.isr for state in states(controller))
    assert controller.image.active_brokers() == {0, 1}
    await cluster.stop(1)
    await controller.reconcile_brokers()
    assert await controller.begin_shutdown(0) == 3


async def test_only_the_incarnation_that_is_registered_can_leave(cluster: Any) -> None:
    controller = await three(cluster)
    epoch = controller.image.brokers[2].epoch
    for broker_id, wrong in ((2, epoch - 1), (7, 1)):
        with pytest.raises(StaleBrokerEpoch):
            await controller.begin_shutdown(broker_id, wrong)
    assert await controller.begin_shutdown(2, epoch) == 0
    assert await controller.begin_shutdown(2, epoch) == 0  # Asking twice is no error.


async def test_nobody_re_adds_a_broker_that_leaves(cluster: Any) -> None:
    controller = await three(cluster)
    await controller.begin_shutdown(2)
    await controller.reconcile_brokers()
    await controller.sweep()
    assert all(2 not in state.isr for state in states(controller))
    assert not controller.image.brokers[2].is_active


async def test_a_broker_whose_process_is_gone_is_expelled_before_its_session_ends(
    cluster: Any,
) -> None:
    controller = await three(cluster)
    await controller.broker_unreachable(2, controller.image.brokers[2].epoch)
    assert leaders(controller) == [0, 0, 1]
    assert sorted(controller.image.brokers) == [0, 1]
    kept = await load_fence(await cluster.session(0), 2)
    assert kept is not None and kept.state is FenceState.FENCED
    store = await cluster.session(0)
    assert await store.multi_get([znodes.broker_path(2)]) == [None]


async def test_its_successor_is_not_expelled_for_it(cluster: Any) -> None:
    controller = await three(cluster)
    old = controller.image.brokers[2].epoch
    await cluster.stop(2)
    await cluster.register(2)
    # The controller has seen nothing yet, and believes in the incarnation that is gone.
    await controller.broker_unreachable(2, old)
    assert controller.image.active_brokers() == {0, 1, 2}
    await controller.broker_unreachable(2, old)
    assert controller.image.active_brokers() == {0, 1, 2}


async def test_a_broker_gone_by_itself_needs_no_expulsion(cluster: Any) -> None:
    controller = await three(cluster)
    epoch = controller.image.brokers[2].epoch
    await cluster.stop(2)
    await controller.broker_unreachable(2, epoch)
    assert sorted(controller.image.brokers) == [0, 1]
    await controller.broker_unreachable(2, epoch)
    await controller.broker_unreachable(9, 1)


async def test_a_topic_is_deleted_while_one_of_its_brokers_is_away(cluster: Any) -> None:
    controller = await three(cluster)
    before = controller.image.topics["t"].topic_id
    await cluster.stop(2)
    await controller.reconcile_brokers()
    assert await controller.delete_topics(["t"]) == [None]
    await cluster.register(2)
    await controller.reconcile_brokers()
    assert controller.image.topics == {}
    made = await cluster.place(controller, "t", (2, 0, 1))
    assert made.topic_id != before
