"""Writing in-sync sets: with the fences of who joins, many at once, whatever the store does."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.cluster import znodes
from penstock.cluster.image.image import (
    BrokerImage,
    ClusterImage,
    ImageDelta,
    PartitionImage,
    PartitionKey,
    PartitionState,
    TopicImage,
)
from penstock.errors import NotLeaderOrFollower
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import Create, Delete, Op, OutcomeUnknown, Result, Set, StoreUnavailable
from penstock.records.batch import build_batch, split_batches
from penstock.records.record import Record
from penstock.replica.isr_writer import IsrWriter
from penstock.replica.partition import Partition
from penstock.replica.reads import FollowerFetch
from penstock.replica.table import PartitionTable
from penstock.storage.directories.log_dirs import LogDirs
from penstock.storage.log.config import LogConfig

LEADER, A, B = 1, 2, 3
TOPIC, TOPIC_ID = "orders", b"i" * 16
LAG_MS = 1_000

Fault = Callable[[Sequence[Op]], Coroutine[Any, Any, list[Result]]]


class Store:
    """A real store that a test can make fail."""

    def __init__(self, inner: SqliteStore) -> None:
        self.inner = inner
        self.multis: list[Sequence[Op]] = []
        self.faults: list[Fault] = []

    @property
    def ops_per_multi_max(self) -> int:
        return self.inner.ops_per_multi_max

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        self.multis.append(ops)
        if self.faults:
            return await self.faults.pop(0)(ops)
        return await self.inner.multi(ops)

    async def multi_get(self, paths: Sequence[str]) -> list[Any]:
        return await self.inner.multi_get(paths)

    # Faults

    async def away(self, _ops: Sequence[Op]) -> list[Result]:
        raise StoreUnavailable("no link")

    async def done_without_answer(self, ops: Sequence[Op]) -> list[Result]:
        await self.inner.multi(ops)
        raise OutcomeUnknown("the link broke")

    async def lost_without_answer(self, _ops: Sequence[Op]) -> list[Result]:
        raise OutcomeUnknown("the link broke")


class Led:
    """A broker that leads partitions with two followers, and its writer."""

    def __init__(self, path: Path, store: Store, count: int, **state: Any) -> None:
        self.store = store
        self.now_ms = 0
        self.told: list[PartitionKey] = []
        log_dirs = LogDirs.open([path], now_ms=0, report=lambda _: None)
        self.table = PartitionTable(
            broker_id=LEADER,
            log_dirs=log_dirs,
            log_config=lambda _image, _topic: LogConfig(),
            now_ms=lambda: 0,
            lag_ms_max=lambda: LAG_MS,
            clock_ms=lambda: self.now_ms,
        )
        first = PartitionState(leader=LEADER, leader_epoch=3, isr=(LEADER,), min_isr=1)
        self.first = first._replace(**state)
        placed = PartitionImage(replicas=(LEADER, A, B), state=self.first)
        topic = TopicImage(
            name=TOPIC, topic_id=TOPIC_ID, partitions=dict.fromkeys(range(count), placed)
        )
        brokers = {
            broker: BrokerImage(
                broker_id=broker, epoch=10, endpoints=(), is_active=True, fence_version=0
            )
            for broker in (LEADER, A, B)
        }
        self.image = ClusterImage(cluster_id="c").apply(
            ImageDelta(topics={TOPIC: topic}, brokers=brokers)
        )
        self.writer = IsrWriter(
            store=store,  # type: ignore[arg-type]
            partitions=self.table,
            tell_controller=self.told.extend,
            retry_s=0,
        )

    async def begin(self) -> None:
        made: list[Op] = [Create("/brokers"), Create("/brokers/topics"), Create("/ext")]
        made += [Create("/ext/fence"), Create(znodes.TOPIC_IDS), Create(znodes.topic_path(TOPIC))]
        made += [Create(znodes.topic_id_path(TOPIC_ID)), Create(znodes.partitions_path(TOPIC))]
        made += [Create(znodes.fence_path(broker)) for broker in (LEADER, A, B)]
        for number in self.image.topics[TOPIC].partitions:
            made.append(Create(znodes.partition_path(TOPIC, number)))
            path, data = znodes.state_path(TOPIC, number), znodes.encode_state(self.first)
            made.append(Create(path, data))
        await self.store.inner.multi(made)
        self.table.apply(self.image)

    def partition(self, number: int = 0) -> Partition:
        return self.table.leader(TOPIC, number)

    def append(self, number: int = 0) -> None:
        batches = split_batches(memoryview(build_batch([Record(0, 0, None, b"v", ())])))
        self.partition(number).append(batches, required_acks=1, now_ms=0)

    def fetch(self, broker: int, offset: int, number: int = 0, *, epoch: int = 10) -> None:
        fetch = FollowerFetch(
            replica_id=broker,
            replica_epoch=epoch,
            fetch_offset=offset,
            log_start_offset=0,
            current_leader_epoch=3,
            last_fetched_epoch=-1,
        )
        self.partition(number).read_as_follower(fetch, bytes_max=1 << 20, min_one=True)

    async def stored(self, number: int = 0) -> PartitionState:
        path = znodes.state_path(TOPIC, number)
        data, stat = await self.store.inner.get(path)
        return znodes.decode_state(path, data, stat.version)

    async def written_by_another(self, number: int = 0, **changes: Any) -> None:
        state = (await self.stored(number))._replace(**changes)
        path = znodes.state_path(TOPIC, number)
        await self.store.inner.multi([Set(path, znodes.encode_state(state))])


@asynccontextmanager
async def leading(path: Path, count: int = 1, **state: Any) -> AsyncIterator[Led]:
    inner = await SqliteStore.open(path / "store.db")
    try:
        led = Led(path / "logs", Store(inner), count, **state)
        await led.begin()
        yield led
    finally:
        await inner.close()


def test_who_caught_up_joins_and_the_controller_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with leading(tmp_path) as led:
            led.append()
            led.fetch(A, 1)
            assert await led.writer.write_all()
            stored = await led.stored()
            assert stored.isr == (LEADER, A)
            assert led.partition().state == stored
            assert led.told == [(TOPIC, 0)]
            assert led.table.around.isr_expand_count == 1

    asyncio.run(story())


def test_nobody_joins_whose_fence_has_moved(tmp_path: Path) -> None:
    async def story() -> None:
        async with leading(tmp_path) as led:
            led.append()
            led.fetch(A, 1)
            await led.store.inner.multi([Set(znodes.fence_path(A), b"fenced")])
            assert await led.writer.write_all()
            assert (await led.stored()).isr == (LEADER,)
            in_sync = led.partition().in_sync
            assert in_sync is not None
            assert in_sync.maximal == {LEADER}
            led.append()  # The broker that could not join holds nobody up, once it is known.
            led.table.around.brokers = {}
            led.partition().reconsider()
            assert led.partition().high_watermark == 2

    asyncio.run(story())


def test_a_fetch_of_an_earlier_life_lets_nobody_join(tmp_path: Path) -> None:
    async def story() -> None:
        async with leading(tmp_path) as led:
            with pytest.raises(NotLeaderOrFollower):
                led.fetch(A, 0, epoch=9)
            led.fetch(A, 0, epoch=11)  # Newer than the image: it will have to fetch again.
            assert led.partition().proposal() is None

    asyncio.run(story())


def test_a_lost_race_in_our_epoch_is_adopted_and_tried_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with leading(tmp_path) as led:
            led.append()
            led.fetch(A, 1)
            await led.written_by_another(min_isr=2, controller_epoch=7)
            assert await led.writer.write_all()  # Loses, and reads.
            assert led.partition().state == await led.stored()
            assert await led.writer.write_all()
            stored = await led.stored()
            assert (stored.isr, stored.min_isr, stored.controller_epoch) == ((LEADER, A), 2, 7)

    asyncio.run(story())


@pytest.mark.parametrize("elected", [A, LEADER])
def test_who_loses_to_another_epoch_stands_down_within_one_read(
    tmp_path: Path, elected: int
) -> None:
    async def story() -> None:
        async with leading(tmp_path) as led:
            led.append()
            led.fetch(A, 1)
            partition = led.partition()
            wait = partition.replicated(0) or partition.replicated(1)
            await led.written_by_another(leader=elected, leader_epoch=4, isr=(LEADER, A))
            await led.writer.write_all()
            assert not partition.is_leader
            assert (await led.stored()).leader_epoch == 4
            if wait is not None and not wait.done():
                pytest.fail("somebody waits for a leader that is none")
            if wait is not None:
                wait.exception()
            led.table.apply(led.image)  # An image that knows nothing of it makes no leader.
            assert not partition.is_leader

    asyncio.run(story())


@pytest.mark.parametrize("has_answered", [True, False])
def test_nothing_is_written_into_a_topic_that_was_made_anew(
    tmp_path: Path, has_answered: bool
) -> None:
    """Its nodes have the same versions, its leader may have the same epoch."""

    async def story() -> None:
        async with leading(tmp_path) as led:
            led.append()
            led.fetch(A, 1)
            partition, before = led.partition(), await led.stored()
            swap: list[Op] = [Delete(znodes.topic_id_path(TOPIC_ID))]
            await led.store.inner.multi([*swap, Create(znodes.topic_id_path(b"j" * 16))])
            if not has_answered:
                led.store.faults.append(led.store.lost_without_answer)
            await led.writer.write_all()
            assert not partition.is_leader
            assert await led.stored() == before

    asyncio.run(story())


def test_a_set_that_may_have_been_written_counts_until_it_is_read(tmp_path: Path) -> None:
    async def story() -> None:
        async with leading(tmp_path) as led:
            led.append()
            led.fetch(A, 1)
            led.store.faults.append(led.store.done_without_answer)
            assert not await led.writer.write_all()
            assert led.partition().state == await led.stored()
            assert led.partition().state.isr == (LEADER, A)  # type: ignore[union-attr]

    asyncio.run(story())


def test_a_set_of_unknown_fate_holds_the_high_watermark_until_a_write_settles_it(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with leading(tmp_path) as led:
            led.append()
            led.fetch(A, 1)
            led.store.faults.append(led.store.lost_without_answer)
            assert not await led.writer.write_all()
            led.now_ms += 10 * LAG_MS  # It is not waited for as one about to join any more.
            led.append()
            in_sync = led.partition().in_sync
            assert in_sync is not None
            assert in_sync.maximal == {LEADER, A}
            assert led.partition().high_watermark == 1
            led.table.around.brokers = {}  # Now nobody may join.
            assert await led.writer.write_all()
            assert led.partition().state == await led.stored()
            assert led.partition().state.isr == (LEADER,)  # type: ignore[union-attr]
            assert led.partition().high_watermark == 2

    asyncio.run(story())


def test_records_go_on_while_the_store_is_away(tmp_path: Path) -> None:
    async def story() -> None:
        async with leading(tmp_path, isr=(LEADER, A)) as led:
            led.append()
            led.fetch(A, 1)
            led.fetch(B, 1)
            led.store.faults += [led.store.away, led.store.away]
            assert not await led.writer.write_all()
            led.append()
            led.fetch(A, 2)
            led.fetch(B, 2)
            assert led.partition().high_watermark == 2
            assert not await led.writer.write_all()
            assert await led.writer.write_all()
            assert (await led.stored()).isr == (LEADER, A, B)

    asyncio.run(story())


def test_a_cancelled_write_leaves_the_set_open(tmp_path: Path) -> None:
    async def story() -> None:
        async with leading(tmp_path) as led:
            led.append()
            led.fetch(A, 1)
            asked = asyncio.Event()

            async def never(_ops: Sequence[Op]) -> list[Result]:
                asked.set()
                await asyncio.Event().wait()
                return []

            led.store.faults.append(never)
            writing = asyncio.create_task(led.writer.write_all())
            await asked.wait()
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            in_sync = led.partition().in_sync
            assert in_sync is not None
            assert in_sync.maximal == {LEADER, A}

    asyncio.run(story())


def test_many_partitions_share_a_step_and_one_bad_one_does_not_stop_the_others(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with leading(tmp_path, count=5) as led:
            for number in range(5):
                led.append(number)
                led.fetch(A, 1, number)
            await led.written_by_another(2, leader=B, leader_epoch=4)
            led.store.multis.clear()
            assert await led.writer.write_all()
            assert len(led.store.multis[0]) == 7  # What they check alike is checked once.
            assert len(led.store.multis) == 6
            isr = [(await led.stored(number)).isr for number in range(5)]
            assert isr == [(LEADER, A)] * 2 + [(LEADER,)] + [(LEADER, A)] * 2
            assert not led.table.get(TOPIC, 2).is_leader  # type: ignore[union-attr]

    asyncio.run(story())


def test_who_falls_behind_for_too_long_is_taken_out(tmp_path: Path) -> None:
    async def story() -> None:
        async with leading(tmp_path, isr=(LEADER, A, B)) as led:
            led.append()
            led.fetch(A, 1)
            led.fetch(B, 0)
            led.now_ms = LAG_MS
            led.writer._check_lag()
            assert await led.writer.write_all()
            assert (await led.stored()).isr == (LEADER, A, B)
            led.now_ms = LAG_MS + 1
            led.writer._check_lag()
            assert await led.writer.write_all()
            stored = await led.stored()
            assert (stored.isr, stored.leader_epoch) == ((LEADER, A), 3)
            assert led.partition().high_watermark == 1

    asyncio.run(story())


def test_the_task_writes_when_woken_and_looks_at_the_clock(tmp_path: Path) -> None:
    async def story() -> None:
        async with leading(tmp_path, isr=(LEADER, B)) as led:
            running = asyncio.create_task(led.writer.run())
            led.append()
            led.fetch(A, 1)
            async with asyncio.timeout(60):
                while (await led.stored()).isr != (LEADER, B, A):
                    await asyncio.sleep(0.01)
                led.now_ms = 10 * LAG_MS
                while (await led.stored()).isr != (LEADER, A):
                    await asyncio.sleep(0.01)
            running.cancel()

    asyncio.run(story())
