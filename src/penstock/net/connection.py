"""One client's connection: frames come in, answers go out in the order of the requests.

It works on a non-blocking transport and the event loop's readiness callbacks, because that is
what lets `recv_into` fill a reused buffer and `sendfile` send a log segment without a copy
(docs/adr/0007-event-loop.md has the measurements). It knows sizes and order, nothing of Kafka,
and nothing of what the bytes travel through: that is net/transport.py.
"""

import asyncio
import logging
import socket
import struct
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, cast

from penstock.net.buffers import SCRATCH_BYTES, Buffer, BufferPool
from penstock.net.places import AnswerPlace, AnswerToCome
from penstock.net.readers import Readers
from penstock.net.session import Session
from penstock.net.transport import FilePart, Parts, PeerRefused, Transport
from penstock.telemetry.peer_log import PeerLog

log = logging.getLogger("kafka.network.Connection")
peer_log = PeerLog(log)

LENGTH_BYTES = 4
_LENGTH = struct.Struct(">i")
# A connection that sent a frame this large will likely send another: read its length alone, then
# the body straight into its own buffer.
_LARGE_FRAME_BYTES = 64 * 1024
# How much one readiness event may take in before the other connections get their turn.
_READ_TURN_BYTES = 2 * 1024 * 1024
_WRITE_TURN_BYTES = 4 * 1024 * 1024

Answer: TypeAlias = Parts | Awaitable[Parts | None] | None
Dispatch: TypeAlias = Callable[["IncomingConnection", memoryview], Answer]


class CloseConnection(Exception):
    """Raised by dispatch when the peer cannot be answered; the message is the one log line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Bounds that hold for each connection of a listener."""

    frame_bytes_max: int
    frame_bytes_key: str = "socket.request.max.bytes"  # The setting that says so.
    # Requests begun and not yet answered; more wait in the socket. Also how many are begun in one
    # turn: a peer that sends thousands of small ones at once must not keep the others waiting.
    in_flight_max: int = 8
    # How long somebody who could not say who they are is kept before they may try again.
    failed_authentication_delay_s: float = 0.1


class IncomingConnection:
    """Reads frames, hands each to `dispatch`, writes the answers.

    A frame lives in a reused buffer: it is only valid until `dispatch` returns. What an awaiting
    handler needs later, it must have copied before.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        loop: asyncio.AbstractEventLoop,
        dispatch: Dispatch,
        limits: ConnectionLimits,
        pool: BufferPool,
        readers: Readers,
        session: Session,
    ) -> None:
        self.session = session
        self.last_active_s = loop.time()
        self.is_closed = False
        self.frame_bytes_max = limits.frame_bytes_max
        self.is_metered = False  # Whether the time spent on this peer is added up in busy_s.
        self.busy_s = 0.0
        self._transport = transport
        self._receive_into = transport.receive_into
        self._send = transport.send
        self._fd = transport.fileno()
        self._loop = loop
        self._dispatch = dispatch
        self._limits = limits
        self._pool = pool
        self._readers = readers
        self._head = bytearray()  # Up to three bytes of a length that is still coming.
        self._frame: Buffer | None = None  # A frame that is still coming...
        self._frame_size = 0
        self._frame_filled = 0
        self._expects_large = False
        self._backlog = b""  # Bytes received while no more requests may begin.
        self._pending: deque[AnswerPlace] = deque()
        self._out: deque[Any] = deque()
        self._begun = 0  # Requests begun in this turn.
        self._unflushed = 0  # Answers put into _out since the last flush.
        self._out_at = 0  # How much of the first element of _out is already sent.
        self._sent = 0  # Bytes sent in this turn.
        self._is_held = False
        self._is_reading = False
        self._is_writing = False  # Waits until the transport can go on sending...
        self._writes_on_read = False  # ...for which the peer must send first.
        self._is_read_due = False  # Bytes wait in the transport; a read of them is on its way.
        self._is_finishing = False
        self._is_turning = False
        self._mute: asyncio.TimerHandle | None = None  # Set while the peer is not to be read.

    # Life

    def start(self) -> None:
        self._resume_reading()

    @property
    def is_idle(self) -> bool:
        return not self._pending and not self._out

    @property
    def is_waiting(self) -> bool:
        """Whether the peer waits for an answer that is not made yet."""
        return bool(self._pending)

    def mute_for(self, seconds: float) -> None:
        """Read nothing for a while: the peer was answered and is throttled now (KIP-219)."""
        self._pause_reading()
        ends_s = self._loop.time() + seconds
        if self._mute is not None:
            if self._mute.when() >= ends_s:
                return
            self._mute.cancel()
        self._mute = self._loop.call_at(ends_s, self._unmute)

    def hold(self) -> None:
        """Begin nothing more until the request at hand is answered; for `dispatch` to call.

        What is done in pieces, or elsewhere, must not be overtaken by what was sent after it.
        """
        self._is_held = True

    def finish(self) -> None:
        """Take no new requests; close once everything begun is answered."""
        self._is_finishing = True
        self._pause_reading()
        if self.is_idle:
            self.close()

    def refuse(self, reason: str) -> None:
        """Close, but only after a while: guessing takes time then (KIP-306)."""
        peer_log.info("Failed authentication with %s (%s)", self.session.address, reason)
        self._is_finishing = True
        self._pause_reading()
        if self._is_writing:
            self._stop_waiting_to_send()
        self._is_writing = True  # Nothing else is sent, whatever becomes ready.
        self._writes_on_read = False
        delay_s = self._limits.failed_authentication_delay_s
        ending = self._loop.call_later(delay_s, self.close)
        self.session.at_close("refusal", ending.cancel)

    def close(self, reason: str | None = None) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        if reason:
            peer_log.warning("Closing the connection of %s: %s", self.session.address, reason)
        self._pause_reading()
        if self._mute is not None:
            self._mute.cancel()  # It would keep us in memory for as long as it lasts.
        if self._is_writing:
            self._stop_waiting_to_send()
        for place in self._pending:
            place.give_up()
        self._pending.clear()
        self._out.clear()
        self._backlog = b""
        self._frame = None
        self._transport.close()
        self.session.close()

    # Reading

    def _resume_reading(self) -> None:
        # What waits in the backlog came first, and is begun first.
        if not self._is_reading and not self._backlog and self._may_begin():
            self._readers.add(self._fd, self._on_readable)
            self._is_reading = True
            if self._transport.has_pending:
                self._read_soon()

    def _pause_reading(self) -> None:
        if self._is_reading:
            self._readers.remove(self._fd)
            self._is_reading = False

    def _read_soon(self) -> None:
        """Read what the socket's readiness does not tell of."""
        if not self._is_read_due:
            self._is_read_due = True
            self._loop.call_soon(self._read_pending)

    def _read_pending(self) -> None:
        self._is_read_due = False
        if self._is_reading:
            self._readers.note_time()
            self._on_readable()

    def _unmute(self) -> None:
        self._mute = None
        self.take_turn()

    def _may_begin(self) -> bool:
        return not (
            self.is_closed or self._is_finishing or self._mute is not None or self._is_full()
        )

    def _is_full(self) -> bool:
        # Unsent answers push back as well: a peer that does not read gets nothing more begun.
        return len(self._pending) >= self._limits.in_flight_max or self._is_writing or self._is_held

    def _on_readable(self) -> None:
        started_s = time.perf_counter() if self.is_metered else None
        self.last_active_s = self._readers.now_s
        self._begun = 0
        try:
            self._is_turning = True
            self._read_turn()
            self._is_turning = False
            if self._out:
                self._flush()
        except (BlockingIOError, InterruptedError):
            self._is_turning = False
            self._flush_or_close()
            if self._transport.wants_write and not self._is_writing and not self.is_closed:
                self._wait_to_send()  # Reading goes on after it.
        except OSError as error:
            self._is_turning = False
            self._lose(error)
        except CloseConnection as refusal:
            self._is_turning = False
            self._flush_or_close()
            self.close(str(refusal))
        except Exception:
            log.exception(
                "Closing the connection of %s after an error of ours", self.session.address
            )
            self.close()
        if started_s is not None:
            self.busy_s += time.perf_counter() - started_s

    def _read_turn(self) -> None:
        """Read until the socket is empty, the turn is over or no more may begin."""
        taken = 0
        while taken < _READ_TURN_BYTES and not self.is_closed:
            if self._frame is not None:
                received, wanted = self._read_into_frame()
            elif self._expects_large:
                received, wanted = self._read_length()
            else:
                received, wanted = self._read_scratch()
            if received == 0:
                self.close()
                return
            taken += received
            is_full = self._is_writing or (self._pending and self._is_full()) or self._is_held
            if is_full or self._mute is not None or self._backlog:
                self._pause_reading()
                return
            if received < wanted and self._transport.empties_at_once:
                return
            if self._begun >= self._limits.in_flight_max:
                break
        # The loop tells again that the socket has more; what the transport has, it does not know.
        if self._transport.has_pending and not self.is_closed:
            self._read_soon()

    def _read_into_frame(self) -> tuple[int, int]:
        frame = cast(Buffer, self._frame)
        with memoryview(frame) as whole, whole[self._frame_filled : self._frame_size] as rest:
            wanted = len(rest)
            received = self._receive_into(rest)
        self._frame_filled += received
        if received == wanted:
            self._finish_frame(frame)
        return received, wanted

    def _finish_frame(self, frame: Buffer) -> None:
        self._frame = None
        self._expects_large = self._frame_size >= _LARGE_FRAME_BYTES
        self._begin(memoryview(frame)[: self._frame_size])
        self._pool.give(frame)

    def _read_length(self) -> tuple[int, int]:
        rest = bytearray(LENGTH_BYTES - len(self._head))
        received = self._receive_into(rest)
        self._head += rest[:received]
        if len(self._head) == LENGTH_BYTES:
            (size,) = _LENGTH.unpack(self._head)
            self._head.clear()
            if not 0 < size <= self.frame_bytes_max:
                self._refuse_size(size)
            self._start_frame(size)
        return received, received

    def _start_frame(self, size: int) -> None:
        self._frame = self._pool.take(size)
        self._frame_size = size
        self._frame_filled = 0

    def _read_scratch(self) -> tuple[int, int]:
        view = self._pool.scratch
        if self._head:
            return self._read_behind_head(view)
        received = self._receive_into(view)
        size = received - LENGTH_BYTES
        if 0 < size <= self.frame_bytes_max and _LENGTH.unpack_from(view)[0] == size:
            # One whole request, the usual case; it may begin, since nobody is read who may not.
            self._begin(view[LENGTH_BYTES:received])
        elif received:
            self._take_frames(view[:received])
        return received, SCRATCH_BYTES

    def _read_behind_head(self, view: memoryview) -> tuple[int, int]:
        kept = len(self._head)
        view[:kept] = self._head
        received = self._receive_into(view[kept:])
        self._head.clear()  # Only now: there might have been nothing to receive.
        if received:
            self._take_frames(view[: kept + received])
        return received, SCRATCH_BYTES - kept

    def _take_frames(self, data: memoryview) -> None:
        """Begin every whole frame in `data`; keep the rest for later."""
        at, end = 0, len(data)
        size_max = self.frame_bytes_max
        while end - at >= LENGTH_BYTES:
            if self._is_full() or self._mute is not None:
                self._backlog = bytes(data[at:])
                return
            if self._begun >= self._limits.in_flight_max:
                self._backlog = bytes(data[at:])
                self._loop.call_soon(self.take_turn)
                return
            body = at + LENGTH_BYTES
            (size,) = _LENGTH.unpack_from(data, at)
            if not 0 < size <= size_max:
                self._refuse_size(size)
            at = body + size
            if at > end:
                self._start_frame(size)
                cast(Buffer, self._frame)[: end - body] = data[body:]
                self._frame_filled = end - body
                return
            self._begin(data[body:at])
            if self.is_closed:
                return
        self._head += data[at:]

    def _refuse_size(self, size: int) -> NoReturn:
        raise CloseConnection(
            f"a request of {size} bytes was announced; "
            f"{self._limits.frame_bytes_key} allows 1 to {self.frame_bytes_max}"
        )

    # Answers

    def _begin(self, frame: memoryview) -> None:
        self._begun += 1
        answer = self._dispatch(self, frame)
        if answer is None:
            return
        if type(answer) is list:
            if self._pending:
                self._pending.append(AnswerPlace(self, parts=answer))
            else:
                self._out.extend(answer)
                self._unflushed += 1
                if self._unflushed >= self._limits.in_flight_max:
                    # A peer that pipelines without end must not pile up answers.
                    self._flush_or_close()
            return
        coroutine = cast("Coroutine[Any, Any, Parts | None]", answer)
        place = AnswerPlace(self, holds=self._is_held)
        task = place.task = self._loop.create_task(coroutine)
        self._pending.append(place)
        task.add_done_callback(lambda done: self._note_answer(place, done))

    def keep_place(self, waiting: AnswerToCome) -> AnswerPlace:
        """A place for the answer to the request at hand, for which `dispatch` then returns None.

        Whoever fills it does so in a later turn of the event loop.
        """
        place = AnswerPlace(self, waiting=waiting)
        self._pending.append(place)
        return place

    def _note_answer(self, place: AnswerPlace, done: "asyncio.Task[Parts | None]") -> None:
        if place.holds:
            self._is_held = False
        if done.cancelled():
            return
        error = done.exception()  # Asked for also when nobody waits: an error unseen is logged.
        if self.is_closed:
            return
        if error is not None:
            self.close(str(error))
            return
        place.fill(done.result())

    def take_turn(self) -> None:
        """Go on: an answer is there, or a pause is over."""
        started_s = time.perf_counter() if self.is_metered else None
        self._begun = 0
        self._continue()
        if started_s is not None:
            self.busy_s += time.perf_counter() - started_s

    def _continue(self) -> None:
        """After an answer became ready, was sent or a mute ended: send, then take more in."""
        if self.is_closed or self._is_turning:
            return
        self._queue_ready()
        self._flush_or_close()
        if self.is_closed:
            return
        if self._is_finishing:
            if self.is_idle:
                self.close()
            return
        self._take_backlog()
        self._resume_reading()

    def _queue_ready(self) -> None:
        pending = self._pending
        while pending and pending[0].ready:
            parts = pending.popleft().parts
            if parts is not None:
                self._out.extend(parts)

    def _take_backlog(self) -> None:
        if not self._backlog or not self._may_begin():
            return
        data, self._backlog = self._backlog, b""
        try:
            self._is_turning = True
            # A writable copy, because batches are stamped in place.
            self._take_frames(memoryview(bytearray(data)))
        except CloseConnection as refusal:
            self._flush_or_close()
            self.close(str(refusal))
        finally:
            self._is_turning = False
        self._queue_ready()
        self._flush_or_close()

    # Writing

    def _flush_or_close(self) -> None:
        try:
            self._flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        if isinstance(error, PeerRefused):
            self.refuse(str(error))
        else:
            self.close(None if isinstance(error, ConnectionError) else str(error))

    def _flush(self) -> None:
        self._unflushed = 0
        out = self._out
        if not out or self._is_writing or self.is_closed:
            return
        if len(out) == 1 and type(out[0]) is bytes and not self._out_at:
            # The only answer there is, which nearly always goes out at once.
            try:
                self._out_at = self._send(out[0])
            except (BlockingIOError, InterruptedError):
                self._wait_to_send()
                return
            if self._out_at == len(out[0]):
                self._out_at = 0
                out.clear()
                return
        if not self._send_some():
            self._wait_to_send()

    def _wait_to_send(self) -> None:
        self._is_writing = True
        self._pause_reading()
        self._writes_on_read = self._transport.wants_read
        if self._writes_on_read:
            self._loop.add_reader(self._fd, self._on_writable)
        else:
            self._loop.add_writer(self._fd, self._on_writable)

    def _stop_waiting_to_send(self) -> None:
        self._is_writing = False
        if self._writes_on_read:
            self._loop.remove_reader(self._fd)
        else:
            self._loop.remove_writer(self._fd)

    def _on_writable(self) -> None:
        started_s = time.perf_counter() if self.is_metered else None
        self._begun = 0
        self._write_turn()
        if started_s is not None:
            self.busy_s += time.perf_counter() - started_s

    def _write_turn(self) -> None:
        try:
            is_sent = self._send_some()
        except OSError as error:
            self._lose(error)
            return
        self.last_active_s = self._loop.time()
        if is_sent:
            self._stop_waiting_to_send()
            self._continue()
        elif self._transport.wants_read != self._writes_on_read:
            self._stop_waiting_to_send()
            self._wait_to_send()

    def _send_some(self) -> bool:
        """Send until everything is out (True) or the transport takes no more (False).

        One that never fills, because its peer reads as fast, is left to the next turn all the same.
        """
        out = self._out
        self._sent = 0
        send_parts = self._transport.send_parts
        try:
            while out:
                if self._sent >= _WRITE_TURN_BYTES:
                    return False
                if isinstance(out[0], (bytes, bytearray, memoryview)):
                    sent = send_parts(out, self._out_at)
                    self._sent += sent
                    self._drop_sent(sent)
                else:
                    self._send_file(out[0])
        except (BlockingIOError, InterruptedError):
            return False
        return True

    def _drop_sent(self, sent: int) -> None:
        self._out_at += sent
        out = self._out
        while out and self._out_at >= len(out[0]):
            self._out_at -= len(out.popleft())

    def _send_file(self, part: FilePart) -> None:
        at, size = self._out_at, len(part)
        while at < size:
            if self._sent >= _WRITE_TURN_BYTES:
                self._out_at = at
                return
            try:
                count = min(size - at, _WRITE_TURN_BYTES)
                sent = self._transport.send_file(part, at, count)
            finally:
                self._out_at = at
            self._sent += sent
            if sent == 0:
                # The size was promised already; a shorter file would desynchronise the peer.
                raise OSError(f"the log file ended {size - at} bytes early")
            at += sent
        self._out.popleft()
        self._out_at = 0


def peer_address(sock: socket.socket) -> str:
    try:
        host, port = sock.getpeername()[:2]
    except OSError:
        return "a peer that is gone"
    return f"{host}:{port}"
