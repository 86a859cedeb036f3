"""Waiting for a store that is away: for as long as somebody is served, and no longer."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.cluster.control.fenced_writes import FencedWrites
from penstock.cluster.registration import prepare_tree
from penstock.meta.deadline import DeadlineStore, StoreTimedOut, deadline_in
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import (
    Create,
    MultiFailed,
    NodeExists,
    OutcomeUnknown,
    SessionState,
    StoreUnavailable,
)

LONG_S = 60.0
NO_TIME_S = 0.05


class Unlinked:
    """A store that can be cut off, and whose answers may be lost with the link."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.session_state = SessionState.CONNECTED
        self.session_id = store.session_id
        self.ops_per_multi_max = 100
        self.asked = 0
        self.loses: list[bool] = []  # Of the next writes: whether they arrive; no answer comes.
        self._callbacks: list[Callable[[SessionState], None]] = []

    def turn(self, state: SessionState) -> None:
        self.session_state = state
        for callback in tuple(self._callbacks):
            callback(state)

    def on_session(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    async def multi(self, ops: Any) -> Any:
        self._refuse()
        if self.loses:
            if self.loses.pop(0):
                await self._store.multi(ops)
            self.turn(SessionState.SUSPENDED)
            raise OutcomeUnknown("no answer came")
        return await self._store.multi(ops)

    async def multi_get(self, paths: Any) -> Any:
        self._refuse()
        return await self._store.multi_get(paths)

    def _refuse(self) -> None:
        self.asked += 1
        if self.session_state is SessionState.SUSPENDED:
            raise StoreUnavailable("there is no link")


async def opened(path: Path) -> tuple[Unlinked, FencedWrites]:
    store = await SqliteStore.open(path / "metadata.db")
    await prepare_tree(store, cluster_id="c")
    unlinked = Unlinked(store)
    return unlinked, FencedWrites(DeadlineStore(unlinked), 0)  # type: ignore[arg-type]


def test_without_a_client_that_waits_nothing_waits(tmp_path: Path) -> None:
    async def run() -> None:
        store, writes = await opened(tmp_path)
        store.turn(SessionState.SUSPENDED)
        with pytest.raises(StoreUnavailable) as refused:
            await writes.commit([Create("/a", b"")])
        assert not isinstance(refused.value, StoreTimedOut)
        assert store.asked == 1

    asyncio.run(run())


def test_a_change_waits_for_the_link_and_is_made_once(tmp_path: Path) -> None:
    async def run() -> None:
        store, writes = await opened(tmp_path)
        store.turn(SessionState.SUSPENDED)
        with deadline_in(LONG_S):
            change = asyncio.create_task(writes.commit([Create("/a", b"x")]))
        while not store.asked:
            await asyncio.sleep(0)
        store.turn(SessionState.CONNECTED)
        assert await change == ["/a"]
        with pytest.raises(MultiFailed):
            await writes.commit([Create("/a", b"x")])

    asyncio.run(run())


def test_when_its_time_is_over_a_change_is_given_up(tmp_path: Path) -> None:
    async def run() -> None:
        store, writes = await opened(tmp_path)
        store.turn(SessionState.SUSPENDED)
        with deadline_in(NO_TIME_S), pytest.raises(StoreTimedOut):
            await writes.commit([Create("/a", b"x")])
        store.turn(SessionState.CONNECTED)
        assert await store.multi_get(["/a"]) == [None]

    asyncio.run(run())


@pytest.mark.parametrize("arrives", [True, False])
def test_a_change_whose_answer_was_lost_is_made_exactly_once(tmp_path: Path, arrives: bool) -> None:
    async def run() -> None:
        store, writes = await opened(tmp_path)
        store.loses = [arrives]
        with deadline_in(LONG_S):
            change = asyncio.create_task(writes.commit([Create("/a", b"x")]))
        while store.session_state is SessionState.CONNECTED:
            await asyncio.sleep(0)
        store.turn(SessionState.CONNECTED)
        assert await change == ["/a"]
        (node,) = await store.multi_get(["/a"])
        assert node is not None and (node[0], node[1].version) == (b"x", 0)

    asyncio.run(run())


def test_a_first_try_that_arrives_late_is_not_taken_for_somebody_elses(tmp_path: Path) -> None:
    async def run() -> None:
        store, writes = await opened(tmp_path)
        inner = store.multi

        async def late(ops: Any) -> Any:
            store.multi = inner  # type: ignore[method-assign]
            asyncio.get_running_loop().call_soon(lambda: None)
            raise OutcomeUnknown("no answer came")

        async def second(ops: Any) -> Any:
            await inner(ops)  # The first one, on its way all the time.
            return await inner(ops)

        store.multi = late  # type: ignore[method-assign]
        with deadline_in(LONG_S):
            found_out = writes._find_out

            async def then_late(ops: Any) -> Any:
                found = await found_out(ops)
                if found is None:
                    store.multi = second  # type: ignore[method-assign]
                return found

            writes._find_out = then_late  # type: ignore[method-assign]
            assert await writes.commit([Create("/a", b"x")]) == ["/a"]

    asyncio.run(run())


def test_what_somebody_else_made_is_still_refused(tmp_path: Path) -> None:
    async def run() -> None:
        store, writes = await opened(tmp_path)
        await writes.commit([Create("/a", b"other")])
        store.loses = [False]
        with deadline_in(LONG_S):
            change = asyncio.create_task(writes.commit([Create("/a", b"x")]))
        while store.session_state is SessionState.CONNECTED:
            await asyncio.sleep(0)
        store.turn(SessionState.CONNECTED)
        with pytest.raises(MultiFailed) as refused:
            await change
        assert isinstance(refused.value.reason, NodeExists)

    asyncio.run(run())
