"""Several processes on one file: death, silence, fencing, crashes. Promises: ../test_store.py."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.meta.conftest import SharedStores

from penstock.errors import ConfigError
from penstock.meta.shared import tree as shared_tree
from penstock.meta.shared.store import SharedStore
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import (
    Change,
    Create,
    MultiFailed,
    SessionLost,
    SessionState,
    Set,
    WatchEvent,
    WatchKind,
)

TIMEOUT_MS = 2_000

NEIGHBOUR = """
import asyncio, sys
from pathlib import Path
from penstock.meta.shared.store import SharedStore
from penstock.meta.store import Create, SessionLost, Set

async def main():
    store = await SharedStore.open(Path(sys.argv[1]), session_timeout_ms=int(sys.argv[2]))
    await store.multi([Create("/neighbour", ephemeral=True)])
    print("ready", store.session_id, flush=True)
    loop = asyncio.get_running_loop()
    while word := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        try:
            if word == "hold":
                with store._file._gate.held():
                    print("held", flush=True)
                    sys.stdin.readline()
            await store.multi([Set("/shared", word.encode())])
            print("written", flush=True)
        except SessionLost:
            print("lost", flush=True)
    await store.close()

asyncio.run(main())
"""


class Neighbour:
    """Another process with a session and an ephemeral node."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-c", NEIGHBOUR, str(path), str(TIMEOUT_MS)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    async def says(self) -> str:
        assert self.process.stdout is not None
        return (await asyncio.to_thread(self.process.stdout.readline)).strip()

    async def ready(self) -> int:
        return int((await self.says()).removeprefix("ready "))

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def shared(tmp_path: Path) -> SharedStores:
    return SharedStores(tmp_path, session_timeout_ms=TIMEOUT_MS)


@pytest.fixture
def neighbour(shared: SharedStores) -> Iterator[Neighbour]:
    process = Neighbour(shared.path)
    yield process
    process.end()


async def heard(watch: "asyncio.Future[WatchEvent]") -> WatchEvent:
    return await asyncio.wait_for(watch, 60)


async def test_a_session_ends_with_its_process(shared: SharedStores, neighbour: Neighbour) -> None:
    await neighbour.ready()
    store = await shared.open_shared()
    watch = await store.watch_once("/neighbour", WatchKind.DATA)
    neighbour.send(signal.SIGKILL)
    assert await heard(watch) == WatchEvent("/neighbour", Change.DELETED)
    assert await store.children("/") == []


async def test_a_write_of_another_process_is_heard(
    shared: SharedStores, neighbour: Neighbour
) -> None:
    await neighbour.ready()
    store = await shared.open_shared()
    await store.multi([Create("/shared")])
    for word in (b"one", b"two"):
        watch = await store.watch_once("/shared", WatchKind.DATA)
        neighbour.tell(word.decode())
        assert await heard(watch) == WatchEvent("/shared", Change.WRITTEN)
        assert (await store.get("/shared"))[0] == word
        assert await neighbour.says() == "written"


async def test_a_stopped_process_loses_its_session_and_can_write_nothing_later(
    shared: SharedStores, neighbour: Neighbour
) -> None:
    await neighbour.ready()
    store = await shared.open_shared()
    await store.multi([Create("/shared", b"ours")])
    watch = await store.watch_once("/neighbour", WatchKind.DATA)
    neighbour.send(signal.SIGSTOP)
    assert await heard(watch) == WatchEvent("/neighbour", Change.DELETED)
    neighbour.tell("zombie")
    neighbour.send(signal.SIGCONT)
    assert await neighbour.says() == "lost"
    assert (await store.get("/shared"))[0] == b"ours"


async def test_a_process_stopped_while_it_may_write_is_killed(
    shared: SharedStores, neighbour: Neighbour
) -> None:
    await neighbour.ready()
    store = await shared.open_shared()
    await store.multi([Create("/shared", b"ours")])
    neighbour.tell("hold")
    assert await neighbour.says() == "held"
    neighbour.send(signal.SIGSTOP)
    await asyncio.wait_for(store.multi([Set("/shared", b"after")]), 60)
    assert neighbour.process.wait(timeout=60) == -signal.SIGKILL
    assert await store.children("/") == ["shared"]


async def test_what_dead_processes_left_is_swept_by_the_next(
    shared: SharedStores, neighbour: Neighbour
) -> None:
    await neighbour.ready()
    neighbour.send(signal.SIGKILL)
    neighbour.process.wait()
    store = await shared.open_shared()
    assert await store.children("/") == []
    left = list(shared.path.with_suffix(".sessions").glob("*.bell"))
    assert len(left) == 1  # Our own.


async def test_a_closed_store_leaves_no_pipe(shared: SharedStores) -> None:
    store = await shared.open_shared()
    await store.close()
    assert list(shared.path.with_suffix(".sessions").glob("*.bell")) == []


async def test_a_session_that_others_ended_is_lost_at_its_next_call(shared: SharedStores) -> None:
    first, second = await shared.open_shared(), await shared.open_shared()
    told: list[SessionState] = []
    first.on_session(told.append)
    await first.multi([Create("/a")])
    await second._run(lambda: second._file.tree.end_session(first.session_id))
    with pytest.raises(SessionLost):
        await first.multi([Set("/a", b"x")])
    assert first.session_state is SessionState.LOST and told == [SessionState.LOST]
    assert (await second.get("/a"))[0] == b""


async def test_a_change_nobody_rang_for_is_heard_all_the_same(shared: SharedStores) -> None:
    """Its writer was killed between the commit and the ring."""
    first, second = await shared.open_shared(), await shared.open_shared()
    second._peers.close()
    watch = await first.watch_once("/a", WatchKind.DATA)
    await second.multi([Create("/a")])
    assert await heard(watch) == WatchEvent("/a", Change.CREATED)


async def test_who_has_fallen_behind_the_journal_must_begin_anew(
    shared: SharedStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_tree, "_KEPT", 1)
    monkeypatch.setattr(shared_tree, "_TRIM_EVERY", 1)
    first, second = await shared.open_shared(), await shared.open_shared()
    watch = await first.watch_once("/n0", WatchKind.DATA)
    second._peers.close()
    first._peers.close()
    for n in range(4):  # On its thread alone, so that nobody reads in between.
        second._file.tree.multi([Create(f"/n{n}")], second.session_id)
    with pytest.raises(SessionLost):
        await first.get("/n3")
    assert (await heard(watch)).change in (Change.SESSION_LOST, Change.CREATED)


async def test_of_many_writers_in_several_sessions_each_version_has_one(
    shared: SharedStores,
) -> None:
    sessions = [await shared.open_shared() for _ in range(3)]
    await sessions[0].multi([Create("/a")])
    outcomes = await asyncio.gather(
        *(sessions[n % 3].multi([Set("/a", b"%d" % n, n // 3)]) for n in range(30)),
        return_exceptions=True,
    )
    won = [outcome for outcome in outcomes if not isinstance(outcome, MultiFailed)]
    assert (await sessions[1].get("/a"))[1].version == len(won) > 0
    assert not [o for o in outcomes if isinstance(o, Exception) and not isinstance(o, MultiFailed)]


async def test_a_file_of_a_broker_alone_is_shared_later_and_back(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    alone = await SqliteStore.open(path)
    await alone.multi([Create("/a", b"kept"), Create("/e", ephemeral=True)])
    await alone.close()
    store = await SharedStore.open(path)
    assert await store.children("/") == ["a"]
    await store.multi([Create("/b")])
    with pytest.raises(ConfigError, match="in use by another process"):
        await SqliteStore.open(path)
    await store.close()
    alone = await SqliteStore.open(path)
    assert await alone.children("/") == ["a", "b"]
    await alone.close()


async def test_every_commit_reaches_the_disk(shared: SharedStores) -> None:
    store = await shared.open_shared()
    assert store._file.tree._pragma("synchronous") == 2  # FULL


async def test_a_pipe_is_not_inherited_by_programs_that_a_process_starts(
    shared: SharedStores,
) -> None:
    store = await shared.open_shared()
    assert not os.get_inheritable(store._file.bell._fd)
