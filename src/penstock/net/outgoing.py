"""Connections from this broker to others: a question goes out, its answer comes back.

A non-blocking transport per broker and channel, like the connections of net/connection.py and
for the same reason: an answer of megabytes is received straight into one buffer, and the records
in it stay where they are. An answer belongs to a question by its place in the line and by its
correlation id. A question that nobody waits for any more takes its connection with it, so a late
answer can never be taken for another's.
"""

import asyncio
import errno
import mmap
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.errors import ProtocolError
from penstock.net.peers import PeerUnreachable
from penstock.net.transport import PlainTransport, Transport
from penstock.protocol.apis import Request, Response, response_class
from penstock.protocol.headers import decode_response_header, encode_request_header
from penstock.protocol.primitives import MalformedMessage
from penstock.security.sasl.client_exchange import Exchange, SaslQuestion
from penstock.security.sasl.outcome import SaslRefused

FRAME_BYTES_MAX = 256 * 1024 * 1024  # An answer is bounded by what was asked for; this is a net.
_LENGTH = struct.Struct(">i")
_BUFFER_BYTES_MIN = 64 * 1024
_KEPT_BYTES_MAX = 16 * 1024 * 1024
# How much one readiness event may take in before other connections get their turn.
_TURN_BYTES = 4 * 1024 * 1024
_CORRELATION_IDS = 1 << 31
# A session that ends is renewed when this share of it has passed, as Kafka's clients do.
_SESSION_SHARE = 0.85

Address = tuple[str, int]


def _plain(sock: socket.socket, _host: str) -> Transport:
    return PlainTransport(sock)


class TcpPeers:
    """Other brokers over TCP. `address_of` says where one listens; None: nobody knows."""

    def __init__(
        self,
        address_of: Callable[[int], Address | None],
        *,
        client_id: str | None = None,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        receive_buffer_bytes: int | None = None,  # None: as the kernel thinks best.
        wrap: Callable[[socket.socket, str], Transport] = _plain,
        login: Callable[[str], Exchange] | None = None,  # By host; None: nobody asks who we are.
    ) -> None:
        self._address_of = address_of
        self.login = login
        self.receive_buffer_bytes = receive_buffer_bytes
        self.wrap = wrap
        self._client_id = client_id
        self._frame_bytes_max = frame_bytes_max
        self._links: dict[tuple[int, str], _Link] = {}

    async def ask(
        self,
        broker_id: int,
        request: Request,
        *,
        timeout_s: float,
        channel: str = "control",
        version: int | None = None,
    ) -> Response:
        link = self._links.get((broker_id, channel))
        if link is not None and link.is_ending:
            link.retire()  # What was asked is still answered there.
            link = None
        if link is None or link.is_closed:
            link = self._links[broker_id, channel] = _Link(broker_id, self)
        spoken = request.versions[-1] if version is None else version
        try:
            async with asyncio.timeout(timeout_s):
                if not link.is_open:
                    await link.connect()
                return await link.ask(request, spoken)
        except TimeoutError:
            link.close(reason := f"broker {broker_id} did not answer within {timeout_s:g} s")
            raise PeerUnreachable(reason) from None
        except asyncio.CancelledError:
            link.close(f"a question to broker {broker_id} was given up")
            raise

    def forget(self, broker_id: int) -> None:
        for key in [key for key in self._links if key[0] == broker_id]:
            self._links.pop(key).close(f"broker {broker_id} is not there any more")

    def close(self) -> None:
        for broker_id in {key[0] for key in self._links}:
            self.forget(broker_id)

    def find(self, broker_id: int) -> Address:
        address = self._address_of(broker_id)
        if address is None:
            raise PeerUnreachable(f"nobody knows where broker {broker_id} is", was_sent=False)
        return address

    @property
    def client_id(self) -> str | None:
        return self._client_id

    @property
    def frame_bytes_max(self) -> int:
        return self._frame_bytes_max


class _Question(NamedTuple):
    correlation_id: int
    api_key: int
    version: int
    answer: "asyncio.Future[Response]"


class _Link:
    """One connection; it is closed for good by the first thing that goes wrong."""

    def __init__(self, broker_id: int, peers: TcpPeers) -> None:
        self.is_open = False
        self.is_closed = False
        self._broker_id = broker_id
        self._peers = peers
        self._loop = asyncio.get_running_loop()
        self._connecting = asyncio.Lock()
        self._transport: Transport | None = None
        self._fd = -1
        self._correlation_id = 0
        self._questions: deque[_Question] = deque()
        self._out: deque[Any] = deque()  # What the transport did not take yet.
        self._out_at = 0  # How much of the first element of _out is already sent.
        self._has_writer = False  # Whether the event loop tells when there is room to send.
        self._head = bytearray()  # Up to three bytes of a length that is still coming.
        self._buffer: mmap.mmap | None = None  # The last one, used again if nobody looks at it.
        self._frame: memoryview | None = None  # An answer that is still coming...
        self._filled = 0
        self._why_closed = ""
        self._ends_s: float | None = None  # When its session is to be renewed; None: never.
        self._is_retired = False  # Closed as soon as all that was asked is answered.

    # Life

    @property
    def is_ending(self) -> bool:
        """Whether the other side will soon want to know again who we are (KIP-368)."""
        return self._ends_s is not None and self._loop.time() >= self._ends_s

    def retire(self) -> None:
        """Ask nothing more here."""
        self._is_retired = True
        if not self._questions:
            self.close("its session was about to end")

    async def connect(self) -> None:
        """Open the connection; those who come while somebody does wait for it."""
        async with self._connecting:
            self._refuse_if_closed(was_sent=False)
            if self.is_open:
                return
            host, port = self._peers.find(self._broker_id)
            try:
                sock = await self._open_any(host, port)
                if self.is_closed:  # Forgotten meanwhile.
                    sock.close()
                self._refuse_if_closed(was_sent=False)
                self._transport = self._peers.wrap(sock, host)
            except OSError as error:
                is_refused = error.errno == errno.ECONNREFUSED
                reason = f"broker {self._broker_id} at {host}:{port} cannot be reached: {error}"
                self.close(reason)
                raise PeerUnreachable(reason, is_refused=is_refused, was_sent=False) from None
            self._fd = self._transport.fileno()
            self._loop.add_reader(self._fd, self._on_readable)
            if self._peers.login is not None:
                await self._log_in(self._peers.login(host))
            self.is_open = True

    async def _log_in(self, exchange: Exchange) -> None:
        """Prove who we are; whoever does not believe it is as good as unreachable."""
        try:
            lifetime_ms = await self._exchange(exchange)
        except (SaslRefused, ProtocolError) as error:
            reason = f"broker {self._broker_id} does not let us in: {error}"
            self.close(reason)
            raise PeerUnreachable(reason, was_sent=False) from error
        if lifetime_ms > 0:
            self._ends_s = self._loop.time() + lifetime_ms / 1000 * _SESSION_SHARE

    async def _exchange(self, exchange: Exchange) -> int:
        answer: Response | None = None
        while True:
            # In a thread: the proof of SCRAM takes milliseconds, so that guessing takes long.
            question, lifetime_ms = await asyncio.to_thread(_next_step, exchange, answer)
            if question is None:
                return lifetime_ms
            version = question.version
            spoken = question.request.versions[-1] if version is None else version
            answer = await self.ask(question.request, spoken)

    async def _open_any(self, host: str, port: int) -> socket.socket:
        try:  # A number needs no thread to look it up.
            found = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
        except socket.gaierror:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, address in found[:-1]:
            try:
                return await self._open_one(family, kind, protocol, address)
            except OSError:
                continue  # The next address may do.
        family, kind, protocol, _, address = found[-1]
        return await self._open_one(family, kind, protocol, address)

    async def _open_one(
        self, family: int, kind: int, protocol: int, address: tuple[object, ...]
    ) -> socket.socket:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if (size := self._peers.receive_buffer_bytes) is not None:
                # Before connecting: the window's scale is agreed on then.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
            await self._loop.sock_connect(sock, address)
        except BaseException:
            sock.close()
            raise
        return sock

    def _refuse_if_closed(self, *, was_sent: bool) -> None:
        if self.is_closed:
            raise PeerUnreachable(self._why_closed, was_sent=was_sent)

    def close(self, reason: str) -> None:
        if self.is_closed:
            return
        self.is_closed, self.is_open = True, False
        self._why_closed = reason
        if self._transport is not None:
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
            self._transport.close()
        self._out.clear()
        self._frame = self._buffer = None
        for question in self._questions:
            if not question.answer.done():
                question.answer.set_exception(PeerUnreachable(reason))
        self._questions.clear()

    # Asking

    async def ask(self, request: Request, version: int) -> Response:
        self._refuse_if_closed(was_sent=False)
        self._correlation_id = (self._correlation_id + 1) % _CORRELATION_IDS
        number = self._correlation_id
        header = encode_request_header(request.api_key, version, number, self._peers.client_id)
        body = request.encode(version)
        answer: asyncio.Future[Response] = self._loop.create_future()
        self._questions.append(_Question(number, request.api_key, version, answer))
        self._send(b"".join((_LENGTH.pack(len(header) + len(body)), header, body)))
        return await answer

    def _send(self, frame: bytes) -> None:
        self._out.append(frame)
        if not self._has_writer:  # Else those before it wait already.
            self._send_some()
            self._mind_writer()

    def _send_some(self) -> None:
        assert self._transport is not None
        out = self._out
        try:
            while out:
                self._out_at += self._transport.send_parts(out, self._out_at)
                while out and self._out_at >= len(out[0]):
                    self._out_at -= len(out.popleft())
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._lose(error)

    def _mind_writer(self) -> None:
        """Let the loop tell of room to send as long as something needs it, and no longer."""
        transport = self._transport
        if self.is_closed or transport is None:
            return
        needs_room = transport.wants_write or (bool(self._out) and not transport.wants_read)
        if needs_room and not self._has_writer:
            self._loop.add_writer(self._fd, self._on_writable)
        elif self._has_writer and not needs_room:
            self._loop.remove_writer(self._fd)
        self._has_writer = needs_room

    def _on_writable(self) -> None:
        assert self._transport is not None
        self._send_some()
        if self._transport.wants_write and not self.is_closed:
            self._read_some()
        self._mind_writer()

    def _lose(self, error: OSError) -> None:
        self.close(f"the connection to broker {self._broker_id} was lost: {error}")

    # Answers

    def _on_readable(self) -> None:
        assert self._transport is not None
        if self.is_closed:
            return
        self._read_some()
        if self._out and self._transport.wants_read and not self.is_closed:
            self._send_some()
        if self._has_writer or self._out or self._transport.wants_write:
            self._mind_writer()

    def _read_some(self) -> None:
        try:
            self._read_turn()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._lose(error)
        except (MalformedMessage, _Nonsense) as error:
            self.close(f"broker {self._broker_id} answers nonsense: {error}")

    def _read_turn(self) -> None:
        taken = 0
        while taken < _TURN_BYTES and not self.is_closed:
            received = self._read_length() if self._frame is None else self._read_frame()
            if received == 0:
                self.close(f"broker {self._broker_id} closed the connection")
                return
            taken += received
        if not self.is_closed and self._transport is not None and self._transport.has_pending:
            self._loop.call_soon(self._on_readable)  # The socket does not tell of these bytes.

    def _read_length(self) -> int:
        assert self._transport is not None
        rest = bytearray(_LENGTH.size - len(self._head))
        received = self._transport.receive_into(rest)
        self._head += rest[:received]
        if len(self._head) == _LENGTH.size:
            (size,) = _LENGTH.unpack(self._head)
            self._head.clear()
            if not 0 < size <= self._peers.frame_bytes_max or not self._questions:
                raise _Nonsense(f"a frame of {size} bytes, {len(self._questions)} expected")
            self._frame = memoryview(self._free_buffer(size))[:size]
            self._filled = 0
        return received

    def _free_buffer(self, size: int) -> mmap.mmap:
        """Memory for an answer: the last one's, if it is large enough and nobody looks at it.

        A fresh megabyte costs as much in page faults as in copying. An answer may be kept as long
        as anybody likes: every view of it counts as a reference to its buffer.
        """
        kept = self._buffer
        self._buffer = None  # So that ours are the two references of the next line.
        if kept is not None and len(kept) >= size and sys.getrefcount(kept) == 2:
            self._buffer = kept
            return kept
        fresh = mmap.mmap(-1, max(_BUFFER_BYTES_MIN, 1 << (size - 1).bit_length()))
        self._buffer = fresh if len(fresh) <= _KEPT_BYTES_MAX else None
        return fresh

    def _read_frame(self) -> int:
        assert self._transport is not None and self._frame is not None
        received = self._transport.receive_into(self._frame[self._filled :])
        self._filled += received
        if self._filled == len(self._frame):
            frame, self._frame = self._frame, None
            self._take_answer(frame)
        return received

    def _take_answer(self, frame: memoryview) -> None:
        question = self._questions[0]  # Stays in the line until it is known to be answered.
        number, body_at = decode_response_header(frame, question.api_key, question.version)
        if number != question.correlation_id:
            raise _Nonsense(f"answer {number} to question {question.correlation_id}")
        answer = response_class(question.api_key).decode(frame, question.version, body_at)
        self._questions.popleft()
        if not question.answer.done():
            question.answer.set_result(answer)
        if self._is_retired and not self._questions:
            self.close("its session was about to end")


def _next_step(exchange: Exchange, answer: Response | None) -> tuple[SaslQuestion | None, int]:
    """The next question, or None and how long the session lasts."""
    try:
        question = next(exchange) if answer is None else exchange.send(answer)
    except StopIteration as done:
        return None, int(done.value)
    return question, 0


class _Nonsense(Exception):
    """The other side does not speak as a broker does."""
