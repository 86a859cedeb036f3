"""The connection to ZooKeeper: kazoo in its own thread, and what it says brought to asyncio.

Everything kazoo's thread has to tell (answers, watches, the state of the session) goes into one
queue in the order it happened, and the event loop is woken once for however much is there. That
order is a promise of the store: a watch is heard before any read shows the change.

kazoo's recipes, its retries of commands and its worker threads are not used. Two things it would
do are prevented here: to put a request made on one connection onto the next, where it would pass
before the watches are placed again, and to open another session by itself when one has expired.
"""

import asyncio
import logging
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, KazooException
from kazoo.protocol.states import Callback, EventType, KazooState, WatchedEvent
from kazoo.retry import KazooRetry

from penstock.meta.store import SessionState
from penstock.meta.zookeeper.address import ZkAddress
from penstock.meta.zookeeper.tls import TlsHandler

_log = logging.getLogger("penstock.meta.zookeeper")
# kazoo tells every attempt to connect, twice a second while a server is away. What matters of it
# is told by the store, once.
_kazoo_log = logging.getLogger("penstock.meta.zookeeper.kazoo")
_kazoo_log.setLevel(logging.ERROR)

_RETRY_S, _RETRY_S_MAX = 0.05, 0.5  # kazoo's own pauses between attempts grow to a minute.


class Secret(NamedTuple):
    """What makes a connection this session's; whoever knows it may end the session."""

    session_id: int
    password: bytes


class Call:
    """A request, and who waits for its answer."""

    __slots__ = ("_link", "future", "read", "request")

    def __init__(
        self,
        request: Any,
        link: "ZkLink",
        future: asyncio.Future[Any],
        read: Callable[[Any, Exception | None], Any],
    ) -> None:
        self.request = request
        self.future = future
        self.read = read  # On the loop: the answer or the error made into a result, or raised.
        self._link = link

    def set(self, value: Any) -> None:
        """On kazoo's thread."""
        self._link.tell(Answered(self, value, None))

    def set_exception(self, error: Exception) -> None:
        """On kazoo's thread, or on ours when it refuses the request."""
        self._link.tell(Answered(self, None, error))


class Answered(NamedTuple):
    call: Call
    value: Any
    error: Exception | None


class Heard(NamedTuple):
    kind: str  # One of kazoo's EventType.
    full_path: str


class LinkChanged(NamedTuple):
    state: SessionState
    generation: int
    secret: Secret | None  # With CONNECTED.


Told = Answered | Heard | LinkChanged


class ZkLink:
    """One session's connections, one after the other. `send`, `hold`, `stop` suit any thread."""

    def __init__(
        self,
        address: ZkAddress,
        *,
        session_timeout_ms: int,
        tell: Callable[[Told], None],
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._tell = tell
        self._told: deque[Told] = deque()
        self._is_woken = False
        # A request carries the generation of the connection it was made for. The lock makes sure
        # that none of an older one slips into kazoo's queue behind our back.
        self._lock = threading.Lock()
        self._generation = 0
        self._is_over = False
        self._handler = _Handler(session_timeout_ms / 1000, len(address.servers), context)
        self._client = KazooClient(
            hosts=address.hosts,
            timeout=session_timeout_ms / 1000,
            handler=self._handler,
            connection_retry=KazooRetry(
                max_tries=-1, delay=_RETRY_S, max_delay=_RETRY_S_MAX, max_jitter=0.2
            ),
            logger=_kazoo_log,
        )
        self._client.add_listener(self._take_state)

    @property
    def last_error(self) -> str:
        """Why the last attempt to connect failed, for a message."""
        return self._handler.last_error

    def start(self) -> None:
        """Begin to connect; the loop is told when there is a session."""
        self._client.start_async()

    def send(self, call: Call, generation: int) -> bool:
        """Hand a request to kazoo; False: that connection is gone, and nothing was sent."""
        with self._lock:
            if self._is_over or generation != self._generation:
                return False
            self._client._call(call.request, call)
            return True

    def hold(self) -> None:
        """Drop the connection and make no other, so that ZooKeeper hears nothing of us."""
        self._handler.hold()

    def release(self) -> None:
        """Connect again; whether the session still lives is ZooKeeper's to say."""
        self._handler.release()

    def stop(self) -> None:
        """End the session, if there is a link to say so, and the thread. Blocks."""
        try:
            self._client.stop()
            self._client.close()
        except KazooException as error:
            _log.warning("The connection to ZooKeeper did not end in good order: %r", error)
        with self._lock:
            self._is_over = True

    def tell(self, told: Told) -> None:
        """Put something into the queue; the loop is woken unless it was woken already."""
        self._told.append(told)
        if self._is_woken:
            return
        self._is_woken = True
        with suppress(RuntimeError):  # The loop is closed: nobody is left to be told.
            self._loop.call_soon_threadsafe(self.deliver)

    def deliver(self) -> None:
        """On the loop: hand over everything that is in the queue, in its order."""
        self._is_woken = False
        while self._told:
            try:
                self._tell(self._told.popleft())
            except Exception:  # noqa: BLE001  (one listener's mistake must not cost the others)
                _log.exception("Something that ZooKeeper told was not taken")

    def hear(self, event: WatchedEvent) -> None:
        """Pass a watch event on; one watcher for all, so that kazoo keeps none per request."""
        if event.type != EventType.NONE:
            self.tell(Heard(event.type, event.path))

    def _take_state(self, state: str) -> None:
        """Take a new state of the connection; kazoo's thread calls this before it acts on it."""
        if state == KazooState.CONNECTED:
            self._handler.note_session()
            secret = Secret(*self._client.client_id)
            self.tell(LinkChanged(SessionState.CONNECTED, self._generation, secret))
            return
        is_over = state == KazooState.LOST
        with self._lock:
            self._generation += 1
            self._is_over = self._is_over or is_over
            self._refuse_queued()
        if is_over:
            self._handler.hold()  # Without this, kazoo would open another session.
        now = SessionState.LOST if is_over else SessionState.SUSPENDED
        self.tell(LinkChanged(now, self._generation, None))

    def _refuse_queued(self) -> None:
        """Refuse queued requests, which kazoo would otherwise send on the next connection."""
        queue = self._client._queue
        while queue:
            _, call = queue.popleft()
            if call is not None:  # None: kazoo's own request to close the session.
                call.set_exception(ConnectionLoss())


class _Handler(TlsHandler):
    """How kazoo runs callbacks and connects: at once on its one thread, and only if it may.

    kazoo's own handler has a thread for answers and another for watches, between which the order
    is lost. This one is never "running", which lets kazoo call back where it stands.
    """

    def __init__(self, session_s: float, server_count: int, context: ssl.SSLContext | None) -> None:
        super().__init__(context)
        # kazoo waits a whole session for a silent server, be it for the connection or for the
        # session. The others must have their turn before, or the same one again: a server that
        # was about to start or to stop took the connection, and will never answer on it.
        self._connect_s = session_s / (server_count + 1)
        self._is_greeting = False  # Connected, and no session was given yet.
        self._held = threading.Event()
        self._socket: socket.socket | None = None
        self.last_error = "no server's name could be resolved"

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def dispatch_callback(self, callback: Callback) -> None:
        callback.func(*callback.args)

    def create_connection(self, *args: Any, **options: Any) -> socket.socket:
        if self._held.is_set():
            raise ConnectionAbortedError("this session makes no connection now")
        options["timeout"] = self._connect_s
        try:
            made = super().create_connection(*args, **options)
        except OSError as error:
            self.last_error = f"{options['address'][0]}:{options['address'][1]}: {error}"
            raise
        self.last_error = f"a server took the connection, but gave no session: {_why(made)}"
        self._socket = made
        self._is_greeting = True
        if self._held.is_set():
            self._shut()  # `hold` was called while this connected.
        return made

    def note_session(self) -> None:
        """Note that the server gave a session: from now on kazoo's pings show whether it lives."""
        self._is_greeting = False

    def select(self, *args: Any, **options: Any) -> Any:
        if self._is_greeting and len(args) == 4 and args[3] is not None:
            args = (*args[:3], min(args[3], self._connect_s))
        return super().select(*args, **options)

    def hold(self) -> None:
        self._held.set()
        self._shut()

    def release(self) -> None:
        self._held.clear()

    def _shut(self) -> None:
        """Shut the socket down, so that kazoo's thread wakes up wherever it waits."""
        if self._socket is None:
            return
        with suppress(OSError):  # It is closed already.
            # Not the method of a socket with TLS, which would go on in plain text.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _why(connection: socket.socket) -> str:
    """What to look at, where a server does not tell why it is silent."""
    if isinstance(connection, ssl.SSLSocket):
        return "has it a quorum, and does it believe our certificate?"
    return "has it a quorum, and is this not its port for TLS?"
