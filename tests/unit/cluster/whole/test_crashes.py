"""The process dies before or after any of its writes; the next start finds a sound cluster.

One life of a lone broker is played with small batches, so that every step in several writes is
among them: topics made, grown and deleted, settings changed, a restart. It is killed at each write
in turn. Whatever was answered must be there, whatever is there must be whole.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.cluster import znodes
from penstock.cluster.control.controller import Controller, EntityOverrides, PartitionsToAdd
from penstock.cluster.image.image import ClusterImage
from penstock.cluster.registration import register
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import MetaStore, Op, Result

WRITES_MAX = 45


class Killed(BaseException):
    """The process is gone; nothing may catch this and go on."""


class Clock:
    """Counts writes, and kills at one of them."""

    def __init__(self) -> None:
        self.count = 0
        self.kill_at: int | None = None
        self.after = False


class Mortal:
    def __init__(self, store: MetaStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        clock = self._clock
        clock.count += 1
        if clock.kill_at is not None and clock.count > clock.kill_at:
            raise Killed  # The dead write nothing.
        if clock.count == clock.kill_at and not clock.after:
            raise Killed
        results = await self._store.multi(ops)
        if clock.count == clock.kill_at:
            raise Killed
        return results


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteStore, "ops_per_multi_max", 8)


class Life:
    """What the broker was asked for, and which of it was answered."""

    def __init__(self) -> None:
        self.sizes: dict[str, set[int]] = {}  # The sizes each topic may have; 0 is: none.
        self.epochs: dict[tuple[bytes, int], int] = {}

    async def live(self, cluster: Any, controller: Controller) -> None:
        controller.subscribe(self.watch)
        self.watch(controller.image)
        for name, count in (("small", 2), ("large", 10)):
            self.sizes[name] = {0, count}
            await cluster.create(controller, name, count, retention_ms="5")
            self.sizes[name] = {count}
        for name, count in (("small", 4), ("large", 17)):
            self.sizes[name].add(count)
            await controller.create_partitions(
                [PartitionsToAdd(name=name, total_count=count)], validate_only=False
            )
            self.sizes[name] = {count}
        await controller.set_configs(
            [EntityOverrides(kind="brokers", name="<default>", config={"a": "1"})]
        )
        await controller.reconcile_brokers()
        for name in ("large", "small"):
            self.sizes[name].add(0)
            await controller.delete_topics([name])
            self.sizes[name] = {0}

    def watch(self, image: ClusterImage) -> None:
        """Leader epochs never go back, whoever is controller."""
        for (name, number), partition in image.all_partitions():
            key = (image.topics[name].topic_id, number)
            assert partition.state.leader_epoch >= self.epochs.get(key, 0)
            self.epochs[key] = partition.state.leader_epoch


async def play(cluster: Any, clock: Clock, life: Life) -> bool:
    """Two starts and the life between and after them; False if it was cut short."""
    cluster.wrap = lambda store: Mortal(store, clock)
    try:
        controller = await cluster.start(0)
        await cluster.create(controller, "old", 6)
        life.watch(controller.image)
        life.sizes["old"] = {6}
        controller = await cluster.restart(0)
        await life.live(cluster, controller)
    except Killed:
        return False
    finally:
        cluster.wrap = lambda store: store
    return True


async def check(cluster: Any, life: Life) -> None:
    """Start again and compare image, store and what had been answered."""
    controller = await cluster.restart(0)
    image = controller.image
    life.watch(image)
    for name, sizes in life.sizes.items():
        found = image.topics.get(name)
        assert (len(found.partitions) if found else 0) in sizes
    store = await cluster.session(0)
    assert await store.children(znodes.TOPICS) == sorted(image.topics)
    assert await store.children("/config/topics") == sorted(image.topics)
    for name, topic in image.topics.items():
        assert list(topic.partitions) == list(range(len(topic.partitions)))
        numbers = await store.children(znodes.partitions_path(name))
        assert sorted(map(int, numbers)) == list(topic.partitions)
        for partition in topic.partitions.values():
            assert (partition.state.leader, partition.state.isr) == (0, (0,))
    assert image.active_brokers() == {0}
    await cluster.create(controller, "afterwards")


async def test_a_life_without_a_crash_takes_enough_writes_to_be_worth_killing(
    cluster: Any,
) -> None:
    clock, life = Clock(), Life()
    assert await play(cluster, clock, life)
    assert 30 < clock.count <= WRITES_MAX  # Otherwise some write would never be the last.
    await check(cluster, life)


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
@pytest.mark.parametrize("kill_at", range(1, WRITES_MAX + 1))
async def test_whatever_write_is_the_last_the_next_start_finds_a_sound_cluster(
    cluster: Any, kill_at: int, after: bool
) -> None:
    clock, life = Clock(), Life()
    clock.kill_at, clock.after = kill_at, after
    await play(cluster, clock, life)
    await check(cluster, life)


async def test_a_start_that_crashes_again_and_again_comes_up_in_the_end(cluster: Any) -> None:
    """Each start gets one write further than the one before."""
    clock = Clock()
    controller = await cluster.start(0)
    await cluster.create(controller, "t", 10)
    epochs = [0] * 10
    for kill_at in range(1, 12):
        await cluster.stop_all()
        clock.count, clock.kill_at, clock.after = 0, kill_at, True
        store = Mortal(await cluster.session(0), clock)
        try:
            await register(store, cluster.newcomer(0), now_ms=1)  # type: ignore[arg-type]
            started = await Controller.elect(store, 0, now_ms=1)  # type: ignore[arg-type]
        except Killed:
            continue
        assert started is not None
        states = [p.state for p in started.image.topics["t"].partitions.values()]
        assert [state.leader for state in states] == [0] * 10
        assert all(s.leader_epoch > e for s, e in zip(states, epochs, strict=True))
        return
    raise AssertionError("the broker never came up")
