"""The metadata store of several processes on one machine: one SQLite file, no server.

A session is a row of the file and a pipe (meta/shared/bells.py) that its process alone reads. It
ends when the process closes it, at once when the process dies, and when its event loop was silent
for the session's time: whoever notices ends it, in a transaction. Every transaction of a process
begins by looking whether its session still stands, so one that was stopped and wakes up later can
do nothing. All work on the file is done by a thread; the event loop only rings and listens.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from penstock.errors import ConfigError
from penstock.meta.shared.bells import OwnBell, PeerBells, is_answered, sweep
from penstock.meta.shared.gate import WriterGate
from penstock.meta.shared.presence import Presence
from penstock.meta.shared.tree import News, SharedTree
from penstock.meta.sqlite.watches import NodeWatches
from penstock.meta.store import (
    Change,
    Delete,
    MetaError,
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

_log = logging.getLogger("penstock.meta.shared")

SESSION_TIMEOUT_MS: Final = 9_000
_LOOKS: Final = 8  # In the time of a session; each process rings as often.
_AGAIN_S: Final = 0.5  # When a dead session could not be ended: the disk is full.

T = TypeVar("T")


class _SharedFile:
    """What belongs to a session outside of the event loop; used by its thread alone."""

    def __init__(self, path: Path, make_room: Callable[[], bool], timeout_s: float) -> None:
        self.path = path
        self.directory = path.with_suffix(".sessions")
        self.silent: frozenset[int] = frozenset()  # Replaced by the loop, read by the thread.
        self._make_room = make_room
        self._timeout_s = timeout_s
        self._gate: WriterGate | None = None
        self.tree: SharedTree  # Set by `open`, as is the bell.
        self.bell: OwnBell

    def open(self) -> int:
        """Begin a session; raises ConfigError with a sentence when that cannot be."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._gate = WriterGate(
                self.directory / "writer.lock",
                timeout_s=self._timeout_s,
                is_silent=lambda session_id: session_id in self.silent,
            )
            self.bell = OwnBell(self.directory)
        except OSError as error:
            self._close_gate()
            raise ConfigError(f"{self.directory} cannot be used: {error.strerror}") from error
        try:
            return self._begin(self._gate)
        except BaseException:
            self.bell.discard()
            self._close_gate()
            raise

    def _begin(self, gate: WriterGate) -> int:
        self.tree = SharedTree(self.path, gate, self._make_room)
        try:
            session_id = self.tree.begin_session(
                bell=self.bell.name,
                pid=os.getpid(),
                is_answered=partial(is_answered, self.directory),
            )
            sweep(self.directory, self.tree.bells())
        except BaseException:
            self.tree.close()
            raise
        return session_id

    def end(self, session_id: int) -> None:
        try:
            self.tree.end_session(session_id)
        except SessionLost:
            return  # Others were faster.
        except (MetaError, ConfigError) as error:
            # The others do it, as soon as our pipe is closed.
            _log.warning("The session could not be ended: %s", error)

    def close(self) -> None:
        self.tree.close()
        self._close_gate()

    def _close_gate(self) -> None:
        if self._gate is not None:
            self._gate.close()
            self._gate = None


class SharedStore:
    """One session with the file; see MetaStore for what each call promises."""

    ops_per_multi_max = 2_000  # As in meta/sqlite/store.py.

    def __init__(
        self, file: _SharedFile, thread: ThreadPoolExecutor, session_id: int, timeout_s: float
    ) -> None:
        self._file = file
        self._thread = thread
        self._session_id = session_id
        self._loop = asyncio.get_running_loop()
        self._state = SessionState.CONNECTED
        self._callbacks: list[Callable[[SessionState], None]] = []
        self._watches = NodeWatches()
        self._watchers: dict[asyncio.Future[WatchEvent], str] = {}
        self._presence = Presence(_LOOKS)
        self._peers = PeerBells(file.directory, self._loop, on_death=self._note_death)
        self._look_every_s = timeout_s / _LOOKS
        self._next_look: asyncio.TimerHandle | None = None
        self._is_catching_up = False
        self._has_rung_again = False
        self._others: dict[int, str] = {}  # Their bells.
        self._ending: dict[int, asyncio.Future[None]] = {}  # Sessions that are being ended.
        self._released: asyncio.Future[None] | None = None

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        make_room: Callable[[], bool] = lambda: False,
    ) -> "SharedStore":
        """Open or create the file; raises ConfigError with a sentence when that cannot be."""
        timeout_s = session_timeout_ms / 1000
        file = _SharedFile(path, make_room, timeout_s)
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata")
        try:
            session_id = await asyncio.get_running_loop().run_in_executor(thread, file.open)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        store = cls(file, thread, session_id, timeout_s)
        store._start()
        return store

    def _start(self) -> None:
        self._file.bell.listen(self._loop, self._hear_rings)
        news = self._file.tree.take_news()  # The thread rests until somebody asks.
        if news is not None:
            self._take(news)
        self._next_look = self._loop.call_later(self._look_every_s, self._look)

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
        results, _ = await self._run(lambda: self._file.tree.multi(ops, self._session_id))
        return results

    async def watch_once(self, path: str, kind: WatchKind) -> asyncio.Future[WatchEvent]:
        check_path(path)
        self._refuse_lost()
        watcher: asyncio.Future[WatchEvent] = self._loop.create_future()
        self._watchers[watcher] = path
        watcher.add_done_callback(lambda done: self._watchers.pop(done, None))
        try:
            await self._run(
                lambda: self._check_watched(path, kind),
                lambda: self._watches.add(path, kind, watcher),
            )
        except BaseException:
            watcher.cancel()
            raise
        return watcher

    def on_session(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    async def close(self) -> None:
        self._lose()
        assert self._released is not None
        await asyncio.shield(self._released)

    # The thread

    async def _run(self, work: Callable[[], T], then: Callable[[], None] | None = None) -> T:
        """Do it on the thread; its news are told on the loop before its result is.

        It is done even if the caller stops waiting: a half-cancelled write helps nobody.
        """
        self._refuse_lost()
        return await asyncio.shield(
            self._loop.run_in_executor(self._thread, self._work, work, then)
        )

    def _work(self, work: Callable[[], T], then: Callable[[], None] | None) -> T:
        try:
            return work()
        except SessionLost:
            self._loop.call_soon_threadsafe(self._lose)
            raise
        finally:
            news = self._file.tree.take_news()
            if news is not None:
                self._loop.call_soon_threadsafe(self._take, news)
            if then is not None:
                self._loop.call_soon_threadsafe(then)

    def _check_watched(self, path: str, kind: WatchKind) -> None:
        """Read the journal up to now, so that the watch hears what comes later and only that."""
        if not self._file.tree.exists(path) and kind is WatchKind.CHILDREN:
            raise NoNode(path)

    # What others did

    def _take(self, news: News) -> None:
        self._watches.fire(news.changed)
        if self._state is SessionState.LOST:
            return
        if news.sessions is not None:
            own = self._session_id
            self._others = {one: bell for one, bell in news.sessions.items() if one != own}
            self._presence.keep(self._others)
            self._peers.keep(self._others)
        if news.is_own:
            self._peers.ring(self._session_id)

    def _hear_rings(self, ringers: set[int]) -> None:
        for session_id in ringers:
            self._presence.heard(session_id)
        self._catch_up()

    def _catch_up(self) -> None:
        """Read the journal on, once for all rings that come while it is read."""
        if self._is_catching_up:
            self._has_rung_again = True
            return
        if self._state is SessionState.LOST:
            return
        self._is_catching_up = True
        reading = self._loop.run_in_executor(
            self._thread, self._work, self._file.tree.catch_up, None
        )
        reading.add_done_callback(self._note_caught_up)

    def _note_caught_up(self, reading: "asyncio.Future[None]") -> None:
        error = None if reading.cancelled() else reading.exception()
        if error is not None and not isinstance(error, SessionLost):
            _log.warning("The metadata could not be read: %s", error)
        self._is_catching_up = False
        if self._has_rung_again:
            self._has_rung_again = False
            self._catch_up()

    # Who is alive

    def _look(self) -> None:
        """At a steady pace: say that we live, and notice who does not."""
        self._next_look = self._loop.call_later(self._look_every_s, self._look)
        self._peers.ring(self._session_id)
        before, self._file.silent = self._file.silent, self._presence.look()
        for session_id in self._file.silent - before:
            _log.warning("Session %d is silent for %d looks: it is ended", session_id, _LOOKS)
            self._end_other(session_id)
        self._peers.keep(self._others)
        self._catch_up()  # A process that was killed before it could ring.

    def _note_death(self, session_id: int) -> None:
        _log.info("The pipe of session %d is closed: it is over", session_id)
        self._end_other(session_id)

    def _end_other(self, session_id: int) -> None:
        if self._state is SessionState.LOST or session_id in self._ending:
            return
        work = partial(self._file.tree.end_session, session_id)
        ending = self._ending[session_id] = asyncio.ensure_future(self._end_until_done(work))
        ending.add_done_callback(lambda _: self._ending.pop(session_id, None))

    async def _end_until_done(self, work: Callable[[], object]) -> None:
        while self._state is SessionState.CONNECTED:
            try:
                await self._run(work)
            except SessionLost:
                return
            except (MetaError, ConfigError) as error:
                _log.warning("A dead session could not be ended yet: %s", error)
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    # The end

    def _refuse_lost(self) -> None:
        if self._state is SessionState.LOST:
            raise SessionLost(f"session {self._session_id} with {self._file.path} is over")

    def _lose(self) -> None:
        if self._state is SessionState.LOST:
            return
        self._state = SessionState.LOST
        if self._next_look is not None:
            self._next_look.cancel()
        self._released = asyncio.ensure_future(self._release())
        for watcher, path in list(self._watchers.items()):
            if not watcher.done():
                watcher.set_result(WatchEvent(path, Change.SESSION_LOST))
        for callback in tuple(self._callbacks):
            callback(SessionState.LOST)

    async def _release(self) -> None:
        """End the session in the file, then let the pipe go: its end is seen as a death."""
        try:
            await self._loop.run_in_executor(self._thread, self._file.end, self._session_id)
        finally:
            self._peers.ring(self._session_id)
            self._peers.close()
            self._file.bell.close(self._loop)
            await self._loop.run_in_executor(self._thread, self._file.close)
            self._thread.shutdown(wait=False)
