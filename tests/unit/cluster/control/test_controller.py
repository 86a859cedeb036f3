"""The controller: elected once, fenced by its epoch, its image never ahead of the store."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.cluster import znodes
from penstock.cluster.control.controller import (
    Controller,
    EntityOverrides,
    PartitionsToAdd,
    TopicToCreate,
    allocate_producer_ids,
)
from penstock.cluster.image.image import TopicImage
from penstock.cluster.registration import prepare_tree
from penstock.errors import (
    KafkaStorage,
    NotController,
    ProtocolError,
    UnknownTopicOrPartition,
)
from penstock.meta.store import Create, Delete, Op, OutcomeUnknown, Result, Set, StoreUnavailable


def topic(name: str, partitions: int = 1, factor: int = 1, **configs: str) -> TopicToCreate:
    return TopicToCreate(
        name=name, partition_count=partitions, replication_factor=factor, configs=configs
    )


def change(kind: str, name: str, expected: int | None = None, **config: str) -> EntityOverrides:
    written = {key.replace("_", "."): value for key, value in config.items()}
    return EntityOverrides(kind=kind, name=name, config=written, expected_version=expected)


# Election


async def test_one_broker_is_the_controller(cluster: Any) -> None:
    controller = await cluster.start(0, 1)
    other = await Controller.elect(await cluster.session(1), 1, now_ms=1)
    assert other is None
    assert (controller.image.controller_id, controller.image.controller_epoch) == (0, 1)
    assert controller.image.cluster_id == "test-cluster"
    data, stat = await (await cluster.session(1)).get(znodes.CONTROLLER)
    assert data == b'{"version":1,"brokerid":0,"timestamp":"1000"}'
    assert stat.owner == (await cluster.session(0)).session_id


async def test_of_many_candidates_one_wins(cluster: Any) -> None:
    stores = [await cluster.session(n) for n in range(5)]
    await prepare_tree(stores[0], cluster_id="c")
    elected = await asyncio.gather(
        *(Controller.elect(store, n, now_ms=1) for n, store in enumerate(stores))
    )
    assert sum(controller is not None for controller in elected) == 1


async def test_each_controller_has_a_higher_epoch(cluster: Any) -> None:
    epochs = []
    for _ in range(3):
        controller = await cluster.start(0)
        epochs.append(controller.image.controller_epoch)
        await cluster.stop_all()
    assert epochs == [1, 2, 3]


async def test_a_controller_that_resigns_makes_room(cluster: Any) -> None:
    controller = await cluster.start(0, 1)
    await controller.resign()
    await controller.resign()
    assert controller.is_over
    successor = await cluster.elect(1)
    assert successor.image.controller_id == 1
    with pytest.raises(NotController):
        await cluster.create(controller, "t")


async def test_a_controller_that_was_replaced_changes_nothing(cluster: Any) -> None:
    """Its node was lost without its noticing, as after a long pause."""
    old = await cluster.start(0, 1)
    store = await cluster.session(1)
    await store.multi([Delete(znodes.CONTROLLER)])
    new = await cluster.elect(1)
    await cluster.create(new, "kept")
    before = old.image
    for attempt in (
        cluster.create(old, "t"),
        old.set_configs([EntityOverrides(kind="brokers", name="0", config={"a": "b"})]),
        old.begin_shutdown(1),
    ):
        with pytest.raises(NotController):
            await attempt
    (deleted,) = await old.delete_topics(["kept"])
    assert isinstance(deleted, UnknownTopicOrPartition | NotController)
    assert old.is_over
    assert old.image is before
    assert await store.children(znodes.TOPICS) == ["kept"]


class LostAnswers:
    """Multis that touch a path arrive or not, and are not answered, as often as told."""

    def __init__(self, store: Any, path: str, *, arrives: bool) -> None:
        self._store = store
        self._path = path
        self._arrives = arrives
        self.times = 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        if not self.times or all(op.path != self._path for op in ops):
            return await self._store.multi(ops)
        self.times -= 1
        if self._arrives:
            await self._store.multi(ops)
        raise OutcomeUnknown("the link broke")


@pytest.mark.parametrize("arrives", [True, False])
async def test_an_election_without_an_answer_is_found_out(cluster: Any, arrives: bool) -> None:
    await cluster.register(0)
    cluster.wrap = lambda store: LostAnswers(store, znodes.CONTROLLER, arrives=arrives)
    controller = await cluster.elect(0)
    cluster.wrap = lambda store: store
    assert controller.image.controller_epoch == 1
    await cluster.create(controller, "t")


# Order, trouble, givers-up


async def test_every_image_is_published_in_order_and_no_earlier_than_the_store_has_it(
    cluster: Any,
) -> None:
    controller = await cluster.start(0)
    first = controller.image.seq
    seen: list[int] = []
    controller.subscribe(lambda image: seen.append(image.seq))
    await asyncio.gather(
        *(cluster.create(controller, f"t{n}") for n in range(10)),
        controller.set_configs([change("brokers", "0", a="1")]),
    )
    assert seen == list(range(first + 1, first + 12))
    deltas = controller.deltas_since(controller.image.controller_epoch, first)
    assert deltas is not None and len(deltas) == 11


async def test_a_caller_that_gives_up_leaves_no_gap_between_store_and_image(cluster: Any) -> None:
    controller = await cluster.start(0)
    for delay in range(12):
        making = asyncio.create_task(cluster.create(controller, f"t{delay}", 3))
        for _ in range(delay):
            await asyncio.sleep(0)
        making.cancel()
    await cluster.create(controller, "last")
    store = await cluster.session(0)
    assert await store.children(znodes.TOPICS) == sorted(controller.image.topics)
    assert len(controller.image.topics) > 5


class FullDisk:
    """Refuses writes while it is full."""

    def __init__(self, store: Any, state: dict[str, bool]) -> None:
        self._store = store
        self._state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        if self._state["full"]:
            raise StoreUnavailable("database or disk is full")
        return await self._store.multi(ops)


async def test_a_full_disk_is_told_and_heals(cluster: Any) -> None:
    disk = {"full": False}
    cluster.wrap = lambda store: FullDisk(store, disk)
    controller = await cluster.start(0)
    await cluster.create(controller, "t")
    before = controller.image
    disk["full"] = True
    refusals: list[ProtocolError | TopicImage | None] = [
        *await controller.create_topics([topic("a"), topic("b")], validate_only=False),
        *await controller.delete_topics(["t"]),
        *await controller.create_partitions(
            [PartitionsToAdd(name="t", total_count=2)], validate_only=False
        ),
    ]
    assert [type(refusal) for refusal in refusals] == [KafkaStorage] * 4
    with pytest.raises(KafkaStorage):
        await controller.set_configs([change("brokers", "0", a="1")])
    assert controller.image is before
    disk["full"] = False
    await cluster.create(controller, "a")
    assert await controller.create_partitions(
        [PartitionsToAdd(name="t", total_count=2)], validate_only=False
    ) + await controller.delete_topics(["t"]) == [None, None]


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_topic_whose_answer_was_lost_is_adopted_or_refused(
    cluster: Any, arrives: bool
) -> None:
    cluster.wrap = lambda store: LostAnswers(store, znodes.topic_path("t"), arrives=arrives)
    controller = await cluster.start(0)
    (made,) = await controller.create_topics([topic("t", 3)], validate_only=False)
    assert isinstance(made, TopicImage) == arrives
    assert ("t" in controller.image.topics) == arrives
    assert len(await (await cluster.session(0)).children(znodes.TOPICS)) == arrives


async def test_producer_ids_are_had_from_here_too(cluster: Any) -> None:
    await cluster.start(0)
    assert await allocate_producer_ids(await cluster.session(0), 0) == range(1000)


async def test_a_topic_node_of_something_else_is_named_at_start(cluster: Any) -> None:
    controller = await cluster.start(0)
    await cluster.create(controller, "t")
    store = await cluster.session(0)
    await store.multi([Set(znodes.topic_path("t"), b"scribble")])
    await cluster.stop_all()
    await cluster.register(0)
    with pytest.raises(znodes.NodeUnreadable, match="/brokers/topics/t"):
        await cluster.elect(0)


async def test_a_partition_without_its_state_is_named_at_start(cluster: Any) -> None:
    controller = await cluster.start(0)
    await cluster.create(controller, "t")
    store = await cluster.session(0)
    await store.multi([Delete(znodes.state_path("t", 0)), Create("/x")])
    await cluster.stop_all()
    await cluster.register(0)
    with pytest.raises(znodes.NodeUnreadable, match=r"partitions/0/state.*missing"):
        await cluster.elect(0)
