"""Whole members of a cluster in one process: several sessions on one store, no sockets.

What kills, partitions and clocks do to a cluster is the simulator's to find; here is what a single
member does with its session, its disk and its place in the cluster.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from penstock.broker.context import Broker, wall_clock_ms
from penstock.broker.dispatch import Dispatcher
from penstock.broker.membership import cluster_member
from penstock.broker.node import running
from penstock.cluster import znodes
from penstock.cluster.image.image import Endpoint
from penstock.cluster.znodes import FenceNode
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError, DuplicateBrokerRegistration, ErrorCode
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import Delete, MetaStore, SessionState
from penstock.net.peers import PeerUnreachable
from penstock.protocol.apis import Request, Response, response_class
from penstock.protocol.messages.broker_shutdown import BrokerShutdownResponse
from penstock.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.records.batch import build_batch
from penstock.records.record import Record
from penstock.storage.directories.log_dirs import LogDirs

INSIDE = "PLAINTEXT"
LONG_S = 60.0


class World:
    """A store, brokers on it, and wires between them."""

    def __init__(self, directory: Path, store: SqliteStore, stack: AsyncExitStack) -> None:
        self.directory = directory
        self.store = store
        self.stacks: dict[int, AsyncExitStack] = {}
        self.doors: dict[int, Dispatcher] = {}
        self.sessions: dict[int, MetaStore] = {}
        self._stack = stack

    async def start(
        self, number: int, *, boot_id: str = "boot-1", directory: str | None = None, **more: str
    ) -> Broker:
        data = self.directory / (directory or f"broker-{number}")
        config = BrokerConfig(
            {
                "broker.id": str(number),
                "log.dirs": str(data),
                "listeners": f"{INSIDE}://127.0.0.1:0",
                "advertised.listeners": f"{INSIDE}://127.0.0.1:{9000 + max(number, 0)}",
                "zookeeper.connect": "of the test",
                "zookeeper.session.timeout.ms": "200",
                **more,
            }
        )
        stack = AsyncExitStack()
        log_dirs = LogDirs.open(config.log_dirs, now_ms=wall_clock_ms(), report=lambda _: None)
        stack.callback(log_dirs.close)

        async def open_store() -> MetaStore:
            session = await self.store.open_session()
            self.sessions[number] = session
            return session

        node = running(
            config,
            open_store=open_store,
            log_dirs=log_dirs,
            endpoints=[Endpoint(INSIDE, "127.0.0.1", 9000 + number, INSIDE)],
            peers=_Wires(self),
            boot_id=boot_id,
        )
        try:
            async with asyncio.timeout(LONG_S):
                broker = await stack.enter_async_context(node)
        except BaseException:
            await stack.aclose()
            raise
        self.doors[broker.broker_id] = Dispatcher(broker, listener=INSIDE)
        self.stacks[broker.broker_id] = stack
        stack.callback(broker.groups.close)
        stack.callback(broker.transactions.coordinator.close)
        return broker

    async def stop(self, number: int) -> None:
        self.doors.pop(number)
        await self.stacks.pop(number).aclose()

    async def create(self, by: int, name: str, replicas: int) -> int:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=replicas)
        answer = await self.doors[by].handle(CreateTopicsRequest(topics=[topic]), 7)
        assert isinstance(answer, CreateTopicsResponse)
        return answer.topics[0].error_code

    async def fence(self, number: int) -> FenceNode:
        path = znodes.fence_path(number)
        return FenceNode.decode(path, (await self.store.get(path))[0])


class _Unlinked:
    """A session whose link to the store is gone."""

    session_state = SessionState.SUSPENDED

    def __init__(self, session: MetaStore) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class _Wires:
    """Messages go as bytes, so that nothing is shared by mistake."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def ask(
        self,
        broker_id: int,
        request: Request,
        *,
        timeout_s: float,
        channel: str = "control",
        version: int | None = None,
    ) -> Response:
        door = self._world.doors.get(broker_id)
        if door is None:
            await asyncio.sleep(0.001)
            raise PeerUnreachable("nobody listens", is_refused=True, was_sent=False)
        spoken = request.versions[-1] if version is None else version
        sent = type(request).decode(bytearray(request.encode(spoken)), spoken)
        answer = await asyncio.wait_for(door.handle(sent, spoken), timeout_s)
        assert answer is not None
        parts = answer.encode_parts(spoken)
        data = b"".join(p if isinstance(p, bytes) else p.read() for p in parts)  # type: ignore[attr-defined]
        return response_class(request.api_key).decode(memoryview(data), spoken)

    def forget(self, broker_id: int) -> None:
        pass


def in_a_world(test: Callable[[World], Coroutine[None, None, None]]) -> Callable[[Path], None]:
    @functools.wraps(test)
    def run(tmp_path: Path) -> None:
        async def play() -> None:
            store = await SqliteStore.open(tmp_path / "store.db")
            async with AsyncExitStack() as stack:
                stack.push_async_callback(store.close)
                world = World(tmp_path, store, stack)
                try:
                    await test(world)
                finally:
                    for number in tuple(world.stacks):
                        await world.stop(number)

        asyncio.run(play())

    del run.__wrapped__  # type: ignore[attr-defined]  # pytest would look for `world`.
    return run


async def _until(look: Callable[[], bool], what: str) -> None:
    async with asyncio.timeout(LONG_S):
        while not look():
            await asyncio.sleep(0.005)
    assert look(), what


@in_a_world
async def test_one_of_them_governs_and_any_of_them_can_be_asked(world: World) -> None:
    brokers = [await world.start(number) for number in range(3)]
    assert [b.controller is not None for b in brokers] == [True, False, False]
    assert await world.create(2, "t", 3) == ErrorCode.NONE
    assert "t" in brokers[2].image.topics  # At once, for whoever asked.
    await _until(lambda: all("t" in b.image.topics for b in brokers), "the topic everywhere")
    leaders = [b.partitions.get("t", 0) for b in brokers]
    assert [p is not None and p.is_leader for p in leaders].count(True) == 1


@in_a_world
async def test_a_lost_session_takes_leaderships_and_brings_a_new_epoch(world: World) -> None:
    brokers = [await world.start(number) for number in range(2)]
    assert await world.create(0, "t", 2) == ErrorCode.NONE
    await _until(lambda: "t" in brokers[1].image.topics, "the topic")
    governor = brokers[0]
    assert governor.member is not None
    epoch = governor.member.broker_epoch
    await world.sessions[0].close()  # As if the store had given up on it.
    await _until(lambda: brokers[1].controller is not None, "another controller")
    await _until(lambda: governor.member.broker_epoch > epoch, "another registration")
    await _until(lambda: len(brokers[1].image.active_brokers()) == 2, "both to be active again")
    await _until(lambda: governor.image.controller_id == 1, "the image of the other")
    assert governor.controller is None
    assert governor.store is world.sessions[0]


@in_a_world
async def test_a_registration_that_was_deleted_is_made_again(world: World) -> None:
    broker = await world.start(0)
    assert broker.member is not None
    epoch = broker.member.broker_epoch
    await world.store.multi([Delete(znodes.broker_path(0))])
    await _until(lambda: broker.member.broker_epoch > epoch, "another registration")
    await _until(lambda: broker.image.active_brokers() == {0}, "it to be active")


@in_a_world
async def test_the_next_controller_takes_over_when_the_first_leaves(world: World) -> None:
    first, second = [await world.start(number) for number in range(2)]
    assert await world.create(0, "t", 2) == ErrorCode.NONE
    await _until(lambda: "t" in second.image.topics, "the topic")
    assert first.member is not None
    await first.member.hand_over()
    placed = second.image.topics["t"].partitions[0].state
    assert placed.leader == 1
    assert placed.isr == (1,)
    await world.stop(0)
    await _until(lambda: second.controller is not None, "the second in office")
    assert await world.create(1, "u", 1) == ErrorCode.NONE


@in_a_world
async def test_without_the_store_a_broker_leaves_after_one_try(world: World) -> None:
    first, _ = [await world.start(number) for number in range(2)]
    assert first.member is not None
    asked: list[float] = []

    async def refused(_: object, *, find_s: float, answer_s: float) -> BrokerShutdownResponse:
        asked.append(find_s)
        return BrokerShutdownResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)

    first.member._line.ask = refused  # type: ignore[method-assign]
    session, first.store = first.store, _Unlinked(first.store)
    try:
        with patch.object(cluster_member, "_SHUTDOWN_UNLINKED_S", 0.01):
            await first.member.hand_over()
    finally:
        first.store = session
    assert asked == [0]  # As often as the settings say it would be with a store.


@pytest.mark.parametrize(
    ("boot_id", "told"),
    [("boot-1", "crash before"), ("boot-2", "lossy before")],
    ids=["the machine ran on", "the machine went down"],
)
def test_a_crash_is_judged_by_the_run_of_the_machine(
    tmp_path: Path, boot_id: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    async def play() -> None:
        store = await SqliteStore.open(tmp_path / "store.db")
        async with AsyncExitStack() as stack:
            stack.push_async_callback(store.close)
            world = World(tmp_path, store, stack)
            await world.start(0, boot_id="boot-1")
            await world.stop(0)
            (tmp_path / "broker-0" / ".kafka_cleanshutdown").unlink()  # As kill -9 leaves it.
            caplog.clear()
            await world.start(0, boot_id=boot_id)
            await world.stop(0)

    asyncio.run(play())
    assert told in caplog.text


@in_a_world
async def test_after_a_clean_stop_nothing_is_missing(world: World) -> None:
    await world.start(0, boot_id="boot-1")
    await world.stop(0)
    broker = await world.start(0, boot_id="boot-2")
    assert (await world.fence(0)).prev_shutdown.value == "clean"
    assert broker.image.active_brokers() == {0}


@in_a_world
async def test_only_after_a_power_cut_a_log_without_a_topic_id_is_set_aside(world: World) -> None:
    data = world.directory / "broker-0"
    await world.start(0, boot_id="boot-1")
    for boot_id, topic, records_left in (("boot-1", "kept", 1), ("boot-2", "lost", 0)):
        assert await world.create(0, topic, 1) == ErrorCode.NONE
        await world.stop(0)
        (data / ".kafka_cleanshutdown").unlink()
        (data / f"{topic}-0" / "partition.metadata").unlink()
        batch = build_batch([Record(0, 0, None, b"v")], leader_epoch=0)
        (data / f"{topic}-0" / "00000000000000000000.log").write_bytes(batch)
        broker = await world.start(0, boot_id=boot_id)
        hosted = broker.partitions.get(topic, 0)
        assert hosted is not None
        assert hosted.log.log_end_offset == records_left
        assert len(list(data.glob(f"{topic}-0.*-stray"))) == 1 - records_left


@in_a_world
async def test_two_brokers_cannot_have_one_id(world: World) -> None:
    await world.start(0)
    with pytest.raises(DuplicateBrokerRegistration, match=r"broker\.id 0"):
        await world.start(0, directory="another")


@in_a_world
async def test_directories_of_another_cluster_are_refused(world: World) -> None:
    await world.start(0)
    await world.stop(0)
    note = world.directory / "broker-0" / "meta.properties"
    cluster_id = znodes.decode_cluster_id((await world.store.get(znodes.CLUSTER_ID))[0])
    note.write_text(note.read_text().replace(cluster_id, "AAAAAAAAAAAAAAAAAAAAAA"))
    with pytest.raises(ConfigError, match="cluster"):
        await world.start(0)


@in_a_world
async def test_a_broker_without_an_id_gets_one_and_keeps_it(world: World) -> None:
    broker = await world.start(-1)
    assert broker.broker_id == 1001
    await world.stop(1001)
    again = await world.start(-1)
    assert again.broker_id == 1001
    other = await world.start(-1, directory="other")
    assert other.broker_id == 1002
