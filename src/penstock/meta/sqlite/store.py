"""The metadata store of a broker that stands alone: one SQLite file, one thread.

Every call runs on the file's own thread in the order it was made, so the event loop never waits
for a disk. The file is locked against a second process; within the process several sessions may
share it, each with its own ephemeral nodes.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from penstock.meta.sqlite.tree import Changed, SqliteTree
from penstock.meta.sqlite.watches import NodeWatches
from penstock.meta.store import (
    Change,
    Delete,
    Node,
    NoNode,
    Op,
    Result,
    SessionLost,
    SessionState,
    WatchEvent,
    WatchKind,
    check_path,
)

T = TypeVar("T")


class _OpenFile:
    """What the sessions on one file share."""

    def __init__(self, path: Path, make_room: Callable[[], bool]) -> None:
        self.path = path
        self.make_room = make_room
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata")
        self.watches = NodeWatches()
        self.session_count = 0
        self.tree: SqliteTree  # Set by the first call, on the thread.

    async def run(self, work: Callable[[], T]) -> T:
        """Do it on the thread; the result arrives after the events of all that ran before.

        It is done even if the caller stops waiting: a half-cancelled write helps nobody.
        """
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self.thread, work))

    def open_tree(self) -> int:
        self.tree = SqliteTree(self.path, self.make_room)
        return self.tree.new_session()


class SqliteStore:
    """One session with the file; see MetaStore for what each call promises."""

    # A bound for the time that one transaction, and making it ready, holds up the others.
    ops_per_multi_max = 2_000

    def __init__(self, file: _OpenFile, session_id: int) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._state = SessionState.CONNECTED
        self._session_id = session_id
        self._callbacks: list[Callable[[SessionState], None]] = []
        self._watchers: dict[asyncio.Future[WatchEvent], str] = {}
        file.session_count += 1

    @classmethod
    async def open(
        cls, path: Path, *, make_room: Callable[[], bool] = lambda: False
    ) -> "SqliteStore":
        """Open or create the file; raises ConfigError with a sentence when that cannot be.

        `make_room` is asked, on the file's thread, when a write finds the disk full; what it
        refused is tried again as long as there was some.
        """
        file = _OpenFile(path, make_room)
        try:
            return cls(file, await file.run(file.open_tree))
        except BaseException:
            file.thread.shutdown(wait=False)
            raise

    async def open_session(self) -> "SqliteStore":
        """A further session on the same file, as another broker would have."""
        self._refuse_lost()
        return type(self)(self._file, await self._file.run(self._file.tree.new_session))

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def session_state(self) -> SessionState:
        return self._state

    async def get(self, path: str) -> Node:
        check_path(path)
        return await self._run(lambda: self._file.tree.get(path))

    async def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        for path in paths:
            check_path(path)
        return await self._run(lambda: self._file.tree.multi_get(paths))

    async def children(self, path: str) -> list[str]:
        check_path(path)
        return await self._run(lambda: self._file.tree.children(path))

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        for op in ops:
            check_path(op.path)
            if op.path == "/" and isinstance(op, Delete):
                raise ValueError("the root cannot be deleted")
        return await self._run(lambda: self._write(ops))

    async def watch_once(self, path: str, kind: WatchKind) -> asyncio.Future[WatchEvent]:
        check_path(path)
        self._refuse_lost()
        watcher: asyncio.Future[WatchEvent] = self._loop.create_future()
        self._watchers[watcher] = path
        watcher.add_done_callback(lambda done: self._watchers.pop(done, None))
        try:
            await self._run(lambda: self._place(path, kind, watcher))
        except BaseException:
            watcher.cancel()
            raise
        return watcher

    def on_session(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    async def close(self) -> None:
        if self._state is SessionState.LOST:
            return
        self._lose()
        self._file.session_count -= 1
        is_last = self._file.session_count == 0
        try:
            await self._file.run(lambda: self._end(is_last))
        finally:
            if is_last:
                self._file.thread.shutdown(wait=False)

    async def _run(self, work: Callable[[], T]) -> T:
        self._refuse_lost()
        return await self._file.run(work)

    def _refuse_lost(self) -> None:
        if self._state is SessionState.LOST:
            raise SessionLost(f"session {self._session_id} with {self._file.path} is over")

    def _write(self, ops: Sequence[Op]) -> list[Result]:
        results, changed = self._file.tree.multi(ops, self._session_id)
        self._tell(changed)
        return results

    def _place(self, path: str, kind: WatchKind, watcher: asyncio.Future[WatchEvent]) -> None:
        """On the thread, so that the watch stands between the writes before it and after it."""
        if kind is WatchKind.CHILDREN and not self._file.tree.exists(path):
            raise NoNode(path)
        self._loop.call_soon_threadsafe(self._file.watches.add, path, kind, watcher)

    def _end(self, is_last: bool) -> None:
        try:
            self._tell(self._file.tree.end_session(self._session_id))
        finally:
            if is_last:
                self._file.tree.close()

    def _tell(self, changed: Sequence[Changed]) -> None:
        if changed:
            self._loop.call_soon_threadsafe(self._file.watches.fire, changed)

    def _lose(self) -> None:
        self._state = SessionState.LOST
        for watcher, path in list(self._watchers.items()):
            if not watcher.done():
                watcher.set_result(WatchEvent(path, Change.SESSION_LOST))
        for callback in tuple(self._callbacks):
            callback(SessionState.LOST)
