"""The registry's memory: it follows the topic, and changes what it knows only by reading it.

A change is decided on the state, written, and answered when our own reader has passed it; the next
one is decided after that. So no decision is older than the last write, and an id is never given
twice. A decision may take a while (a Protobuf schema is compiled), so it runs in a thread; the
state stands still meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from penstock.client.errors import FatalError
from penstock.errors import PenstockError, RecordTooLarge
from penstock.registry import errors
from penstock.registry.records import NOOP, DamagedRecord, StoreRecord
from penstock.registry.service.topic import ReadRecord, SchemaTopic
from penstock.registry.state import RegistryState

log = logging.getLogger("penstock.registry")

T = TypeVar("T")


class Decision(Protocol):
    """What a decision has to have: the records to write."""

    @property
    def records(self) -> tuple[StoreRecord, ...]: ...


D = TypeVar("D", bound=Decision)


class StoreBroken(PenstockError):
    """The topic is not the one that was read: the process must begin anew."""


class SchemaStore:
    """The state, its one reader and its one writer."""

    def __init__(self, topic: SchemaTopic, state: RegistryState, *, timeout_s: float) -> None:
        self.state = state
        self.damaged = 0  # Records that could not be read.
        self._topic = topic
        self._timeout_s = timeout_s
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
        await self._read_past(await self._topic.append(NOOP))

    async def ask(self, decide: Callable[[RegistryState], T]) -> T:
        """What a function says of the state, which stands still for it."""
        async with self._still:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, decide, self.state)

    async def change(self, decide: Callable[[RegistryState], D]) -> D:
        """Decide, write, read back; RegistryError 50002 when that takes too long.

        What was begun goes on then: only its end tells what the next decision has to know.
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
            decision = await self.ask(decide)
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

    async def _write(self, records: Sequence[StoreRecord]) -> None:
        """One after the other: what comes later must not be there without what comes before."""
        for record in records:
            expected = self._next
            offset = await self._append(record)
            if offset < expected:
                raise self._broken(f"offset {offset} was given again, {expected} is the next")
            if offset > expected:
                log.error(
                    "Somebody else writes to the topic of the schemas (offset %d instead of %d): "
                    "run one registry only, or two schemas may get one id",
                    offset,
                    expected,
                )
            await self._read_past(offset)

    async def _append(self, record: StoreRecord) -> int:
        try:
            return await self._topic.append(record)
        except FatalError as error:
            raise self._broken(str(error)) from error
        except RecordTooLarge as error:
            raise errors.too_large(f"Schema is too large: {error}") from error
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
        try:
            self.state.apply(record.key, record.value)
        except DamagedRecord as error:
            self.damaged += 1
            log.warning("The record at offset %d is left out: %s", record.offset, error)
        self._next = record.offset + 1
