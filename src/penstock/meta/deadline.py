"""Waiting for a metadata store that is away, until the deadline of a client's request.

A store without a link refuses every request at once, because only the caller knows whether it may
be sent later. An administrative request of a client may, until the client's own timeout: ZooKeeper
may be back by then. A request that was sent and never answered is not repeated here. It may have
been carried out, and only cluster/control/fenced_writes.py can find out.
"""

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

from penstock.meta.store import (
    MetaStore,
    Node,
    Op,
    Result,
    SessionState,
    StoreUnavailable,
    WatchEvent,
    WatchKind,
)

T = TypeVar("T")

# When the current request's client stops waiting, by the loop's clock; None: there is no client.
_deadline_s: ContextVar[float | None] = ContextVar("deadline_s", default=None)
_TURN_S: Final = 5.0  # Added to the deadline for the wait behind other requests.
_NOTICE_S: Final = 0.05  # A request can fail a moment before the session's state says why.


class StoreTimedOut(StoreUnavailable):
    """The store was away until the deadline; nothing was done."""


@contextmanager
def deadline_in(timeout_s: float) -> Iterator[None]:
    """Let everything asked of a `DeadlineStore` inside the block wait so long in all."""
    token = _deadline_s.set(asyncio.get_running_loop().time() + timeout_s)
    try:
        yield
    finally:
        _deadline_s.reset(token)


def has_time_left() -> bool:
    """Whether there is a deadline, and it lies ahead."""
    deadline_s = _deadline_s.get()
    return deadline_s is not None and asyncio.get_running_loop().time() < deadline_s


async def acquire_in_time(lock: asyncio.Lock) -> None:
    """Take the lock before the deadline, or soon after; raises StoreTimedOut.

    The few seconds more are for a client that allows no time at all: it does not wait for a store
    that is away, but it does wait for the requests before it.
    """
    deadline_s = _deadline_s.get()
    try:
        async with asyncio.timeout_at(None if deadline_s is None else deadline_s + _TURN_S):
            await lock.acquire()
    except TimeoutError:
        raise StoreTimedOut("others wait for it as well") from None


class DeadlineStore:
    """Another store, whose requests wait for its link until the deadline."""

    def __init__(self, store: MetaStore) -> None:
        self._store = store

    @property
    def session_id(self) -> int:
        return self._store.session_id

    @property
    def session_state(self) -> SessionState:
        return self._store.session_state

    @property
    def ops_per_multi_max(self) -> int:
        return self._store.ops_per_multi_max

    async def get(self, path: str) -> Node:
        return await self._ask_until_deadline(lambda: self._store.get(path))

    async def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        return await self._ask_until_deadline(lambda: self._store.multi_get(paths))

    async def children(self, path: str) -> list[str]:
        return await self._ask_until_deadline(lambda: self._store.children(path))

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        return await self._ask_until_deadline(lambda: self._store.multi(ops))

    async def watch_once(self, path: str, kind: WatchKind) -> Future[WatchEvent]:
        return await self._store.watch_once(path, kind)

    def on_session(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        return self._store.on_session(callback)

    async def close(self) -> None:
        await self._store.close()

    async def _ask_until_deadline(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask again after a refusal for want of a link: it says that nothing was done."""
        while True:
            try:
                return await ask()
            except StoreUnavailable as error:
                if _deadline_s.get() is None:
                    raise
                await self._wait_for_link(error)

    async def _wait_for_link(self, error: StoreUnavailable) -> None:
        if self._store.session_state is SessionState.CONNECTED:
            await asyncio.sleep(_NOTICE_S)
            if self._store.session_state is SessionState.CONNECTED:
                raise error  # The link is there, so it was refused for another reason: a full disk.
        changed = asyncio.Event()
        stop = self._store.on_session(lambda _state: changed.set())
        try:
            async with asyncio.timeout_at(_deadline_s.get()):
                while self._store.session_state is SessionState.SUSPENDED:
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            raise StoreTimedOut(str(error)) from error
        finally:
            stop()
