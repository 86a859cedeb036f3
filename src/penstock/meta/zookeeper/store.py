"""The metadata store of a cluster: one session with a real ZooKeeper.

What the tree means and what to do when a session ends belong to others; when it is over the store
is dead, and another is opened. A call made without a link is refused at once (StoreUnavailable)
and nothing here repeats a request: only the caller knows whether it still makes sense.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kazoo import exceptions
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import EventType

from penstock.meta.store import (
    Change,
    Create,
    Delete,
    MetaError,
    MultiFailed,
    Node,
    NodeExists,
    NoNode,
    Op,
    OutcomeUnknown,
    Result,
    SessionLost,
    SessionState,
    Stat,
    StoreUnavailable,
    WatchEvent,
    WatchKind,
    check_path,
)
from penstock.meta.zookeeper.address import parse_address
from penstock.meta.zookeeper.link import Answered, Call, Heard, LinkChanged, Secret, Told, ZkLink
from penstock.meta.zookeeper.requests import (
    AccessOf,
    Multi,
    MultiRead,
    all_open,
    no_right,
    nodes_found,
)
from penstock.meta.zookeeper.watchdog import LoopWatchdog
from penstock.meta.zookeeper.watches import Key, Mark, ZkWatches
from penstock.security.tls.contexts import TlsSettings

_log = logging.getLogger("penstock.meta.zookeeper")

SESSION_TIMEOUT_MS = 18_000
IN_FLIGHT_MAX = 100
REQUEST_BYTES_SAFE = 1_000_000  # What every ZooKeeper takes; a larger one needs jute.maxbuffer.

_CHANGES = {
    EventType.CREATED: Change.CREATED,
    EventType.CHANGED: Change.WRITTEN,
    EventType.DELETED: Change.DELETED,
    EventType.CHILD: Change.CHILDREN,
}
# ZooKeeper's word that a request was not done: it came over a connection that is no longer its
# session's, or it was turned away at the door.
_NOT_DONE = (exceptions.SessionMovedError, exceptions.ThrottledOpError)


class ZkStore:
    """One session with ZooKeeper; see MetaStore for what each call promises."""

    # Far below a stock server's limit of 1 MB per request with the nodes that we write.
    ops_per_multi_max = 400

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int,
        in_flight_max: int = IN_FLIGHT_MAX,
        tls: TlsSettings | None = None,
        access_of: AccessOf = all_open,
    ) -> None:
        """For `open`; nothing is connected yet."""
        self.connect = connect
        self.session_timeout_ms = session_timeout_ms
        self._address = parse_address(connect)
        self._loop = asyncio.get_running_loop()
        self._access_of = access_of
        self._link = ZkLink(
            self._address,
            session_timeout_ms=session_timeout_ms,
            tell=self._take,
            context=tls.client_context() if tls else None,
        )
        self._watchdog = LoopWatchdog(
            self._loop,
            limit_s=session_timeout_ms / 1000 * 2 / 3,
            on_hang=self._link.hold,
            on_recovery=self._link.release,
        )
        self._state = SessionState.SUSPENDED
        self._is_open: asyncio.Future[None] = self._loop.create_future()
        self._generation = -1
        self._secret: Secret | None = None
        self._callbacks: list[Callable[[SessionState], None]] = []
        self._watches = ZkWatches()
        # Bounded, because each request costs a byte in the pipe that wakes kazoo's thread, and a
        # full pipe would stop the loop.
        self._in_flight_max = in_flight_max
        self._in_flight: set[Call] = set()
        self._waiting: deque[Call] = deque()
        self._stopping: asyncio.Future[None] | None = None

    @classmethod
    async def open(
        cls,
        connect: str,
        *,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        connection_timeout_ms: int | None = None,
        in_flight_max: int = IN_FLIGHT_MAX,
        create_chroot: bool = True,
        tls: TlsSettings | None = None,
        access_of: AccessOf = all_open,
    ) -> "ZkStore":
        """A new session; raises ConfigError or StoreUnavailable with a sentence.

        The connection may take as long as a session lasts unless told otherwise. The node that
        `connect` names as root is made if it is missing. New nodes get the access that `access_of`
        says, by their path below that root.
        """
        store = cls(
            connect,
            session_timeout_ms=session_timeout_ms,
            in_flight_max=in_flight_max,
            tls=tls,
            access_of=access_of,
        )
        store._link.start()
        try:
            await store._wait_until_connected((connection_timeout_ms or session_timeout_ms) / 1000)
            if create_chroot:
                await store._create_chroot()
        except BaseException:
            await store.close()
            raise
        store._watchdog.start()
        return store

    @property
    def session_id(self) -> int:
        return self.session_secret.session_id

    @property
    def session_secret(self) -> Secret:
        """Session id and password, for the guardian alone."""
        assert self._secret is not None, "the store was never connected"
        return self._secret

    @property
    def session_state(self) -> SessionState:
        return self._state

    async def get(self, path: str) -> Node:
        check_path(path)
        data, stat = await self._ask(path, wire.GetData(self._address.full(path), None))
        return data or b"", Stat(stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner)

    async def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        for path in paths:
            check_path(path)
        self._refuse_unlinked()
        if not paths:
            return []
        request = MultiRead([self._address.full(path) for path in paths])
        return nodes_found(await self._ask(paths[0], request))

    async def children(self, path: str) -> list[str]:
        check_path(path)
        request = wire.GetChildren(self._address.full(path), None)
        return sorted(await self._ask(path, request))

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        for op in ops:
            check_path(op.path)
            if op.path == "/" and isinstance(op, Delete):
                raise ValueError("the root cannot be deleted")
        self._refuse_unlinked()
        if not ops:
            return []
        request = Multi(tuple(ops), self._address, self._access_of)
        return request.checked(await self._send(request, partial(_read_write, request)))

    async def watch_once(self, path: str, kind: WatchKind) -> asyncio.Future[WatchEvent]:
        check_path(path)
        watcher: asyncio.Future[WatchEvent] = self._loop.create_future()

        def place(answer: Any, error: Exception | None) -> None:
            # Placed here and not after the await: the next event of the node may come right behind.
            self._watches.add((path, kind), watcher, _mark(_read(path, answer, error), kind))

        try:
            await self._send(self._watch_request((path, kind)), place)
        except BaseException:
            watcher.cancel()
            raise
        return watcher

    def on_session(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    async def close(self) -> None:
        self._lose()
        if self._stopping is not None:
            await asyncio.shield(self._stopping)
        self._link.deliver()
        for call in tuple(self._in_flight):  # Left over when the link could not be closed.
            self._finish_call(call, None, exceptions.ConnectionLoss())

    # Connecting

    async def _wait_until_connected(self, timeout_s: float) -> None:
        try:
            await asyncio.wait_for(asyncio.shield(self._is_open), timeout_s)
        except TimeoutError:
            raise StoreUnavailable(
                f"No ZooKeeper at {self.connect} gave a session within {timeout_s:g} s "
                f"({self._link.last_error}). Start ZooKeeper, or correct zookeeper.connect."
            ) from None

    async def _create_chroot(self) -> None:
        names = self._address.chroot.split("/")[1:]
        outside = parse_address(self._address.hosts)
        for depth in range(1, len(names) + 1):
            path = "/" + "/".join(names[:depth])
            request = Multi([Create(path)], outside, self._access_of)
            try:
                request.checked(await self._send(request, partial(_read_write, request)))
            except MultiFailed as failure:
                if not isinstance(failure.reason, NodeExists):
                    raise
            else:
                _log.info("Created zookeeper path %s", path)

    # Asking

    async def _ask(self, path: str, request: Any) -> Any:
        return await self._send(request, partial(_read, path))

    async def _send(self, request: Any, read: Callable[[Any, Exception | None], Any]) -> Any:
        self._refuse_unlinked()
        call = Call(request, self._link, self._loop.create_future(), read)
        self._waiting.append(call)
        self._pump()
        return await call.future

    def _refuse_unlinked(self) -> None:
        if self._state is SessionState.LOST:
            raise SessionLost(f"the session with {self.connect} is over")
        if self._state is SessionState.SUSPENDED:
            raise StoreUnavailable(f"there is no connection to ZooKeeper at {self.connect} now")

    def _pump(self) -> None:
        """Send what waits, in its order, as far as there is room."""
        while self._waiting and len(self._in_flight) < self._in_flight_max:
            call = self._waiting.popleft()
            if call.future.cancelled():
                continue
            self._in_flight.add(call)
            if not self._link.send(call, self._generation):
                self._finish_call(call, None, exceptions.ConnectionLoss())

    # What the link tells, on the loop and in the order it happened

    def _take(self, told: Told) -> None:
        match told:
            case Answered():
                self._finish_call(told.call, told.value, told.error)
                self._pump()
            case Heard():
                self._tell_watches(told)
            case LinkChanged():
                self._take_link_state(told)

    def _finish_call(self, call: Call, answer: Any, error: Exception | None) -> None:
        self._in_flight.discard(call)
        try:
            result = call.read(answer, error)
        except MetaError as failure:
            if not call.future.done():
                call.future.set_exception(failure)
        else:
            if not call.future.done():
                call.future.set_result(result)

    def _tell_watches(self, heard: Heard) -> None:
        path, change = self._address.own(heard.full_path), _CHANGES[heard.kind]
        if change is not Change.CHILDREN:
            self._watches.tell((path, WatchKind.DATA), change)
        if change in (Change.CHILDREN, Change.DELETED):
            self._watches.tell((path, WatchKind.CHILDREN), change)

    def _take_link_state(self, changed: LinkChanged) -> None:
        if self._state is SessionState.LOST:
            return
        if changed.state is SessionState.LOST:
            _log.warning("The session with ZooKeeper at %s is over", self.connect)
            self._lose()
            return
        self._generation = changed.generation
        self._state = changed.state
        if changed.secret is not None:
            self._secret = changed.secret
            self._place_again()
        else:
            self._refuse_waiting(exceptions.ConnectionLoss())
        self._tell_state()

    def _tell_state(self) -> None:
        if not self._is_open.done():
            self._is_open.set_result(None)
            return  # Nobody can have been listening.
        _log.info("The session with ZooKeeper at %s is %s", self.connect, self._state.value)
        for callback in tuple(self._callbacks):
            callback(self._state)

    def _refuse_waiting(self, error: Exception) -> None:
        while self._waiting:
            self._finish_call(self._waiting.popleft(), None, error)

    def _place_again(self) -> None:
        """Place all watches again, before any other request on the new connection."""
        for key in self._watches:
            read = partial(self._compare_watch, key)
            call = Call(self._watch_request(key), self._link, self._loop.create_future(), read)
            self._waiting.append(call)
        self._pump()

    def _compare_watch(self, key: Key, answer: Any, error: Exception | None) -> None:
        if error is not None and not isinstance(error, exceptions.NoNodeError):
            return  # The connection is gone again; the next one places the watch again.
        self._watches.compare(key, _mark(answer, key[1]))

    def _watch_request(self, key: Key) -> Any:
        path, kind = key
        request = wire.Exists if kind is WatchKind.DATA else wire.GetChildren2
        return request(self._address.full(path), self._link.hear)

    def _lose(self) -> None:
        if self._state is SessionState.LOST:
            return
        self._state = SessionState.LOST
        if not self._is_open.done():  # `open` waits for the session no longer.
            self._is_open.set_exception(SessionLost(f"{self.connect} refused the session"))
            self._is_open.exception()
        self._watchdog.stop()
        self._refuse_waiting(exceptions.SessionExpiredError())
        self._watches.end()
        # kazoo waits for the server's farewell, so it is not done on the loop.
        self._stopping = asyncio.ensure_future(asyncio.to_thread(self._link.stop))
        for callback in tuple(self._callbacks):
            callback(SessionState.LOST)


def _read(path: str, answer: Any, error: Exception | None) -> Any:
    """The answer to something that changes nothing."""
    match error:
        case None:
            return answer
        case exceptions.NoNodeError():
            raise NoNode(path)
        case exceptions.NoAuthError():
            raise no_right(path) from error
        case exceptions.SessionExpiredError():
            raise SessionLost(f"ZooKeeper has ended the session: {error!r}") from error
        case _:
            raise StoreUnavailable(f"{path} could not be read: {error!r}") from error


def _read_write(request: Multi, answer: Any, error: Exception | None) -> Any:
    """The answer to a write, or what is known about it without one."""
    match error:
        case None:
            return answer
        case exceptions.SessionExpiredError():
            raise SessionLost(f"ZooKeeper has ended the session: {error!r}") from error
        case _ if request.sent_bytes is None or isinstance(error, _NOT_DONE):
            raise StoreUnavailable(f"nothing was written: {error!r}") from error
    hint = ""
    if request.sent_bytes > REQUEST_BYTES_SAFE:
        hint = f"; it had {request.sent_bytes} bytes: is the server's jute.maxbuffer large enough?"
    raise OutcomeUnknown(f"a write was sent, and no answer came: {error!r}{hint}") from error


def _mark(answer: Any, kind: WatchKind) -> Mark | None:
    """From what Exists (a stat or None) or GetChildren2 (names and a stat) answered."""
    if answer is None:
        return None
    if kind is WatchKind.DATA:
        return Mark(answer.czxid, answer.mzxid)
    return Mark(answer[1].czxid, answer[1].pzxid)
