"""A machine with its log and its clock: loaded in pieces, woken when a timer is due.

The shell owns these, one for each partition of the state topic that this broker leads. The machine
itself knows nothing of the event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

from penstock.coordination.answers import Ticket
from penstock.coordination.machine import NO_PRODUCER, M
from penstock.coordination.pauses import Pauses
from penstock.errors import CorruptRecord, ErrorCode, ProtocolError
from penstock.records.batch import BatchHeader, Record
from penstock.records.control import ControlType, read_marker
from penstock.replica.state_log import StateLog

CHUNK_BYTES: Final = 1 << 16  # Of the log, read between two turns of the event loop.
_RECORDS_AT_ONCE: Final = 1000  # One request may have made a batch of tens of thousands.

T = TypeVar("T")


class LedShard(Generic[M]):
    """One partition of a state topic in one leader epoch."""

    def __init__(
        self, state_log: StateLog, make: "Callable[[LedShard[M]], M]", logger: logging.Logger
    ) -> None:
        self.log = state_log
        self.is_loaded = False
        self._loop = asyncio.get_running_loop()
        self._now_ms = state_log.now_ms
        self._logger = logger
        self._wake: asyncio.TimerHandle | None = None
        self._wake_ms = 0
        self._waiting: dict[Ticket[Any], asyncio.Future[Any]] = {}  # For answers of the machine.
        self._tasks: set[asyncio.Task[None]] = set()  # Loading, and what the coordinator began.
        # Appended while the log was read: the producer, whether it commits, the marker's offset.
        self._markers: list[tuple[int, bool, int]] = []
        self._make = make
        self.shard = make(self)

    # The machine's clock

    def now_ms(self) -> int:
        return self._now_ms()

    def elapsed_ms(self) -> int:
        return int(self._loop.time() * 1000)

    # Turns of the machine

    def expect(self, ticket: Ticket[T]) -> "asyncio.Future[T]":
        """The answer that the machine will give under the ticket, or has given in this turn."""
        answer: asyncio.Future[T] = self._loop.create_future()
        self._waiting[ticket] = answer
        return answer

    def end_turn(self) -> None:
        """The machine has worked: hand out what it answered, and be woken for its next timer."""
        for ticket, response in self.shard.take_answers():
            answer = self._waiting.pop(ticket)
            if not answer.done():  # The client may have gone away.
                answer.set_result(response)
        self._wind_timer()

    def _wind_timer(self) -> None:
        next_ms = self.shard.next_timer_ms()
        if next_ms is None or (self._wake is not None and self._wake_ms <= next_ms):
            return
        if self._wake is not None:
            self._wake.cancel()
        self._wake_ms = next_ms
        self._wake = self._loop.call_at((next_ms + 1) / 1000, self._ring)

    def _ring(self) -> None:
        self._wake = None
        try:
            self.shard.ring()
        except Exception:
            self._logger.exception("A timer of %s failed", self.log)
        self.end_turn()

    # Loading

    @property
    def is_log_empty(self) -> bool:
        stored = self.log.partition.log
        return stored.log_start_offset >= stored.log_end_offset

    def forget(self) -> None:
        """Half of a log is as good as nothing: begin with a new machine."""
        self._markers.clear()  # A marker that was appended by now is read with the log.
        self.shard = self._make(self)

    async def read(self, *, chunk_bytes: int = CHUNK_BYTES) -> None:
        """Replay the log, in pieces."""
        for chunk in self.log.replay(chunk_bytes=chunk_bytes):
            for header, records in chunk:
                for start in range(0, len(records), _RECORDS_AT_ONCE):
                    if start:
                        await asyncio.sleep(0)
                    self._take_in(header, records[start : start + _RECORDS_AT_ONCE])
            await asyncio.sleep(0)

    def _take_in(self, header: BatchHeader, records: list[Record]) -> None:
        if header.is_control:
            self._take_in_marker(header, records)
            return
        producer_id = header.producer_id if header.is_transactional else NO_PRODUCER
        for offset, _, key, value, _ in records:
            self.shard.replay(key, value, offset, producer_id)

    def _take_in_marker(self, header: BatchHeader, records: list[Record]) -> None:
        try:
            marker = read_marker(records[0]) if records else None
        except CorruptRecord as error:
            self._logger.warning(
                "%s: the marker at %d is left out: %s", self.log, header.base_offset, error
            )
            return
        if marker is not None:
            self.shard.take_marker(
                header.producer_id,
                is_committed=marker.type is ControlType.COMMIT,
                marker_offset=header.base_offset,
            )

    def finish_loading(self) -> None:
        """From now on requests are served."""
        for producer_id, is_committed, offset in self._markers:
            self.shard.take_marker(producer_id, is_committed=is_committed, marker_offset=offset)
        self._markers.clear()
        self.shard.start()
        self.is_loaded = True
        self.end_turn()

    # What others appended

    def take_marker(self, producer_id: int, *, is_committed: bool, marker_offset: int) -> None:
        """A transaction was decided; while the log is being read, the marker waits its turn."""
        self.log.note_end()
        if self.is_loaded:
            self.shard.take_marker(
                producer_id, is_committed=is_committed, marker_offset=marker_offset
            )
        else:
            self._markers.append((producer_id, is_committed, marker_offset))

    # Waiting

    async def settle(self) -> None:
        """Wait until all that was written is safe, however long too few replicas are in sync.

        This is for work that nobody asks for again, such as loading. Raises once another leads.
        """
        pauses = Pauses()
        while True:
            try:
                await self.log.until_settled()
            except ProtocolError as error:
                if not self.log.is_led:
                    raise
                self._logger.warning("%s waits for its replicas: %s", self.log, error)
            else:
                return
            await pauses.pause()

    # Work in the background

    def start_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Begin work that ends with the leadership at the latest."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)
        return task

    def _end_task(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ProtocolError):
            self._logger.info("%s: stopped, since %s", self.log, error)
        elif error is not None:
            self._logger.error("%s: failed unexpectedly", self.log, exc_info=error)

    def close(self, error: ErrorCode) -> None:
        """Whoever waits is told; the log belongs to somebody else now."""
        self.is_loaded = False
        for task in tuple(self._tasks):
            task.cancel()
        self.shard.stop(error)
        self.end_turn()
        if self._wake is not None:
            self._wake.cancel()
