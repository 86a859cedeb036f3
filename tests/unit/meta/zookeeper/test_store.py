"""What only a store on a network can show: broken links, expired sessions, unknown outcomes."""

import asyncio
import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.processes import HOST, free_port
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually
from tests.support.zookeeper import ZkStores, ZooKeeperEnsemble, ZooKeeperProcess

from penstock.errors import ConfigError
from penstock.meta.guardian import process as guardian_process
from penstock.meta.store import (
    Change,
    Create,
    Delete,
    MetaStore,
    NoNode,
    Op,
    OutcomeUnknown,
    SessionLost,
    SessionState,
    Set,
    StoreUnavailable,
    WatchEvent,
    WatchKind,
)
from penstock.meta.zookeeper.address import parse_address
from penstock.meta.zookeeper.store import ZkStore

LIMIT_S = 120


class BrokenNetwork:
    """A node of the test's own in ZooKeeper, reached over a network that can be broken."""

    def __init__(self, zookeeper: ZooKeeperProcess, proxy: TcpProxy) -> None:
        self.proxy = proxy
        self.chroot = f"/{uuid.uuid4()}"
        self.connect = f"{HOST}:{proxy.port}{self.chroot}"
        self.direct = ZkStores(zookeeper, self.chroot)

    async def open(self, **options: int) -> ZkStore:
        return await ZkStore.open(self.connect, **{"session_timeout_ms": 20_000, **options})


@pytest.fixture
def network(zookeeper: ZooKeeperProcess) -> Iterator[BrokenNetwork]:
    with TcpProxy(zookeeper.port) as proxy:
        yield BrokenNetwork(zookeeper, proxy)


async def until(store: MetaStore, state: SessionState) -> None:
    reached = asyncio.Event()

    def look(now: SessionState) -> None:
        if now is state:
            reached.set()

    stop = store.on_session(look)
    if store.session_state is not state:
        await asyncio.wait_for(reached.wait(), LIMIT_S)
    stop()


async def break_and_heal(network: BrokenNetwork, store: ZkStore, *meanwhile: Op) -> None:
    """The link breaks, somebody else writes, the link comes back."""
    network.proxy.cut()
    await until(store, SessionState.SUSPENDED)
    if meanwhile:
        other = await network.direct.open()
        await other.multi(meanwhile)
        await other.close()
    network.proxy.heal()
    await until(store, SessionState.CONNECTED)


# The link


async def test_a_session_outlives_the_death_and_return_of_the_server(tmp_path: Path) -> None:
    with ZooKeeperProcess(tmp_path) as server:
        store = await ZkStore.open(server.connect, session_timeout_ms=20_000)
        told: list[SessionState] = []
        store.on_session(told.append)
        await store.multi([Create("/mine", b"x", ephemeral=True)])
        session_id = store.session_id
        watch = await store.watch_once("/mine", WatchKind.DATA)
        server.kill()
        await until(store, SessionState.SUSPENDED)
        with pytest.raises(StoreUnavailable):
            await store.get("/mine")
        server.start()
        await until(store, SessionState.CONNECTED)
        assert told == [SessionState.SUSPENDED, SessionState.CONNECTED]
        assert (await store.get("/mine"))[1].owner == store.session_id == session_id
        assert not watch.done()
        await store.multi([Set("/mine", b"y")])
        assert await watch == WatchEvent("/mine", Change.WRITTEN)
        await store.close()


async def test_without_a_link_everything_is_refused_at_once(network: BrokenNetwork) -> None:
    store = await network.open()
    network.proxy.cut()
    await until(store, SessionState.SUSPENDED)
    for attempt in (
        store.get("/"),
        store.children("/"),
        store.multi_get(["/"]),
        store.multi([Create("/a")]),
        store.watch_once("/", WatchKind.DATA),
    ):
        with pytest.raises(StoreUnavailable):
            await attempt
    network.proxy.heal()
    await until(store, SessionState.CONNECTED)
    assert await store.children("/") == []
    await store.close()


async def test_a_write_whose_answer_is_lost_has_an_unknown_outcome(network: BrokenNetwork) -> None:
    store = await network.open()
    other = await network.direct.open()
    network.proxy.mute()
    writing = asyncio.create_task(store.multi([Create("/a", b"x")]))
    while "a" not in await other.children("/"):
        await asyncio.sleep(0.01)
    network.proxy.cut()
    with pytest.raises(OutcomeUnknown):
        await writing
    await until(store, SessionState.SUSPENDED)  # Who waits for an answer may hear of it first.
    network.proxy.heal()
    await until(store, SessionState.CONNECTED)
    assert (await store.get("/a"))[0] == b"x"
    await store.close()
    await other.close()


async def test_what_was_not_sent_is_known_not_to_have_happened(network: BrokenNetwork) -> None:
    store = await network.open(in_flight_max=1)
    network.proxy.mute()
    writing = [asyncio.create_task(store.multi([Create(f"/{n}")])) for n in range(3)]
    other = await network.direct.open()
    while "0" not in await other.children("/"):
        await asyncio.sleep(0.01)
    network.proxy.cut()
    outcomes = await asyncio.gather(*writing, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [
        OutcomeUnknown,
        StoreUnavailable,
        StoreUnavailable,
    ]
    await until(store, SessionState.SUSPENDED)
    network.proxy.heal()
    await until(store, SessionState.CONNECTED)
    assert await store.children("/") == ["0"]
    await store.close()
    await other.close()


async def test_reads_whose_answer_is_lost_are_refused(network: BrokenNetwork) -> None:
    store = await network.open()
    network.proxy.mute()
    reading = [
        asyncio.create_task(attempt)
        for attempt in (
            store.get("/"),
            store.multi_get(["/"]),
            store.children("/"),
            store.watch_once("/", WatchKind.CHILDREN),
        )
    ]
    await asyncio.sleep(0)
    network.proxy.cut()
    for attempt in reading:
        with pytest.raises(StoreUnavailable):
            await attempt
    await store.close()


# Watches over a broken link


@pytest.mark.parametrize(
    ("path", "kind", "meanwhile", "change"),
    [
        ("/a", WatchKind.DATA, [Set("/a", b"y")], Change.WRITTEN),
        ("/a", WatchKind.DATA, [Delete("/a")], Change.DELETED),
        ("/a", WatchKind.DATA, [Delete("/a"), Create("/a")], Change.DELETED),
        ("/new", WatchKind.DATA, [Create("/new")], Change.CREATED),
        ("/a", WatchKind.CHILDREN, [Create("/a/b")], Change.CHILDREN),
        ("/a", WatchKind.CHILDREN, [Delete("/a")], Change.DELETED),
        ("/a", WatchKind.CHILDREN, [Delete("/a"), Create("/a")], Change.DELETED),
    ],
)
async def test_a_watch_tells_what_happened_while_the_link_was_broken(
    network: BrokenNetwork, path: str, kind: WatchKind, meanwhile: list[Op], change: Change
) -> None:
    store = await network.open()
    await store.multi([Create("/a")])
    watch = await store.watch_once(path, kind)
    await break_and_heal(network, store, *meanwhile)
    await store.children("/")  # The watch is heard before a read can show the change.
    assert watch.done()
    assert watch.result() == WatchEvent(path, change)
    await store.close()


async def test_a_watch_stays_silent_about_a_mere_break_of_the_link(
    network: BrokenNetwork,
) -> None:
    store = await network.open()
    await store.multi([Create("/a"), Create("/a/b")])
    data = await store.watch_once("/a", WatchKind.DATA)
    children = await store.watch_once("/a", WatchKind.CHILDREN)
    cancelled = await store.watch_once("/a", WatchKind.DATA)
    cancelled.cancel()
    for _ in range(2):
        await break_and_heal(network, store, Set("/a/b", b"not watched"))
    await store.get("/a")
    assert not data.done()
    assert not children.done()
    await store.multi([Set("/a", b"x"), Delete("/a/b")])
    assert (await data).change is Change.WRITTEN
    assert (await children).change is Change.CHILDREN
    await store.close()


# The end of a session


async def test_an_expired_session_is_over_for_good(network: BrokenNetwork) -> None:
    store = await network.open(session_timeout_ms=1_000)
    other = await network.direct.open()
    told: list[SessionState] = []
    store.on_session(told.append)
    await store.multi([Create("/mine", ephemeral=True)])
    watch = await store.watch_once("/mine", WatchKind.DATA)
    network.proxy.cut()
    while "mine" in await other.children("/"):
        await asyncio.sleep(0.05)
    assert not watch.done()  # Nobody has told this side yet.
    network.proxy.heal()
    assert await asyncio.wait_for(watch, LIMIT_S) == WatchEvent("/mine", Change.SESSION_LOST)
    assert told == [SessionState.SUSPENDED, SessionState.LOST]
    with pytest.raises(SessionLost):
        await store.multi([Create("/mine", ephemeral=True)])
    await store.close()
    assert told == [SessionState.SUSPENDED, SessionState.LOST]
    again = await network.open()
    assert again.session_id != store.session_id
    await again.multi([Create("/mine", ephemeral=True)])
    await again.close()
    await other.close()


async def test_no_session_is_opened_in_place_of_an_expired_one(
    zookeeper: ZooKeeperProcess, network: BrokenNetwork
) -> None:
    """kazoo would do that by itself, and a late write would land in a session nobody knows."""
    store = await network.open(session_timeout_ms=1_000)
    address = (HOST, network.proxy.port)
    store._link._handler.create_connection(address=address, hostname=HOST).close()
    network.proxy.cut()
    await until(store, SessionState.SUSPENDED)
    session = f"{store.session_id:#x}".encode()
    while session in zookeeper.ask(b"dump"):
        await asyncio.sleep(0.05)
    network.proxy.heal()
    await until(store, SessionState.LOST)
    with pytest.raises(ConnectionAbortedError):
        store._link._handler.create_connection(address=address, hostname=HOST)
    await store.close()


async def test_whoever_knows_the_secret_can_end_the_session(network: BrokenNetwork) -> None:
    store = await network.open()
    watch = await store.watch_once("/", WatchKind.DATA)
    secret = (*store.session_secret, store.session_timeout_ms)
    assert await asyncio.to_thread(
        guardian_process.end_session, secret, [(HOST, network.proxy.port)]
    )
    assert (await asyncio.wait_for(watch, LIMIT_S)).change is Change.SESSION_LOST
    assert store.session_state is SessionState.LOST
    await store.close()


async def test_a_loop_that_hangs_loses_its_session(
    zookeeper: ZooKeeperProcess, zk_stores: ZkStores
) -> None:
    store = await zk_stores.open(session_timeout_ms=1_500)
    await store.multi([Create("/mine", ephemeral=True)])
    node = f"{parse_address(zk_stores.connect).chroot}/mine".encode()
    assert node in zookeeper.ask(b"dump")
    # This blocks the loop, while kazoo's thread would go on greeting the server.
    eventually(lambda: node not in zookeeper.ask(b"dump"), timeout_s=LIMIT_S, what="its end")
    await until(store, SessionState.LOST)


async def test_a_loop_that_hung_for_less_goes_on_with_its_session(zk_stores: ZkStores) -> None:
    store = await zk_stores.open(session_timeout_ms=20_000)
    session_id = store.session_id
    store._link.hold()
    await until(store, SessionState.SUSPENDED)
    store._link.release()
    await until(store, SessionState.CONNECTED)
    assert store.session_id == session_id
    assert await store.children("/") == []


# Addresses


async def test_a_missing_root_is_made(zookeeper: ZooKeeperProcess) -> None:
    root = f"/{uuid.uuid4()}"
    outside = await ZkStore.open(zookeeper.connect)
    for _ in range(2):  # The second time it is there.
        store = await ZkStore.open(f"{zookeeper.connect}{root}/a/b")
        await store.multi([Set("/", b"x")])
        assert await store.children("/") == []
        await store.close()
    assert (await outside.get(f"{root}/a/b"))[0] == b"x"
    await outside.close()


async def test_a_tool_may_leave_a_missing_root_alone(zookeeper: ZooKeeperProcess) -> None:
    root = f"/{uuid.uuid4()}"
    store = await ZkStore.open(zookeeper.connect + root, create_chroot=False)
    with pytest.raises(NoNode):
        await store.children("/")
    await store.close()


async def test_an_address_where_nobody_listens_is_named() -> None:
    connect = f"{HOST}:{free_port()}"
    with pytest.raises(StoreUnavailable, match=rf"{connect} .*refused.*zookeeper\.connect"):
        await ZkStore.open(connect, connection_timeout_ms=300)


async def test_a_name_that_is_none_is_told() -> None:
    with pytest.raises(StoreUnavailable, match=r"no server's name could be resolved"):
        await ZkStore.open("no-such-host.invalid:2181", connection_timeout_ms=300)


async def test_a_server_that_gives_no_session_is_told() -> None:
    with TcpProxy(free_port()) as proxy:
        proxy.cut()
        with pytest.raises(StoreUnavailable, match="gave no session"):
            await ZkStore.open(f"{HOST}:{proxy.port}", connection_timeout_ms=300)


@pytest.mark.parametrize(
    ("connect", "servers", "chroot"),
    [
        ("h", (("h", 2181),), ""),
        ("h:1/", (("h", 1),), ""),
        ("a:1, b:2/kafka", (("a", 1), ("b", 2)), "/kafka"),
        ("[::1]:3,b/x/y/", (("::1", 3), ("b", 2181)), "/x/y"),
    ],
)
def test_addresses_are_servers_and_a_root(
    connect: str, servers: tuple[tuple[str, int], ...], chroot: str
) -> None:
    address = parse_address(connect)
    assert (address.servers, address.chroot) == (servers, chroot)
    assert parse_address(address.hosts).servers == servers
    for path in ("/", "/a", "/a/b"):
        assert address.own(address.full(path)) == path


@pytest.mark.parametrize(
    "connect", ["", "/kafka", "h:x", "h:0", "h:99999", "h,,i", "a b:1", "h:1/a//b", "h:1/.."]
)
def test_what_is_no_address_is_refused_with_the_name_of_the_setting(connect: str) -> None:
    with pytest.raises(ConfigError, match=r"^zookeeper\.connect is .*zk1:2181"):
        parse_address(connect)


# Much at once


async def test_ten_thousand_nodes_are_read_as_of_one_moment(zk_stores: ZkStores) -> None:
    store, other = await zk_stores.open(), await zk_stores.open()
    paths = [f"/p/{n}" for n in range(10_000)]
    await store.multi([Create("/p")])
    for at in range(0, len(paths), store.ops_per_multi_max):
        await store.multi([Create(path, b"0") for path in paths[at:][: store.ops_per_multi_max]])
    await assert_reads_are_of_one_moment(store, other, paths)


async def assert_reads_are_of_one_moment(
    store: ZkStore, other: ZkStore, paths: list[str], *, rounds: int = 5
) -> None:
    """While `other` writes the first and the last node in one step again and again."""
    is_reading = True
    # They were created in different steps; from here on they are only written in one.
    await other.multi([Set(paths[0], b"0"), Set(paths[-1], b"0")])

    async def write() -> int:
        count = 0
        while is_reading:
            count += 1
            await other.multi([Set(paths[0], b"%d" % count), Set(paths[-1], b"%d" % count)])
        return count

    writing = asyncio.create_task(write())
    for _ in range(rounds):
        found = await store.multi_get([*paths, "/none"])
        assert found[-1] is None
        nodes = [node for node in found if node is not None]
        assert len(nodes) == len(paths)
        assert (nodes[0][0], nodes[0][1].mzxid) == (nodes[-1][0], nodes[-1][1].mzxid)
        assert {data for data, _ in nodes[1:-1]} == {b"0"}
    is_reading = False
    assert await writing > 0


async def test_more_calls_than_may_be_in_flight_are_answered_in_order(zk_stores: ZkStores) -> None:
    store = await zk_stores.open(in_flight_max=3)
    await store.multi([Create("/a", b"x")])
    order: list[int] = []

    async def read(number: int) -> None:
        await store.get("/a")
        order.append(number)

    await asyncio.gather(*(read(n) for n in range(1000)))
    assert order == list(range(1000))


async def test_a_cancelled_call_gives_its_place_to_the_next(zk_stores: ZkStores) -> None:
    store = await zk_stores.open(in_flight_max=1)
    calls = [asyncio.create_task(store.children("/")) for _ in range(3)]
    await asyncio.sleep(0)
    calls[0].cancel()
    calls[1].cancel()
    assert await calls[2] == []
    assert await store.children("/") == []


async def test_closing_waits_for_what_was_asked_before(zk_stores: ZkStores) -> None:
    store, other = await zk_stores.open(), await zk_stores.open()
    writing = asyncio.create_task(store.multi([Create("/a")]))
    await asyncio.sleep(0)
    await store.close()
    assert await writing == ["/a"]
    assert await other.children("/") == ["a"]


async def test_a_store_leaves_no_threads_and_no_sockets(zk_stores: ZkStores) -> None:
    first = await zk_stores.open()
    await first.close()  # Starts the pool that all blocking work of a loop shares.
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(3):
        store = await zk_stores.open(session_timeout_ms=400)
        await store.close()
    eventually(lambda: threading.active_count() <= threads + 1, what="the end of the threads")
    eventually(
        lambda: len(os.listdir("/proc/self/fd")) <= files,  # noqa: PTH208
        what="the end of the sockets",
    )


# Several servers


async def test_a_session_goes_on_when_the_leader_of_the_ensemble_dies(tmp_path: Path) -> None:
    with ZooKeeperEnsemble(tmp_path) as ensemble:
        stores = ZkStores(ensemble, "/cluster")
        store = await stores.open(session_timeout_ms=20_000)
        await store.multi([Create("/mine", ephemeral=True)])
        leader = ensemble.leader
        leader.kill()
        survivor = await stores.open(session_timeout_ms=20_000, connection_timeout_ms=60_000)
        await until(store, SessionState.CONNECTED)
        for one in (store, survivor):
            assert (await one.get("/mine"))[1].owner == store.session_id
        paths = [f"/{n}" for n in range(300)]
        await store.multi([Create(path, b"0") for path in paths])
        while not all(await survivor.multi_get(paths)):  # Its server may be a little behind.
            await asyncio.sleep(0.01)
        await assert_reads_are_of_one_moment(survivor, store, paths, rounds=50)
        leader.start()
        # A guardian may reach another server than its broker did.
        secret = (*store.session_secret, store.session_timeout_ms)
        address = (HOST, leader.port)
        assert await asyncio.to_thread(guardian_process.end_session, secret, [address])
        await until(store, SessionState.LOST)
        while "mine" in await survivor.children("/"):
            await asyncio.sleep(0.01)
        await stores.aclose()
