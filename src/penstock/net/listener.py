"""The door: accepts connections within the configured limits and closes those that fall silent.

How many may be there is counted over all listeners, in net/crowd.py.

One event loop serves all connections. What a frame means is the business of the `dispatch` that
each listener was given.
"""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

from penstock.net.buffers import BufferPool
from penstock.net.connection import (
    Answer,
    CloseConnection,
    ConnectionLimits,
    Dispatch,
    IncomingConnection,
    peer_address,
)
from penstock.net.crowd import Crowd
from penstock.net.readers import Readers
from penstock.net.session import Authentication, Session
from penstock.net.transport import PlainTransport, Transport
from penstock.telemetry.metrics import ListenerMetrics
from penstock.telemetry.peer_log import PeerLog

log = logging.getLogger("kafka.network.Acceptor")
peer_log = PeerLog(log)

_ACCEPTS_PER_TURN = 64
_RETRY_ACCEPT_S = 0.5
_TURNED_AWAY_MAX = 256  # Held at a time; more are closed at once.
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """Bounds that hold for a listener; `None` for a buffer means: let the system choose."""

    connection: ConnectionLimits
    idle_s_max: float | None  # None: silence is never a reason to close.
    # TLS and SASL together: whoever takes longer would hold a place of somebody who means it.
    handshake_s_max: float = 30.0
    backlog: int
    send_buffer_bytes: int | None
    receive_buffer_bytes: int | None


class Turnstile(Protocol):
    """Says how often newcomers are let in; asked once for each."""

    def turn_away_ms(self, address: str) -> int:
        """How long a newcomer is held before it is turned away; 0: it may come in."""
        ...

    def close_door_ms(self, listener: str) -> int:
        """After a newcomer came in: how long the listener takes no more of them."""
        ...


Wrap: TypeAlias = Callable[[socket.socket, Session], Transport]


def plain(sock: socket.socket, _session: Session) -> Transport:
    """What a listener without encryption wraps its connections in."""
    return PlainTransport(sock)


def _refuse_early(_connection: IncomingConnection, _frame: memoryview) -> Answer:
    raise CloseConnection("the broker is still starting")


class Listener:
    """One listening socket and the connections that came in through it."""

    def __init__(
        self,
        *,
        name: str,
        host: str,
        port: int,
        limits: ListenerLimits,
        pool: BufferPool,
        crowd: Crowd,
        wrap: Wrap = plain,
        asks_who: bool = False,  # Whether nobody is served before a login.
    ) -> None:
        self.name = name
        self.host = host
        self.port = port  # The real one after `bind`, when 0 was asked for.
        self.connections: set[IncomingConnection] = set()
        self._limits = limits
        self._pool = pool
        self._crowd = crowd
        self.wrap = wrap
        self._asks_who = asks_who
        self._dispatch: Dispatch = _refuse_early
        self._metrics = ListenerMetrics()
        self._socket: socket.socket | None = None
        self._is_accepting = False
        self._is_open = False  # Whether `start` was called: connections are taken.
        self._loop = asyncio.get_running_loop()
        self._readers = Readers(self._loop)
        self._sweep: asyncio.TimerHandle | None = None
        self._turnstile: Turnstile | None = None  # None: as many come in as want to.
        self._turned_away: dict[socket.socket, asyncio.TimerHandle] = {}
        self._reopens: asyncio.TimerHandle | None = None  # Set while the turnstile holds the door.
        crowd.add_door(self)

    def bind(self) -> None:
        """Take the port; raises OSError when it cannot be had."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self._limits.receive_buffer_bytes is not None:
                # Before listen(), so that the window of accepted connections is sized by it.
                size = self._limits.receive_buffer_bytes
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
            sock.bind((self.host, self.port))
            sock.listen(self._limits.backlog)
        except OSError:
            sock.close()
            raise
        sock.setblocking(False)
        self.port = sock.getsockname()[1]
        self._socket = sock

    def start(
        self,
        dispatch: Dispatch,
        metrics: ListenerMetrics,
        turnstile: Turnstile | None = None,
    ) -> None:
        """Open the door; until now newcomers waited in the backlog."""
        self._dispatch = dispatch
        self._metrics = metrics
        self._turnstile = turnstile
        self._is_open = True
        self._resume_accepting()
        if self._limits.idle_s_max is not None:
            self._sweep_later(self._limits.idle_s_max)

    def stop_accepting(self) -> None:
        self._is_open = False
        self._pause_accepting()
        if self._sweep is not None:
            self._sweep.cancel()
        if self._reopens is not None:
            self._reopens.cancel()
        for sock in tuple(self._turned_away):
            self._turned_away[sock].cancel()
            self._let_go(sock)
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def drain(self, timeout_s: float) -> None:
        """Answer what was begun, then close; what takes longer than the time-out is cut off."""
        for connection in tuple(self.connections):
            connection.finish()
        deadline_s = self._loop.time() + timeout_s
        while self.connections and self._loop.time() < deadline_s:
            await asyncio.sleep(0.01)
        self.close()

    def close(self) -> None:
        self.stop_accepting()
        for connection in tuple(self.connections):
            connection.close()
        self._readers.close()

    # Accepting

    def _resume_accepting(self) -> None:
        if self._socket is not None and not self._is_accepting and self._reopens is None:
            self._loop.add_reader(self._socket.fileno(), self._on_acceptable)
            self._is_accepting = True

    def _pause_accepting(self) -> None:
        if self._socket is not None and self._is_accepting:
            self._loop.remove_reader(self._socket.fileno())
        self._is_accepting = False

    def _on_acceptable(self) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            if self._socket is None:
                return
            if not self._crowd.has_room(self.name):
                # As Kafka does: newcomers wait in the backlog until somebody leaves.
                peer_log.warning("Listener %s is full; max.connections reached", self.name)
                self._pause_accepting()
                return
            try:
                sock, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause_after_error(error)
                return
            self._admit(sock, address[0])
            if self._turnstile is not None:
                pause_ms = self._turnstile.close_door_ms(self.name)
                if pause_ms:
                    self._close_door(pause_ms / 1000)
                    return

    def _close_door(self, seconds: float) -> None:
        self._pause_accepting()
        self._reopens = self._loop.call_later(seconds, self._reopen_door)

    def _reopen_door(self) -> None:
        self._reopens = None
        self._resume_accepting()

    def _pause_after_error(self, error: OSError) -> None:
        if error.errno not in _OUT_OF_DESCRIPTORS:
            raise error
        log.error("Cannot accept connections for now: %s", os.strerror(error.errno or 0))
        self._pause_accepting()
        self._loop.call_later(_RETRY_ACCEPT_S, self._resume_accepting)

    def _admit(self, sock: socket.socket, ip: str) -> None:
        if self._turnstile is not None:
            held_ms = self._turnstile.turn_away_ms(ip)
            if held_ms:
                self._turn_away(sock, held_ms / 1000)
                return
        most = self._crowd.most_from(ip)
        if most is not None:
            peer_log.info(
                "Rejected connection from %s, address already has the configured maximum of %d "
                "connections.",
                ip,
                most,
            )
            self._metrics.refused += 1
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._limits.send_buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._limits.send_buffer_bytes)
        session = Session(listener=self.name, address=peer_address(sock))
        if self._asks_who:
            session.authentication = Authentication.PENDING
        try:
            transport = self.wrap(sock, session)
        except OSError:  # It was gone before its connection was made.
            sock.close()
            return
        self._metrics.opened += 1
        connection = IncomingConnection(
            transport,
            loop=self._loop,
            dispatch=self._dispatch,
            limits=self._limits.connection,
            pool=self._pool,
            readers=self._readers,
            session=session,
        )
        self.connections.add(connection)
        session.at_close("listener", partial(self._see_off, connection, ip))
        self._crowd.enter(self.name, ip)
        if self._asks_who or not transport.is_ready:
            self._limit_handshake(connection, transport)
        connection.start()

    def _limit_handshake(self, connection: IncomingConnection, transport: Transport) -> None:
        within_s = self._limits.handshake_s_max

        def judge() -> None:
            if not transport.is_ready:
                connection.close(f"no TLS handshake within {within_s:g} s")
            elif connection.session.authentication is Authentication.PENDING:
                connection.close(f"no authentication within {within_s:g} s")

        deadline = self._loop.call_later(within_s, judge)
        connection.session.at_close("handshake", deadline.cancel)

    def _turn_away(self, sock: socket.socket, seconds: float) -> None:
        """Closed only after a while, or the peer would be back at once."""
        self._metrics.refused += 1
        if len(self._turned_away) >= _TURNED_AWAY_MAX:
            sock.close()
            return
        self._turned_away[sock] = self._loop.call_later(seconds, self._let_go, sock)

    def _let_go(self, sock: socket.socket) -> None:
        del self._turned_away[sock]
        sock.close()

    def _see_off(self, connection: IncomingConnection, ip: str) -> None:
        self.connections.discard(connection)
        self._metrics.closed += 1
        self._crowd.leave(self.name, ip)

    # What the crowd asks

    def look_again(self) -> None:
        """There may be room now."""
        if self._is_open:
            self._resume_accepting()

    def longest_silent_s(self) -> float | None:
        """When the connection that has been silent longest was last heard; None: there is none."""
        return min((one.last_active_s for one in self.connections), default=None)

    def close_longest_silent(self) -> None:
        connection = min(self.connections, key=lambda one: one.last_active_s)
        connection.close("max.connections is reached, and a broker needs a place")

    # Silence

    def _sweep_later(self, idle_s_max: float) -> None:
        pause_s = min(max(idle_s_max / 4, 0.05), 30.0)
        self._sweep = self._loop.call_later(pause_s, self._close_silent, idle_s_max)

    def _close_silent(self, idle_s_max: float) -> None:
        now_s = self._loop.time()
        for connection in tuple(self.connections):
            # One that waits for our answer is not silent; one that takes nothing of it is.
            if now_s - connection.last_active_s > idle_s_max and not connection.is_waiting:
                peer_log.info(
                    "Closing the connection of %s: silent for too long", connection.session.address
                )
                self._metrics.closed_idle += 1
                connection.close()
        self._sweep_later(idle_s_max)
