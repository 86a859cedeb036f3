"""The ground that simulations stand on does what it says."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from tests.simulation.aimed import lose_twice
from tests.simulation.clock import Process, VirtualLoop
from tests.simulation.cluster import World
from tests.simulation.disk import Disk
from tests.simulation.faults import Nemesis
from tests.simulation.network import Network, SimPeers, host_name
from tests.simulation.store import Ensemble, SimStore
from tests.simulation.trace import Trace

from penstock.meta.store import (
    Create,
    MetaError,
    OutcomeUnknown,
    SessionState,
    Set,
    StoreUnavailable,
    WatchKind,
)
from penstock.net.peers import PeerUnreachable
from penstock.protocol.apis import Request, Response
from penstock.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

# Time and processes


async def test_an_hour_passes_at_once(loop: VirtualLoop) -> None:
    before_s = loop.time()
    await asyncio.sleep(3600)
    assert loop.time() == before_s + 3600


async def test_a_paused_process_does_nothing_and_then_catches_up(loop: VirtualLoop) -> None:
    process, ticks = Process(loop, "one"), []

    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(loop.time())

    process.start(tick())
    await asyncio.sleep(2.5)
    process.pause()
    await asyncio.sleep(10)
    assert len(ticks) == 2
    process.resume()
    await asyncio.sleep(1.5)
    assert len(ticks) == 4


async def test_a_killed_process_never_runs_again_not_even_to_clean_up(loop: VirtualLoop) -> None:
    process, said = Process(loop, "one"), []

    async def work() -> None:
        try:
            await asyncio.sleep(1)
            said.append("worked")
        finally:
            said.append("cleaned up")

    process.start(work())
    await asyncio.sleep(0.5)
    process.kill()
    await asyncio.sleep(10)
    assert said == []


async def test_work_for_a_thread_is_done_later_and_its_result_awaited(loop: VirtualLoop) -> None:
    done: list[int] = []
    future = loop.run_in_executor(None, done.append, 1)
    assert done == []
    await future
    assert done == [1]


# The network


class Net:
    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.network = Network(loop, random.Random(1), Trace(loop.time))
        self.network.is_rough = False
        self.one, self.two = Process(loop, host_name(1)), Process(loop, host_name(2))
        self.served: list[float] = []
        self.peers = SimPeers(self.network, self.one)
        self.wait_s = 0.0
        self.network.listen(host_name(2), self.two, self.serve)

    async def serve(self, _: Request, __: int, ___: str) -> Response:
        self.served.append(self.loop.time())
        await asyncio.sleep(self.wait_s)
        return ApiVersionsResponse()

    async def ask(self) -> Response:
        return await self.peers.ask(2, ApiVersionsRequest(), timeout_s=1.0, version=0)


@pytest.fixture
def net(loop: VirtualLoop) -> Net:
    return Net(loop)


async def test_an_answer_comes_back_through_the_codecs(net: Net) -> None:
    answer = await net.ask()
    assert isinstance(answer, ApiVersionsResponse)
    assert net.loop.time() > 1000


async def test_a_dead_process_refuses_and_a_machine_without_power_is_silent(net: Net) -> None:
    net.network.hang_up(host_name(2))
    with pytest.raises(PeerUnreachable) as caught:
        await net.ask()
    assert caught.value.is_refused
    net.network.listen(host_name(2), net.two, net.serve)
    net.network.hang_up(host_name(2), is_off=True)
    before_s = net.loop.time()
    with pytest.raises(PeerUnreachable) as caught:
        await net.ask()
    assert not caught.value.is_refused
    assert net.loop.time() == pytest.approx(before_s + 1.0)


async def test_a_machine_that_is_on_again_resets_connections_of_the_time_before(net: Net) -> None:
    await net.ask()
    net.network.hang_up(host_name(2), is_off=True)
    net.network.listen(host_name(2), net.two, net.serve)
    before_s = net.loop.time()
    with pytest.raises(PeerUnreachable, match="reset"):
        await net.ask()
    assert net.loop.time() < before_s + 0.1
    assert isinstance(await net.ask(), ApiVersionsResponse)


async def test_a_question_on_a_cut_path_may_arrive_long_after_it_was_given_up(net: Net) -> None:
    await net.ask()
    late = 0
    for _ in range(20):
        before = len(net.served)
        net.network.cut(host_name(1), host_name(2))
        with pytest.raises(PeerUnreachable):
            await net.ask()
        net.network.heal(host_name(1), host_name(2))
        await asyncio.sleep(10)
        late += len(net.served) - before
        await net.ask()
    assert 0 < late < 20  # Some are swallowed, some are kept.


async def test_one_way_is_cut_and_the_other_is_not(net: Net) -> None:
    await net.ask()
    net.network.cut(host_name(2), host_name(1))
    with pytest.raises(PeerUnreachable):
        await net.ask()
    assert len(net.served) == 2  # It was asked; only the answer did not come.


async def test_an_answer_without_its_connection_is_nobodys(net: Net) -> None:
    net.wait_s = 1.5
    with pytest.raises(PeerUnreachable):
        await net.ask()
    net.wait_s = 0.9
    started_s = net.loop.time()
    await net.ask()  # The late answer of the first question comes meanwhile.
    assert net.loop.time() - started_s > 0.9


async def test_a_paused_server_answers_when_it_goes_on(net: Net) -> None:
    net.two.pause()
    asking = asyncio.ensure_future(net.ask())
    await asyncio.sleep(0.5)
    net.two.resume()
    await asking


# The store


def session(ensemble: Ensemble, loop: VirtualLoop, name: str = "one") -> SimStore:
    return ensemble.open(Process(loop, name), timeout_s=3.0)


@pytest.fixture
def ensemble(loop: VirtualLoop) -> Ensemble:
    return Ensemble(loop, random.Random(3), Trace(loop.time))


async def test_a_session_that_is_cut_off_ends_and_learns_it_later(
    loop: VirtualLoop, ensemble: Ensemble
) -> None:
    store, other = session(ensemble, loop), session(ensemble, loop, "other")
    states: list[SessionState] = []
    store.on_session(states.append)
    await store.multi([Create("/e", ephemeral=True)])
    gone = await other.watch_once("/e", WatchKind.DATA)
    ensemble.cut("one")
    await gone
    assert states == [SessionState.SUSPENDED]
    await asyncio.sleep(5)
    ensemble.heal("one")
    await asyncio.sleep(2)
    assert states[-1] is SessionState.LOST


async def test_a_short_cut_leaves_the_session_alive(loop: VirtualLoop, ensemble: Ensemble) -> None:
    store = session(ensemble, loop)
    await store.multi([Create("/e", ephemeral=True)])
    ensemble.cut("one")
    await asyncio.sleep(2)
    ensemble.heal("one")
    await asyncio.sleep(2)
    assert store.session_state is SessionState.CONNECTED
    assert await store.children("/") == ["e"]


async def test_a_write_on_a_breaking_link_is_done_or_not_and_nobody_tells(
    loop: VirtualLoop, ensemble: Ensemble
) -> None:
    store, other = session(ensemble, loop), session(ensemble, loop, "other")
    await other.multi([Create("/n")])
    outcomes = set()
    rng = random.Random(9)
    for _ in range(60):
        while store.session_state is not SessionState.CONNECTED:
            await asyncio.sleep(0.1)
        before = (await other.get("/n"))[1].version
        writing = asyncio.ensure_future(store.multi([Set("/n", b"")]))
        await asyncio.sleep(rng.random() * 0.002)
        if rng.random() < 0.5:  # On its way, it is swallowed; answered, the answer is.
            ensemble.cut("one")
            await asyncio.sleep(0.1)
            ensemble.heal("one")
        ensemble.reset("one")
        await asyncio.sleep(1)
        try:
            await writing
        except OutcomeUnknown:
            outcomes.add((await other.get("/n"))[1].version - before)
    assert outcomes == {0, 1}


async def test_without_a_quorum_nothing_is_done_and_no_session_ends(
    loop: VirtualLoop, ensemble: Ensemble
) -> None:
    store = session(ensemble, loop)
    ensemble.set_up(is_up=False)
    await asyncio.sleep(20)
    with pytest.raises(StoreUnavailable):
        await store.get("/")
    ensemble.set_up(is_up=True)
    await asyncio.sleep(2)
    assert store.session_state is SessionState.CONNECTED


async def test_a_paused_process_loses_its_session(loop: VirtualLoop, ensemble: Ensemble) -> None:
    store = session(ensemble, loop)
    store.process.pause()
    await asyncio.sleep(4)
    assert store.session_state is SessionState.CONNECTED  # It has not heard of it.
    store.process.resume()
    await asyncio.sleep(1)
    assert store.session_state is SessionState.LOST
    with pytest.raises(MetaError):
        await store.get("/")


# Disks


def test_a_power_cut_keeps_what_was_flushed(tmp_path: Path) -> None:
    kept, lost = 0, 0
    for seed in range(30):
        disk = Disk(tmp_path / str(seed), random.Random(seed))
        path = disk.root / "0.log"
        path.write_bytes(b"a" * 100)
        disk.note_sync(str(path))
        with path.open("ab") as file:
            file.write(b"b" * 100)
        left = (disk.survive_power_cut() / "0.log").read_bytes()
        assert left[:100] == b"a" * 100
        kept += left == b"a" * 100 + b"b" * 100
        lost += len(left.rstrip(b"\0")) < 200
    assert lost > kept


def test_a_kill_keeps_everything_and_the_dead_cannot_touch_it(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "disk", random.Random(1))
    path = disk.root / "0.log"
    path.write_bytes(b"written")
    root = disk.survive_kill()
    path.write_bytes(b"by the dead")
    assert (root / "0.log").read_bytes() == b"written"


def test_a_rename_whose_directory_was_not_flushed_may_be_undone(tmp_path: Path) -> None:
    found = set()
    for seed in range(20):
        disk = Disk(tmp_path / str(seed), random.Random(seed))
        old, new = disk.root / "note.tmp", disk.root / "note"
        new.write_bytes(b"before")
        disk.note_sync(str(new))
        old.write_bytes(b"after")
        disk.note_sync(str(old))
        old.replace(new)
        disk.note_rename(str(old), str(new), b"before")
        found.add((disk.survive_power_cut() / "note").read_bytes())
    assert found == {b"before", b"after"}


def test_a_flushed_directory_keeps_its_names(tmp_path: Path) -> None:
    for seed in range(20):
        disk = Disk(tmp_path / str(seed), random.Random(seed))
        old, new = disk.root / "note.tmp", disk.root / "note"
        old.write_bytes(b"after")
        disk.note_sync(str(old))
        old.replace(new)
        disk.note_rename(str(old), str(new), None)
        disk.note_sync(str(disk.root))
        assert (disk.survive_power_cut() / "note").read_bytes() == b"after"


# Faults


class Stub:
    """As much of a machine as faults touch."""

    def __init__(self) -> None:
        self.process: object | None = object()
        self.is_lossy = False

    def start(self) -> None:
        self.process = object()

    def kill(self) -> None:
        self.process = None

    def cut_power(self) -> None:
        self.process, self.is_lossy = None, True


async def test_a_power_cut_waits_for_whoever_lost_data_meanwhile(loop: VirtualLoop) -> None:
    """Of two at once both may have had the only copies, which nobody promised to keep."""
    world: Any = World.__new__(World)
    world.machines = [Stub(), Stub(), Stub()]
    world.live = lambda: world.machines
    nemesis: Any = Nemesis.__new__(Nemesis)
    nemesis.world, nemesis.rng, nemesis.down = world, random.Random(1), set()
    fault = asyncio.create_task(lose_twice(nemesis))
    await asyncio.sleep(0.01)  # One is away, and another is about to lose its power.
    (third,) = set(world.machines) - nemesis.down
    third.cut_power()
    await fault
    assert [machine for machine in world.machines if machine.is_lossy] == [third]
    assert [machine for machine in world.machines if machine.process is None] == [third]
