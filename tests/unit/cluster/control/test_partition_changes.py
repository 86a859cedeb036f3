"""Many states in many multis: several under way, published in order, none forgotten."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from penstock.cluster import znodes
from penstock.cluster.control.controller import Controller
from penstock.cluster.image.image import NO_LEADER, ClusterImage
from penstock.errors import KafkaStorage, NotController
from penstock.meta.store import Op, Result, Set, StoreUnavailable

PARTITIONS = 40
STATES_PER_MULTI = 6
BATCHES = -(-PARTITIONS // STATES_PER_MULTI)


class SlowStore:
    """A store that bounds a multi, answers after a while, and may refuse one of them."""

    ops_per_multi_max = STATES_PER_MULTI + 2  # The check of the epoch, and what goes along.

    def __init__(self, store: Any) -> None:
        self._store = store
        self.in_flight = 0
        self.in_flight_most = 0
        self.count = 0
        self.before: Callable[[int], Any] = lambda _number: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        if not any(isinstance(op, Set) and op.path.endswith("/state") for op in ops):
            return await self._store.multi(ops)
        number, self.count = self.count, self.count + 1
        self.in_flight += 1
        self.in_flight_most = max(self.in_flight_most, self.in_flight)
        try:
            found = self.before(number)
            if asyncio.iscoroutine(found):
                await found
            await asyncio.sleep(0.01)
            return await self._store.multi(ops)
        finally:
            self.in_flight -= 1


async def two_brokers(cluster: Any, *between: int) -> tuple[Controller, SlowStore]:
    """The first governs; the second leads every partition, and is about to go.

    Those `between` come after the second in order, and before the first.
    """
    slow: list[SlowStore] = []

    def wrap(store: Any) -> SlowStore:
        slow.append(SlowStore(store))
        return slow[-1]

    for number in (0, 1, *between):
        await cluster.register(number)
    cluster.wrap = wrap
    controller: Controller = await cluster.elect(0)
    await cluster.place(controller, "t", *[(1, *between, 0)] * PARTITIONS)
    await cluster.stop(1)
    slow[-1].count = 0
    return controller, slow[-1]


async def stored_leaders(cluster: Any) -> list[int]:
    paths = [znodes.state_path("t", number) for number in range(PARTITIONS)]
    nodes = await (await cluster.session(0)).multi_get(paths)
    return [
        znodes.decode_state(p, n[0], n[1].version).leader for p, n in zip(paths, nodes, strict=True)
    ]


def leaders(image: ClusterImage) -> list[int]:
    return [p.state.leader for p in image.topics["t"].partitions.values()]


async def test_several_multis_are_under_way_and_each_is_published_as_it_is_taken(
    cluster: Any,
) -> None:
    controller, store = await two_brokers(cluster)
    images: list[ClusterImage] = []
    controller.subscribe(images.append)
    await controller.reconcile_brokers()
    assert store.in_flight_most > 1
    assert store.count == BATCHES
    assert leaders(controller.image) == await stored_leaders(cluster) == [0] * PARTITIONS
    led = [leaders(image).count(0) for image in images]
    assert led == sorted(led)
    assert [image.seq for image in images] == [images[0].seq + n for n in range(len(images))]


async def test_who_is_gone_is_heard_of_together_with_the_first_elections(cluster: Any) -> None:
    controller, _ = await two_brokers(cluster)
    images: list[ClusterImage] = []
    controller.subscribe(images.append)
    await controller.reconcile_brokers()
    assert set(images[0].brokers) == {0}
    assert 0 in leaders(images[0])


async def test_what_was_taken_is_published_although_another_multi_failed(cluster: Any) -> None:
    controller, store = await two_brokers(cluster)

    def refuse_one(number: int) -> None:
        if number == 2:
            raise StoreUnavailable("no link for a moment")

    store.before = refuse_one
    with pytest.raises(KafkaStorage):
        await controller.reconcile_brokers()
    assert leaders(controller.image) == await stored_leaders(cluster)
    assert leaders(controller.image).count(0) == PARTITIONS - STATES_PER_MULTI
    assert set(controller.image.brokers) == {0}  # Its fence is closed: nobody may count on it.
    await controller.reconcile_brokers()
    assert leaders(controller.image) == [0] * PARTITIONS


async def test_a_lost_race_in_one_multi_is_run_again_and_costs_the_others_nothing(
    cluster: Any,
) -> None:
    controller, store = await two_brokers(cluster)

    async def shrink(number: int) -> None:
        if number == 3:  # The dead leader's last word, which the controller has not heard of.
            path = znodes.state_path("t", 20)
            node = await store._store.get(path)
            state = znodes.decode_state(path, node[0], node[1].version)
            alone = state._replace(isr=(1,), elr=())
            await store._store.multi([Set(path, znodes.encode_state(alone), node[1].version)])

    store.before = shrink
    await controller.reconcile_brokers()
    assert leaders(controller.image) == await stored_leaders(cluster)
    assert [n for n, leader in enumerate(leaders(controller.image)) if leader != 0] == [20]
    assert leaders(controller.image)[20] == NO_LEADER


async def test_a_broker_that_registers_anew_is_elected_no_more_from_that_moment_on(
    cluster: Any,
) -> None:
    controller, store = await two_brokers(cluster, 2)
    epochs: list[int] = []

    async def bounce(number: int) -> None:
        if number == 3:
            await cluster.stop(2)
            epochs.append((await cluster.register(2)).epoch)

    store.before = bounce
    await controller.reconcile_brokers()
    assert store.count <= 2 * BATCHES  # A batch that is refused is written again as one.
    assert leaders(controller.image) == await stored_leaders(cluster)
    for number, leader in enumerate(leaders(controller.image)):
        _, stat = await store.get(znodes.state_path("t", number))
        assert leader in (0, 2)
        assert leader == 0 or stat.mzxid < epochs[0]
    assert 0 in leaders(controller.image)
    await controller.reconcile_brokers()
    assert leaders(controller.image) == await stored_leaders(cluster) == [0] * PARTITIONS


async def test_a_controller_that_was_replaced_meanwhile_publishes_nothing_more(
    cluster: Any,
) -> None:
    controller, store = await two_brokers(cluster)

    async def replace_it(number: int) -> None:
        if number == 0:
            epoch, stat = await store._store.get(znodes.CONTROLLER_EPOCH)
            await store._store.multi([Set(znodes.CONTROLLER_EPOCH, epoch, stat.version)])

    store.before = replace_it
    with pytest.raises(NotController):
        await controller.reconcile_brokers()
    assert controller.is_over
    assert leaders(controller.image) == await stored_leaders(cluster)


async def test_a_new_controller_is_told_of_each_step_from_the_first_on(
    cluster: Any,
) -> None:
    controller, _ = await two_brokers(cluster)
    await controller.resign()
    images: list[ClusterImage] = []

    def enter(entering: Controller) -> None:
        images.append(entering.image)
        entering.subscribe(images.append)

    known = controller.image
    entered = await Controller.elect(
        await cluster.session(0), 0, now_ms=1000, enter=enter, known=known
    )
    assert entered is not None
    assert leaders(images[0]) == [1] * PARTITIONS
    assert images[0].topics["t"] is known.topics["t"]  # Nothing of it is news.
    assert leaders(images[-1]) == [0] * PARTITIONS
    assert len(images) > 2
