"""A simulated ZooKeeper ensemble, and the sessions that brokers have with it.

The tree is one; between it and each session lies a link that delays, breaks and is cut. A write
sent on a link that breaks was done or was not, and the client is told neither. A session that the
ensemble has not heard from for its timeout ends there at once, while its client learns of it only
when it gets through again. Answers and watch events of a session arrive in one order.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tests.simulation.clock import NATURE, Process
from tests.simulation.trace import Trace
from tests.simulation.tree import Changed, Tree

from penstock.meta.store import (
    Change,
    Delete,
    MetaError,
    MultiFailed,
    Node,
    NoNode,
    Op,
    OutcomeUnknown,
    Result,
    SessionLost,
    SessionState,
    StoreUnavailable,
    WatchEvent,
    WatchKind,
    check_path,
    parent_and_name,
)

T = TypeVar("T")
Watcher = tuple["SimStore", "asyncio.Future[WatchEvent]"]
# (session, the operations, what came of them): told of each accepted write, at its moment.
WriteObserver = Callable[["SimStore", Sequence[Op], Sequence[Result]], None]
# (session, the operations, which of them was refused and why).
RefusalObserver = Callable[["SimStore", Sequence[Op], MultiFailed], None]

_PATROL_S = 0.1


class Ensemble:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        rng: random.Random,
        trace: Trace,
        *,
        delay_s: float = 0.001,
    ) -> None:
        self.loop = loop
        self.rng = rng
        self.trace = trace
        self.tree = Tree()
        self.is_up = True  # False: no quorum; sessions neither end nor get anything done.
        self.observers: list[WriteObserver] = []
        self.refusal_observers: list[RefusalObserver] = []
        self._delay_s = delay_s
        self._cut: set[str] = set()
        self._slow_s: dict[str, float] = {}
        self._sessions: dict[int, SimStore] = {}
        self._watches: dict[tuple[str, WatchKind], list[Watcher]] = {}
        self._is_patrolling = False

    def open(self, process: Process, *, timeout_s: float = 6.0) -> "SimStore":
        """A session at once; `connect` waits for the link like a real client."""
        _, _ = self.tree.multi([], 0)
        store = SimStore(self, process, 0x1000_0000 + self.tree.zxid, timeout_s)
        self._sessions[store.session_id] = store
        if not self._is_patrolling and timeout_s > 0:
            self._is_patrolling = True
            self.loop.call_later(_PATROL_S, self._patrol, context=NATURE)
        return store

    async def connect(self, process: Process, *, timeout_s: float = 6.0) -> "SimStore":
        for _ in range(300):
            await asyncio.sleep(self.delay_s())
            if self.reaches(process.name):
                return self.open(process, timeout_s=timeout_s)
            await asyncio.sleep(0.1)
        raise StoreUnavailable("no server of the ensemble can be reached")

    def delay_s(self) -> float:
        return self.rng.expovariate(1 / self._delay_s) if self._delay_s else 0.0

    # Faults

    def reaches(self, name: str) -> bool:
        return self.is_up and name not in self._cut

    def cut(self, name: str) -> None:
        self._cut.add(name)
        self._silence(name)

    def heal(self, name: str) -> None:
        self._cut.discard(name)

    def slow(self, name: str, delay_s: float) -> None:
        """What is asked from now on takes so much longer to get there."""
        self._slow_s[name] = delay_s

    def way_there_s(self, name: str) -> float:
        return self.delay_s() + self._slow_s.get(name, 0.0)

    def heal_all(self) -> None:
        self._cut.clear()
        self._slow_s.clear()
        self.set_up(is_up=True)

    def set_up(self, *, is_up: bool) -> None:
        """Without a quorum nothing is done; with one again every session's time begins anew."""
        self.is_up = is_up
        for store in tuple(self._sessions.values()):
            if is_up:
                store.last_heard_s = self.loop.time()
            else:
                self._silence(store.process.name)

    def reset(self, name: str) -> None:
        """The connections break; a new one is made soon."""
        for store in self.sessions_of(name):
            store.disconnect()

    def expire(self, name: str) -> None:
        """The ensemble ends the sessions, though nobody is silent."""
        for store in self.sessions_of(name):
            self.end(store)

    def sessions_of(self, name: str) -> list["SimStore"]:
        return [s for s in tuple(self._sessions.values()) if s.process.name == name]

    def _silence(self, name: str) -> None:
        """A cut is noticed by the heartbeats that stay away."""
        for store in self.sessions_of(name):
            wait_s = self.rng.random() * store.timeout_s * 2 / 3
            self.loop.call_later(wait_s, self._notice, store, context=NATURE)

    def _notice(self, store: "SimStore") -> None:
        if not self.reaches(store.process.name):
            store.disconnect()

    # What the servers do

    def end(self, store: "SimStore") -> None:
        if self._sessions.pop(store.session_id, None) is None:
            return
        self.trace.note("session over", store.process.name, hex(store.session_id))
        paths = self.tree.owned_by(store.session_id)
        ops: list[Op] = [Delete(path) for path in paths]
        if ops:
            self.write(store, ops)
        for waiting in self._watches.values():
            waiting[:] = [watcher for watcher in waiting if watcher[0] is not store]
        self.loop.call_later(self.delay_s() * 10, store.learn_the_end, context=NATURE)

    def is_alive(self, store: "SimStore") -> bool:
        return store.session_id in self._sessions

    def write(self, store: "SimStore", ops: Sequence[Op]) -> list[Result]:
        try:
            results, changed = self.tree.multi(ops, store.session_id)
        except MultiFailed as failure:
            for observe_refusal in self.refusal_observers:
                observe_refusal(store, ops, failure)
            raise
        self.trace.note("write", store.process.name, self.tree.zxid, *(op.path for op in ops))
        for observe in self.observers:
            observe(store, ops, results)
        self._fire(changed)
        return results

    def watch(
        self, store: "SimStore", path: str, kind: WatchKind, watcher: "asyncio.Future[WatchEvent]"
    ) -> None:
        if kind is WatchKind.CHILDREN and not self.tree.exists(path):
            raise NoNode(path)
        self._watches.setdefault((path, kind), []).append((store, watcher))

    def _fire(self, changed: Sequence[Changed]) -> None:
        for path, change in changed:
            self._tell(path, WatchKind.DATA, change)
            if change is Change.WRITTEN:
                continue
            if change is Change.DELETED:
                self._tell(path, WatchKind.CHILDREN, change)
            self._tell(parent_and_name(path)[0] or "/", WatchKind.CHILDREN, Change.CHILDREN)

    def _tell(self, path: str, kind: WatchKind, change: Change) -> None:
        for store, watcher in self._watches.pop((path, kind), ()):
            store.deliver_event(watcher, WatchEvent(path, change))

    def _patrol(self) -> None:
        """Hear from those who can be heard, and end the sessions of those who were silent."""
        now_s = self.loop.time()
        for store in tuple(self._sessions.values()):
            if self.reaches(store.process.name) and store.is_heard:
                store.last_heard_s = now_s
                store.reconnect()
            elif self.is_up and now_s - store.last_heard_s > store.timeout_s:
                self.end(store)
        self.loop.call_later(_PATROL_S, self._patrol, context=NATURE)


class SimStore:
    """One session; see MetaStore for what each call promises."""

    ops_per_multi_max = 200

    def __init__(
        self, ensemble: Ensemble, process: Process, session_id: int, timeout_s: float
    ) -> None:
        self.process = process
        self.timeout_s = timeout_s
        self.last_heard_s = ensemble.loop.time()
        self._ensemble = ensemble
        self._session_id = session_id
        self._state = SessionState.CONNECTED
        self._generation = 0  # Of the connection; what was sent on an older one is not done.
        self._is_linked = True
        self._is_dialling = False
        self._pending: dict[asyncio.Future[Any], bool] = {}  # Whether it is a write.
        self._watchers: dict[asyncio.Future[WatchEvent], str] = {}
        self._undelivered: list[tuple[asyncio.Future[WatchEvent], WatchEvent]] = []
        self._callbacks: list[Callable[[SessionState], None]] = []
        self._last_request_s = 0.0
        self._last_reply_s = 0.0

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def session_state(self) -> SessionState:
        return self._state

    @property
    def is_heard(self) -> bool:
        """Whether anybody is there to send heartbeats."""
        return self.process.is_running and self._state is not SessionState.LOST

    @property
    def generation(self) -> int:
        """Of the connection: what was asked on an earlier one may never be answered."""
        return self._generation

    @property
    def session_secret(self) -> tuple[int, bytes]:
        return self._session_id, b"password"

    async def get(self, path: str) -> Node:
        check_path(path)
        return await self._ask(lambda: self._ensemble.tree.get(path))

    async def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        for path in paths:
            check_path(path)
        return await self._ask(lambda: self._ensemble.tree.multi_get(paths))

    async def children(self, path: str) -> list[str]:
        check_path(path)
        return await self._ask(lambda: self._ensemble.tree.children(path))

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        ops = tuple(ops)
        for op in ops:
            check_path(op.path)
            if op.path == "/" and isinstance(op, Delete):
                raise ValueError("the root cannot be deleted")
        return await self._ask(lambda: self._ensemble.write(self, ops), is_write=True)

    async def watch_once(self, path: str, kind: WatchKind) -> "asyncio.Future[WatchEvent]":
        check_path(path)
        watcher: asyncio.Future[WatchEvent] = self._ensemble.loop.create_future()
        self._watchers[watcher] = path
        watcher.add_done_callback(lambda done: self._watchers.pop(done, None))
        try:
            await self._ask(lambda: self._ensemble.watch(self, path, kind, watcher))
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
        self._change_state(SessionState.LOST)
        if self._ensemble.reaches(self.process.name):
            self._ensemble.end(self)

    # The way there and back

    async def _ask(self, work: Callable[[], T], *, is_write: bool = False) -> T:
        if self._state is SessionState.LOST:
            raise SessionLost(f"session {self._session_id:#x} is over")
        if self._state is SessionState.SUSPENDED:
            await asyncio.sleep(self._ensemble.delay_s())
            raise StoreUnavailable("there is no connection to the ensemble")
        loop = self._ensemble.loop
        answer: asyncio.Future[T] = loop.create_future()
        self._pending[answer] = is_write
        answer.add_done_callback(lambda done: self._pending.pop(done, None))
        way_s = self._ensemble.way_there_s(self.process.name)
        self._last_request_s = max(self._last_request_s, loop.time() + way_s)
        loop.call_at(
            self._last_request_s, self._arrive, self._generation, answer, work, context=NATURE
        )
        return await answer

    def _arrive(self, generation: int, answer: "asyncio.Future[T]", work: Callable[[], T]) -> None:
        if generation != self._generation:
            return
        if not self._ensemble.reaches(self.process.name):
            self._miss()
            return
        outcome: Callable[[], None]
        if not self._ensemble.is_alive(self):
            lost = SessionLost(f"session {self._session_id:#x} is over")
            outcome = lambda: _fail(answer, lost)  # noqa: E731
        else:
            try:
                result = work()
            except MetaError as error:
                refusal = error
                outcome = lambda: _fail(answer, refusal)  # noqa: E731
            else:
                outcome = lambda: _succeed(answer, result)  # noqa: E731
        self._reply(outcome)

    def _reply(self, outcome: Callable[[], None]) -> None:
        loop, generation = self._ensemble.loop, self._generation
        self._last_reply_s = max(self._last_reply_s, loop.time() + self._ensemble.delay_s())

        def arrive() -> None:
            if not self._ensemble.reaches(self.process.name):
                self._miss()
            elif generation == self._generation and self._is_linked:
                outcome()

        # As the broker's process: not while it is paused, never once it is dead.
        loop.call_at(self._last_reply_s, arrive, context=self.process.context)

    def deliver_event(self, watcher: "asyncio.Future[WatchEvent]", event: WatchEvent) -> None:
        if not self._is_linked or not self._ensemble.reaches(self.process.name):
            self._undelivered.append((watcher, event))
            self._miss()
            return
        loop, generation = self._ensemble.loop, self._generation
        self._last_reply_s = max(self._last_reply_s, loop.time() + self._ensemble.delay_s())

        def arrive() -> None:
            if generation == self._generation and self._is_linked:
                _succeed(watcher, event)
            else:
                self._undelivered.append((watcher, event))

        loop.call_at(self._last_reply_s, arrive, context=self.process.context)

    # The session as its client sees it

    def _miss(self) -> None:
        """Something was lost on the way: the connection breaks, even if the path heals before."""
        loop, generation = self._ensemble.loop, self._generation

        def give_up() -> None:
            if generation == self._generation:
                self.disconnect()

        wait_s = self._ensemble.rng.random() * self.timeout_s * 2 / 3
        loop.call_later(wait_s, give_up, context=NATURE)

    def disconnect(self) -> None:
        """The connection breaks: what was asked on it stays unanswered."""
        if self._is_linked:
            self._is_linked = False
            self.process.call(self._break)

    def _break(self) -> None:
        for answer, is_write in tuple(self._pending.items()):
            unknown = OutcomeUnknown if is_write else StoreUnavailable
            _fail(answer, unknown("the connection to the ensemble was lost"))
        if self._state is SessionState.CONNECTED:
            self._change_state(SessionState.SUSPENDED)

    def reconnect(self) -> None:
        """Called while the ensemble hears the client: a client without a link dials."""
        if not self._is_linked and not self._is_dialling:
            self._is_dialling = True
            wait_s = self._ensemble.rng.random()
            self._ensemble.loop.call_later(wait_s, self._dial, context=self.process.context)

    def _dial(self) -> None:
        self._is_dialling = False
        if self._state is SessionState.LOST or not self._ensemble.reaches(self.process.name):
            return
        self._generation += 1
        if not self._ensemble.is_alive(self):
            self._change_state(SessionState.LOST)
            return
        self._is_linked = True
        undelivered, self._undelivered = self._undelivered, []
        self._change_state(SessionState.CONNECTED)
        for watcher, event in undelivered:
            _succeed(watcher, event)

    def learn_the_end(self) -> None:
        """A client hears that its session is over as soon as it gets through."""
        if self._state is SessionState.LOST or self.process.is_dead:
            return
        if self._ensemble.reaches(self.process.name):
            self.process.call(self._change_state, SessionState.LOST)
        else:
            self._ensemble.loop.call_later(_PATROL_S, self.learn_the_end, context=NATURE)

    def _change_state(self, state: SessionState) -> None:
        if self._state in (state, SessionState.LOST):
            return
        self._state = state
        self._ensemble.trace.note("session", self.process.name, state.value)
        if state is SessionState.LOST:
            for answer, is_write in tuple(self._pending.items()):
                lost = OutcomeUnknown if is_write else SessionLost
                _fail(answer, lost(f"session {self._session_id:#x} is over"))
            for watcher, path in tuple(self._watchers.items()):
                _succeed(watcher, WatchEvent(path, Change.SESSION_LOST))
        for callback in tuple(self._callbacks):
            callback(state)


def _succeed(answer: "asyncio.Future[T]", result: T) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: "asyncio.Future[Any]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # Whoever asked may have left.
