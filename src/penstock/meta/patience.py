"""Waiting for a store that is away, on behalf of somebody who said how long.

A store refuses at once what it cannot do without a link, because only the caller knows whether it
still makes sense. A client's administrative request does, until its own timeout: ZooKeeper may be
back by then. What broke off unanswered is not repeated here: that takes somebody who can tell
whether it happened (cluster/fenced_writes.py).
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

# When whoever is served loses patience, by the loop's clock; None: it has none.
_deadline_s: ContextVar[float | None] = ContextVar("deadline_s", default=None)
_TURN_S: Final = 5.0
_NOTICE_S: Final = 0.05  # That a link is gone is sometimes told a moment after a request failed.


class StoreTimedOut(StoreUnavailable):
    """The store was away for as long as there was patience; nothing was done."""


@contextmanager
def patient_for(timeout_s: float) -> Iterator[None]:
    """What is asked of a patient store from here on may wait so long in all."""
    token = _deadline_s.set(asyncio.get_running_loop().time() + timeout_s)
    try:
        yield
    finally:
        _deadline_s.reset(token)


def is_patient() -> bool:
    """Whether there is somebody to wait for, and time left."""
    deadline_s = _deadline_s.get()
    return deadline_s is not None and asyncio.get_running_loop().time() < deadline_s


async def taken(lock: asyncio.Lock) -> None:
    """Take the lock before patience ends, or soon after; raises StoreTimedOut.

    Whoever has no time for a store that is away still has its turn among others.
    """
    deadline_s = _deadline_s.get()
    try:
        async with asyncio.timeout_at(None if deadline_s is None else deadline_s + _TURN_S):
            await lock.acquire()
    except TimeoutError:
        raise StoreTimedOut("others wait for it as well") from None


class PatientStore:
    """Another store, with the patience of whoever is served."""

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
        return await self._patiently(lambda: self._store.get(path))

    async def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        return await self._patiently(lambda: self._store.multi_get(paths))

    async def children(self, path: str) -> list[str]:
        return await self._patiently(lambda: self._store.children(path))

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        return await self._patiently(lambda: self._store.multi(ops))

    async def watch_once(self, path: str, kind: WatchKind) -> Future[WatchEvent]:
        return await self._store.watch_once(path, kind)

    def on_session(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        return self._store.on_session(callback)

    async def close(self) -> None:
        await self._store.close()

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Refused for want of a link is certainly not done, so it may be asked again."""
        while True:
            try:
                return await ask()
            except StoreUnavailable as error:
                if _deadline_s.get() is None:
                    raise
                await self._linked_again(error)

    async def _linked_again(self, error: StoreUnavailable) -> None:
        if self._store.session_state is SessionState.CONNECTED:
            await asyncio.sleep(_NOTICE_S)
            if self._store.session_state is SessionState.CONNECTED:
                raise error  # It has a reason of its own, such as a full disk.
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
