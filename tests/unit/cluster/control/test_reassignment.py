"""Replicas on the move: what each step writes, and that no step can be half done."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cluster.conftest import Cluster

from penstock.cluster import znodes
from penstock.cluster.control.controller import Controller, PartitionsToAdd, Reassignment
from penstock.cluster.control.reassignment import (
    begin_move,
    cancel_move,
    finish_move,
    is_moving,
    origin,
    plan_move,
    target,
)
from penstock.cluster.image.image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    PartitionState,
    TopicImage,
)
from penstock.cluster.image.load import load_topics
from penstock.cluster.transition import Expanded, Shrunk
from penstock.errors import (
    InvalidReplicaAssignment,
    KafkaStorage,
    NoReassignmentInProgress,
    ProtocolError,
    ReassignmentInProgress,
    UnknownTopicOrPartition,
)
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import MetaStore, Op, OutcomeUnknown, Result, Set

KEY = ("t", 0)


def partition(controller: Controller, number: int = 0) -> PartitionImage:
    found = controller.image.partition("t", number)
    assert found is not None
    return found


async def six(cluster: Any, *, min_isr: int = 2) -> Controller:
    """Six brokers and a partition on the first three."""
    controller: Controller = await cluster.start(*range(6), min_insync_replicas=min_isr)
    await cluster.place(controller, "t", (0, 1, 2))
    return controller


async def move(controller: Controller, *replicas: int, number: int = 0) -> ProtocolError | None:
    (outcome,) = await controller.alter_reassignments([Reassignment("t", number, replicas)])
    return outcome


async def cancel(controller: Controller) -> ProtocolError | None:
    (outcome,) = await controller.alter_reassignments([Reassignment("t", 0, None)])
    return outcome


async def join(cluster: Any, controller: Controller, *brokers: int) -> None:
    """The leader finds that these have all, and tells the controller."""
    leader = partition(controller).state.leader
    assert await cluster.leader_writes(Expanded(leader, frozenset(brokers)), "t")
    await controller.refresh_partitions([KEY])


async def write_state(cluster: Any, **fields: Any) -> None:
    """As somebody with the right to do so would."""
    store, path = await cluster.session(0), znodes.state_path("t", 0)
    data, stat = await store.get(path)
    state = znodes.decode_state(path, data, stat.version)._replace(**fields)
    await store.multi([Set(path, znodes.encode_state(state), stat.version)])


async def assert_sound(cluster: Any, controller: Controller) -> None:
    """The image is what the store has, and nobody is in sync who is not a replica."""
    broker_id = next(b for b, s in cluster.sessions.items() if s.session_state.value != "lost")
    stored = await load_topics(await cluster.session(broker_id))
    assert dict(controller.image.topics) == dict(stored.topics)
    for _, found in controller.image.all_partitions():
        members = {*found.state.isr, *found.state.elr, *found.state.lke}
        assert members <= set(found.replicas)
        assert set(found.adding) | set(found.removing) <= set(found.replicas)


# One step after the other


async def test_a_move_begins_with_all_replicas_and_a_new_epoch(cluster: Any) -> None:
    controller = await six(cluster)
    assert await move(controller, 3, 4, 5) is None
    begun = partition(controller)
    assert begun.replicas == (3, 4, 5, 0, 1, 2)
    assert (begun.adding, begun.removing) == ((3, 4, 5), (0, 1, 2))
    assert (begun.state.leader, begun.state.leader_epoch) == (0, 1)
    assert begun.state.isr == (0, 1, 2)
    assert controller.reassignments() == {KEY: begun}
    await assert_sound(cluster, controller)


async def test_it_ends_in_one_write_when_all_targets_are_in_sync(cluster: Any) -> None:
    controller = await six(cluster)
    await move(controller, 3, 4, 5)
    await join(cluster, controller, 3, 4)
    assert is_moving(partition(controller))
    await join(cluster, controller, 5)
    ended = partition(controller)
    assert ended.replicas == (3, 4, 5)
    assert (ended.adding, ended.removing, sorted(ended.state.isr)) == ((), (), [3, 4, 5])
    assert (ended.state.leader, ended.state.leader_epoch) == (3, 2)
    assert controller.reassignments() == {}
    await assert_sound(cluster, controller)


async def test_a_leader_that_stays_goes_on_leading_in_a_new_epoch(cluster: Any) -> None:
    controller = await six(cluster)
    await move(controller, 3, 0)
    await join(cluster, controller, 3)
    ended = partition(controller)
    assert (ended.replicas, ended.state.leader, ended.state.leader_epoch) == ((3, 0), 0, 2)


async def test_fewer_replicas_that_are_all_in_sync_need_no_waiting(cluster: Any) -> None:
    controller = await six(cluster, min_isr=3)
    assert partition(controller).state.min_isr == 3
    await move(controller, 1)
    ended = partition(controller)
    assert (ended.replicas, ended.state.isr, ended.state.leader) == ((1,), (1,), 1)
    assert ended.state.min_isr == 1


async def test_more_replicas_do_not_raise_the_minimum_before_they_are_there(cluster: Any) -> None:
    controller = await cluster.start(0, 1, 2, min_insync_replicas=2)
    await cluster.place(controller, "t", (0,))
    await move(controller, 0, 1, 2)
    assert partition(controller).state.min_isr == 1
    await controller.sweep()
    assert partition(controller).state.min_isr == 1
    await join(cluster, controller, 1, 2)
    assert partition(controller).state.min_isr == 2


async def test_another_order_is_another_preferred_leader_and_nothing_else(cluster: Any) -> None:
    controller = await six(cluster)
    await cluster.stop(2)
    await controller.reconcile_brokers()
    assert await move(controller, 1, 0, 2) is None
    changed = partition(controller)
    assert (changed.replicas, changed.state.leader, changed.state.isr) == ((1, 0, 2), 0, (0, 1))
    assert not is_moving(changed)


async def test_a_move_can_be_taken_back(cluster: Any) -> None:
    controller = await six(cluster)
    await move(controller, 3, 4, 5)
    await join(cluster, controller, 3)
    assert await cancel(controller) is None
    back = partition(controller)
    assert sorted(back.replicas) == [0, 1, 2]
    assert (back.adding, back.removing, sorted(back.state.isr)) == ((), (), [0, 1, 2])
    assert back.state.leader_epoch == 2
    await assert_sound(cluster, controller)


async def test_a_move_can_be_given_another_target(cluster: Any) -> None:
    controller = await six(cluster)
    await move(controller, 3, 4)
    await join(cluster, controller, 3)
    assert await move(controller, 5, 1) is None
    changed = partition(controller)
    assert (changed.adding, sorted(changed.removing)) == ((5,), [0, 2])
    assert sorted(changed.replicas) == [0, 1, 2, 5]
    assert sorted(changed.state.isr) == [0, 1, 2]
    await assert_sound(cluster, controller)


async def test_the_last_who_has_all_records_cannot_be_taken_away(cluster: Any) -> None:
    controller = await six(cluster, min_isr=1)
    await move(controller, 3, 4)
    await join(cluster, controller, 3)
    for broker_id in (1, 2):
        await cluster.stop(broker_id)
    await controller.reconcile_brokers()
    await write_state(cluster, leader=3, isr=(3,), leader_epoch=9)
    await controller.refresh_partitions([KEY])
    assert isinstance(await cancel(controller), InvalidReplicaAssignment)
    assert is_moving(partition(controller))
    await assert_sound(cluster, controller)


async def test_what_cannot_be_done_is_told_partition_by_partition(cluster: Any) -> None:
    controller = await six(cluster)
    outcomes = await controller.alter_reassignments(
        [
            Reassignment("t", 0, (3, 9)),
            Reassignment("t", 1, (3,)),
            Reassignment("none", 0, (3,)),
            Reassignment("t", 0, None),
        ]
    )
    kinds = [type(outcome) for outcome in outcomes]
    assert kinds[1:] == [
        UnknownTopicOrPartition,
        UnknownTopicOrPartition,
        NoReassignmentInProgress,
    ]
    assert isinstance(await move(controller, 3, 9), InvalidReplicaAssignment)
    assert isinstance(await move(controller), InvalidReplicaAssignment)
    assert isinstance(await move(controller, 3, 3), InvalidReplicaAssignment)
    assert partition(controller).state.leader_epoch == 0


async def test_a_broker_that_is_away_can_stay_a_replica_but_not_become_one(cluster: Any) -> None:
    controller = await six(cluster)
    for broker_id in (2, 5):
        await cluster.stop(broker_id)
    await controller.reconcile_brokers()
    assert isinstance(await move(controller, 0, 5), InvalidReplicaAssignment)
    assert await move(controller, 3, 2) is None


async def test_a_topic_on_the_move_cannot_grow(cluster: Any) -> None:
    controller = await six(cluster)
    await move(controller, 3, 4, 5)
    (outcome,) = await controller.create_partitions(
        [PartitionsToAdd(name="t", total_count=2)], validate_only=False
    )
    assert isinstance(outcome, ReassignmentInProgress)


async def test_a_topic_on_the_move_can_be_deleted(cluster: Any) -> None:
    controller = await six(cluster)
    await move(controller, 3, 4, 5)
    assert await controller.delete_topics(["t"]) == [None]
    assert controller.reassignments() == {}
    await controller.sweep()


async def test_many_partitions_move_in_few_writes(cluster: Any) -> None:
    controller = await cluster.start(0, 1)
    await cluster.place(controller, "t", *[(0,)] * 50)
    wanted = [Reassignment("t", number, (1,)) for number in range(50)]
    before = controller.image.seq
    assert await controller.alter_reassignments(wanted) == [None] * 50
    assert controller.image.seq == before + 1
    assert len(controller.reassignments()) == 50


# Others at work


async def test_the_next_controller_goes_on_with_it(cluster: Any) -> None:
    controller = await six(cluster)
    await move(controller, 3, 4, 5)
    await join(cluster, controller, 3, 4)
    await cluster.leader_writes(Expanded(0, frozenset((5,))), "t")  # Nobody is told.
    await cluster.stop(0)
    controller = await cluster.elect(1)
    assert partition(controller).replicas == (3, 4, 5)
    await assert_sound(cluster, controller)


async def test_a_notice_that_was_lost_is_made_up_for_by_the_sweep(cluster: Any) -> None:
    controller = await six(cluster)
    await move(controller, 3, 4, 5)
    await cluster.leader_writes(Expanded(0, frozenset((3, 4, 5))), "t")
    await controller.sweep()
    assert partition(controller).replicas == (3, 4, 5)


async def test_a_target_that_returns_lets_the_move_end(cluster: Any) -> None:
    controller = await six(cluster)
    await cluster.stop(5)
    await controller.reconcile_brokers()
    await cluster.register(5)
    await controller.reconcile_brokers()
    await move(controller, 5)
    await join(cluster, controller, 5)
    assert partition(controller).replicas == (5,)


class Meddler:
    """Lets somebody else in just before the next write of the controller."""

    def __init__(self, store: MetaStore) -> None:
        self._store = store
        self.before: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        before, self.before = self.before, None
        if before is not None:
            await before()
        return await self._store.multi(ops)


async def meddled(cluster: Any) -> tuple[Controller, Meddler]:
    for broker_id in range(6):
        await cluster.register(broker_id)
    meddler = Meddler(await cluster.session(0))
    cluster.wrap = lambda store: meddler if store is cluster.sessions[0] else store
    cluster.min_insync_replicas = 2
    controller: Controller = await cluster.elect(0)
    await cluster.place(controller, "t", (0, 1, 2))
    return controller, meddler


async def test_a_leader_that_shrinks_meanwhile_is_not_written_over(cluster: Any) -> None:
    controller, meddler = await meddled(cluster)
    await cluster.session(1)
    await move(controller, 1, 3)

    async def shrink() -> None:
        cluster.wrap = lambda store: store
        await cluster.leader_writes(Shrunk(0, frozenset((2,))), "t")

    meddler.before = shrink
    assert await cancel(controller) is None
    assert partition(controller).state.isr == (0, 1)
    await assert_sound(cluster, controller)


async def test_a_target_that_drops_out_meanwhile_keeps_the_move_open(cluster: Any) -> None:
    controller, meddler = await meddled(cluster)
    await move(controller, 3, 4)
    await cluster.leader_writes(Expanded(0, frozenset((3, 4))), "t")

    async def drop() -> None:
        cluster.wrap = lambda store: store
        await cluster.leader_writes(Shrunk(0, frozenset((4,))), "t")

    meddler.before = drop
    await controller.refresh_partitions([KEY])
    assert is_moving(partition(controller))
    assert sorted(partition(controller).state.isr) == [0, 1, 2, 3]
    await assert_sound(cluster, controller)


class LostAnswer(Meddler):
    """The answer to the next write is lost; the write itself may not be."""

    arrives: bool | None = None

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        arrives, self.arrives = self.arrives, None
        if arrives is None:
            return await self._store.multi(ops)
        if arrives:
            await self._store.multi(ops)
        raise OutcomeUnknown("the link broke")


@pytest.mark.parametrize("arrives", [True, False])
async def test_an_answer_that_is_lost_is_found_out_about(cluster: Any, arrives: bool) -> None:
    controller, _ = await meddled(cluster)
    store = LostAnswer(cluster.sessions[0])
    controller._writes.store = store  # type: ignore[assignment]
    store.arrives = arrives
    if arrives:
        assert await move(controller, 3, 4) is None
    else:
        with pytest.raises(KafkaStorage):
            await move(controller, 3, 4)
    assert bool(controller.reassignments()) == arrives
    await assert_sound(cluster, controller)
    assert await move(controller, 3, 4) is None


async def test_an_answer_lost_and_written_over_is_found_out_about(cluster: Any) -> None:
    """The write happened, and the leader wrote before anybody could look: take what is there."""
    controller, _ = await meddled(cluster)
    store = LostAnswer(cluster.sessions[0])
    controller._writes.store = store  # type: ignore[assignment]
    multi_get = store._store.multi_get

    async def look(paths: Sequence[str]) -> Any:
        if store.arrives is None and controller.image.partition("t", 0) is not None:
            cluster.wrap = lambda other: other
            await cluster.leader_writes(Shrunk(0, frozenset((2,))), "t")
            store.__dict__.pop("multi_get", None)
        return await multi_get(paths)

    store.arrives = True
    store.multi_get = look  # type: ignore[attr-defined]
    with pytest.raises(KafkaStorage):
        await move(controller, 3, 4)
    await controller.sweep()
    assert controller.reassignments()
    assert partition(controller).state.isr == (0, 1)
    await assert_sound(cluster, controller)


async def test_an_assignment_edited_past_the_controller_is_not_taken(cluster: Any) -> None:
    controller = await six(cluster)
    before = partition(controller)
    store = await cluster.session(1)
    path = znodes.topic_path("t")
    data, stat = await store.get(path)
    node = znodes.TopicNode.decode(path, data)
    await store.multi([Set(path, node._replace(partitions={0: (4, 5)}).encode(), stat.version)])
    await controller.sweep()
    assert partition(controller) == before
    assert await move(controller, 3, 4, 5) is None
    await assert_sound(cluster, controller)


# Properties

replica_lists = st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True).map(tuple)


def image_of(found: PartitionImage) -> ClusterImage:
    brokers = {n: BrokerImage(broker_id=n, epoch=1, endpoints=(), is_active=True) for n in range(6)}
    topic = TopicImage(name="t", topic_id=b"t" * 16, partitions={0: found})
    return ClusterImage(cluster_id="c", brokers=brokers, topics={"t": topic})


@given(replica_lists, replica_lists, replica_lists)
def test_a_move_goes_where_it_was_told_and_back_where_it_was(
    old: tuple[int, ...], first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    state = PartitionState(leader=old[0], leader_epoch=0, isr=old, min_isr=1)
    start = PartitionImage(replicas=old, state=state)
    one = begin_move(start, first)
    assert (target(one), set(origin(one))) == (first, set(old))
    assert set(one.replicas) == set(old) | set(first)
    two = begin_move(one, second)
    assert (target(two), set(origin(two))) == (second, set(old))
    assert finish_move(two).replicas == second
    assert set(cancel_move(two).replicas) == set(old)
    assert not is_moving(finish_move(two)) and not is_moving(cancel_move(two))


@given(replica_lists, replica_lists)
def test_what_is_planned_is_over_at_once_only_if_all_targets_are_in_sync(
    old: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    state = PartitionState(leader=old[0], leader_epoch=0, isr=old, min_isr=1)
    image = image_of(PartitionImage(replicas=old, state=state))
    plan = plan_move(Reassignment("t", 0, wanted), image)
    assert is_moving(plan) == (not set(wanted) <= set(old))
    assert target(plan) == wanted


steps = st.one_of(
    st.tuples(st.just("move"), replica_lists),
    st.tuples(st.just("cancel"), st.none()),
    st.tuples(st.just("expand"), st.frozensets(st.integers(0, 5), min_size=1, max_size=3)),
    st.tuples(st.just("shrink"), st.frozensets(st.integers(0, 5), min_size=1, max_size=2)),
    st.tuples(st.just("notice"), st.none()),
    st.tuples(st.just("sweep"), st.none()),
    st.tuples(st.just("stop"), st.integers(1, 5)),
    st.tuples(st.just("start"), st.integers(1, 5)),
    st.tuples(st.just("depose"), st.none()),
)


async def walk(directory: Path, walked: list[tuple[str, Any]]) -> None:
    cluster = Cluster(directory)
    try:
        controller = await six(cluster)
        epochs = [0]
        for name, argument in walked:
            controller = await _step(cluster, controller, name, argument)
            await controller.sweep()
            await assert_sound(cluster, controller)
            found = partition(controller)
            assert found.state.isr or found.state.elr or found.state.lke
            if found.state.leader != NO_LEADER:
                assert found.state.leader in found.state.isr
                assert found.state.leader in controller.image.active_brokers()
            epochs.append(found.state.leader_epoch)
        assert epochs == sorted(epochs)
    finally:
        await cluster.stop_all()


async def _step(cluster: Cluster, controller: Controller, name: str, argument: Any) -> Controller:
    leader = partition(controller).state.leader
    alive = controller.image.active_brokers()
    if name == "move":
        await move(controller, *argument)
    elif name == "cancel":
        await cancel(controller)
    elif name == "expand" and leader in alive:
        await cluster.leader_writes(Expanded(leader, argument), "t")
    elif name == "shrink" and leader in alive:
        await cluster.leader_writes(Shrunk(leader, argument), "t")
    elif name == "notice":
        await controller.refresh_partitions([KEY])
    elif name == "stop" and argument in alive:
        await cluster.stop(argument)
        await controller.reconcile_brokers()
    elif name == "start" and argument not in alive:
        await cluster.register(argument)
        await controller.reconcile_brokers()
    elif name == "depose":
        await controller.resign()
        return await cluster.elect(0)
    return controller


@settings(max_examples=15, deadline=None)
@given(st.lists(steps, min_size=1, max_size=14))
def test_whatever_happens_nobody_is_in_sync_who_is_no_replica(
    walked: list[tuple[str, Any]],
) -> None:
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        asyncio.run(walk(Path(directory), walked))


def test_batches_leave_room_for_the_topics_own_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteStore, "ops_per_multi_max", 8)

    async def go(directory: Path) -> None:
        cluster = Cluster(directory)
        try:
            controller = await cluster.start(0, 1)
            await cluster.place(controller, "t", *[(0,)] * 20)
            wanted = [Reassignment("t", number, (1,)) for number in range(20)]
            before = controller.image.seq
            assert await controller.alter_reassignments(wanted) == [None] * 20
            assert controller.image.seq == before + 4  # Six states beside two other operations.
            await assert_sound(cluster, controller)
        finally:
            await cluster.stop_all()

    with TemporaryDirectory() as directory:
        asyncio.run(go(Path(directory)))
