"""The registry's memory: it follows the topic, and changes what it knows only by reading it.

A change is decided on the state, written, and answered when our own reader has passed it; the next
one is decided after that. So no decision is older than the last write, and an id is never given
twice. Whoever leads writes in a term of its own: its first record shuts out those who led before,
and nothing is decided until our reader has passed it. A decision may take a while (a Protobuf
schema is compiled), so it runs in a thread; the state stands still meanwhile.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

from penstock.client.wire.fenced_writer import WriteOutcomeUnknown, WriterFenced
from penstock.errors import PenstockError, RecordTooLarge, UnknownTopicOrPartition
from penstock.registry import errors
from penstock.registry.records import NOOP, DamagedRecord, StoreRecord
from penstock.registry.service.topic import ReadRecord, SchemaTopic, batches
from penstock.registry.state import RegistryState

log = logging.getLogger("penstock.registry")

T = TypeVar("T")
_CHANGES_KEPT = 1000


class Decision(Protocol):
    """What a decision has to have: the records to write."""

    @property
    def records(self) -> tuple[StoreRecord, ...]: ...


D = TypeVar("D", bound=Decision)


class StoreBroken(PenstockError):
    """The topic is not the one that was read: the process must begin anew."""


class NotLeading(PenstockError):
    """This instance does not lead, or does so no more; the change was not written."""


class SchemaStore:
    """The state, its one reader and its one writer."""

    def __init__(
        self,
        topic: SchemaTopic,
        state: RegistryState,
        *,
        timeout_s: float,
        is_leading: Callable[[], bool] = lambda: True,
    ) -> None:
        self.state = state
        self.damaged = 0  # Records that could not be read.
        self._topic = topic
        self._timeout_s = timeout_s
        self._is_leading = is_leading
        self._term_producers: set[int] = set()  # Whoever began a term that the topic tells of.
        self._changed_at: deque[int] = deque(maxlen=_CHANGES_KEPT)  # Offsets that meant something.
        self._next = 0  # The offset after the last record that was read.
        self._has_read = asyncio.Condition()
        self._still = asyncio.Lock()  # Held while a decision reads, or the reader changes, state.
        self._writing = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="registry-decisions")
        self._changes: set[asyncio.Task[None]] = set()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def follow(self) -> None:
        """Read without end; raises what makes it impossible to go on."""
        while True:
            reading = asyncio.ensure_future(self._topic.read())
            try:
                either: set[asyncio.Future[Any]] = {reading, self._failure}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if self._failure.done():
                    self._failure.result()
                await self._take(reading.result())
            finally:
                reading.cancel()
                await asyncio.wait({reading})

    async def catch_up(self) -> None:
        """Until everything that was written before now has been read."""
        await self._read_past(await self._topic.mark())

    async def ask(self, decide: Callable[[RegistryState], T]) -> T:
        """What a function says of the state, which stands still for it."""
        async with self._still:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, decide, self.state)

    @property
    def position(self) -> int:
        """The offset up to which the topic has been read."""
        return self._next

    async def wait_until_read(self, position: int, timeout_s: float) -> None:
        """Until all before a position has been read, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._read_past(position - 1)

    async def find_done(self, decide: Callable[[RegistryState], D]) -> D | None:
        """The decision, if there is nothing to write; None: whoever leads must decide."""
        try:
            decision = await self.ask(decide)
        except errors.RegistryError:
            return None  # The leader may know better.
        return None if decision.records else decision

    async def change(self, decide: Callable[[RegistryState], D]) -> D:
        """Decide, write, read back; RegistryError 50002 when that takes too long.

        What was begun goes on then: only its end tells what the next decision has to know.
        NotLeading says that another one must be asked; nothing was written.
        """
        answer: asyncio.Future[D] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._writing.acquire()
                change = asyncio.create_task(self._settle(decide, answer), name="change")
                self._changes.add(change)
                change.add_done_callback(self._changes.discard)
                return await answer
        except TimeoutError:
            raise errors.store_timed_out() from None

    def close(self) -> None:
        """End the thread and what is still under way."""
        for change in self._changes:
            change.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _settle(
        self, decide: Callable[[RegistryState], D], answer: "asyncio.Future[D]"
    ) -> None:
        """One change from its decision to its end; nobody may listen to the answer any more."""
        try:
            await self._enter_term()
            decision = await self.ask(decide)
            if decision.records:
                await self._write(decision.records)
        except Exception as error:  # noqa: BLE001  (whoever waits for the answer gets it)
            if not answer.done():
                answer.set_exception(error)
            else:
                log.warning("A change failed after its time was over: %s", error)
        else:
            if not answer.done():
                answer.set_result(decision)
        finally:
            self._writing.release()

    async def _enter_term(self) -> None:
        """Nobody but us writes from here on, and all that others wrote has been read."""
        self._check_leading()
        if self._topic.is_in_term:
            return
        with self._topic_errors():
            begun = await self._topic.begin_term()
            await self._read_past(begun.offset)
            others = sorted(self._term_producers - {begun.producer_id})
            if others:  # The coordinator forgot the id of the last terms, and gave another one.
                await self._read_past(await self._topic.retire(others))
        log.info("Term begun at offset %d", begun.offset)
        self._check_leading()

    def _check_leading(self) -> None:
        if not self._is_leading():
            self._topic.leave_term()
            raise NotLeading("Another instance leads.")

    async def _write(self, records: Sequence[StoreRecord]) -> None:
        """Nearly always one batch; else what comes later is not there without what comes before."""
        self._check_leading()
        for batch in batches(records):
            expected = self._next
            with self._topic_errors():
                offset = await self._topic.append(batch)
            if offset < expected:
                raise self._broken(f"offset {offset} was given again, {expected} is the next")
            await self._read_past(offset + len(batch) - 1)
            self._check_alone(expected, offset)

    def _check_alone(self, since: int, until: int) -> None:
        """In our own term nobody else's change can lie between what we knew and what we wrote."""
        if any(since <= at < until for at in self._changed_at):
            log.error(
                "Somebody who takes no part in our terms writes to the topic of the schemas too: "
                "two schemas may get one id"
            )

    @contextmanager
    def _topic_errors(self) -> Iterator[None]:
        """What goes wrong with the topic, in the words of our clients."""
        try:
            yield
        except WriterFenced as error:
            self._topic.leave_term()
            raise NotLeading(str(error)) from error
        except WriteOutcomeUnknown as error:
            self._topic.leave_term()  # A new term finds out.
            log.warning("%s", error)
            raise errors.store_timed_out() from error
        except UnknownTopicOrPartition as error:
            raise self._broken(str(error)) from error
        except RecordTooLarge as error:
            raise errors.too_large(f"Schema is too large: {error}") from error
        except errors.RegistryError:
            raise
        except PenstockError as error:
            raise errors.store_failed(str(error)) from error

    def _broken(self, reason: str) -> errors.RegistryError:
        """End the reader, and with it the process; the client's answer."""
        error = StoreBroken(f"The topic of the schemas cannot be written: {reason}")
        if not self._failure.done():
            self._failure.set_exception(error)
        return errors.store_failed(str(error))

    async def _read_past(self, offset: int) -> None:
        async with self._has_read:
            await self._has_read.wait_for(lambda: self._next > offset)

    async def _take(self, records: Sequence[ReadRecord]) -> None:
        if not records:
            return
        async with self._still:
            for record in records:
                self._apply(record)
        async with self._has_read:
            self._has_read.notify_all()

    def _apply(self, record: ReadRecord) -> None:
        if record.offset < self._next:
            raise StoreBroken(
                "The topic of the schemas begins anew: it was deleted or has lost records."
            )
        if record.term_producer_id is not None:
            self._term_producers.add(record.term_producer_id)
        if record.key != NOOP.key:
            self._changed_at.append(record.offset)
        try:
            self.state.apply(record.key, record.value)
        except DamagedRecord as error:
            self.damaged += 1
            log.warning("The record at offset %d is left out: %s", record.offset, error)
        self._next = record.offset + 1
