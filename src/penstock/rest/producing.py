"""One producer for all requests: records in, and where each was stored, or why it was not.

The event loop hands records to librdkafka, which never waits, and asks it for reports every few
milliseconds while any are due. Records wait here while librdkafka's buffer is full, in the order in
which they came.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from penstock.client.errors import KafkaTimeoutError
from penstock.client.producer.polled import (
    ANY_PARTITION,
    NOW,
    Outcome,
    PolledProducer,
    SentBatch,
    StoredAt,
)
from penstock.errors import PenstockError

__all__ = ["Outcome", "Outgoing", "SharedProducer", "StoredAt"]

_DEFAULTS = {"linger.ms": "2", "batch.size": "262144", "statistics.interval.ms": "0"}
_LOOK_S = 0.001
_LOOK_S_MAX = 0.02
_CLOSE_S = 5.0  # For what is under way when the process stops.


class Outgoing(NamedTuple):
    """A record to be stored."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int = ANY_PARTITION
    timestamp_ms: int = NOW
    headers: Sequence[tuple[str, bytes | None]] = ()


class SharedProducer:
    """Used by one event loop."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = {**_DEFAULTS, **settings}
        self._producer = PolledProducer(self._settings)
        self._due = 0  # Batches that are not reported on in full.
        self._polling: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()  # Who waits for room is not overtaken.

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Mapping[str, str]) -> AsyncIterator["SharedProducer"]:
        """The producer; at the end what is under way has a few seconds."""
        producer = cls(settings)
        try:
            yield producer
        finally:
            await producer.close()

    async def send(self, records: Sequence[Outgoing]) -> Sequence[Outcome]:
        """Store records; the outcome of each, in their order."""
        return await (await self.hand_over(records))

    async def hand_over(self, records: Sequence[Outgoing]) -> "asyncio.Future[Sequence[Outcome]]":
        """Queue records; returns as soon as there is room, with the outcomes to come."""
        done: asyncio.Future[Sequence[Outcome]] = asyncio.get_running_loop().create_future()
        if not records:
            done.set_result(())
            return done
        batch = SentBatch(len(records), lambda: self._finish(batch, done))
        self._due += 1
        self._keep_polling()
        queued = 0
        try:
            async with self._turn:
                for queued, record in enumerate(records):
                    while not self._queue(batch, queued, record):
                        await asyncio.sleep(_LOOK_S)
        except asyncio.CancelledError:
            for index in range(queued, len(records)):
                batch.settle(index, KafkaTimeoutError("The request ended before there was room."))
            raise
        return done

    def _queue(self, batch: SentBatch, index: int, record: Outgoing) -> bool:
        return self._producer.send(
            batch,
            index,
            topic=record.topic,
            value=record.value,
            key=record.key,
            partition=record.partition,
            timestamp_ms=record.timestamp_ms,
            headers=record.headers,
        )

    def _finish(self, batch: SentBatch, done: "asyncio.Future[Sequence[Outcome]]") -> None:
        self._due -= 1
        if not done.done():  # Nobody waits any more where the client has gone.
            done.set_result([one for one in batch.outcomes if one is not None])

    def _keep_polling(self) -> None:
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll(), name="produce reports")

    async def _poll(self) -> None:
        """Ask for reports for as long as any are due, more seldom while none come."""
        pause_s = _LOOK_S
        while self._due:
            await asyncio.sleep(pause_s)
            try:
                served = self._producer.poll()
            except PenstockError:  # Fatal: this producer will never send again.
                self._replace()
                continue
            pause_s = _LOOK_S if served else min(pause_s * 1.2, _LOOK_S_MAX)

    def _replace(self) -> None:
        broken, self._producer = self._producer, PolledProducer(self._settings)
        broken.purge()
        broken.close()

    async def close(self) -> None:
        """Wait a little for what is under way; the rest fails."""
        deadline_s = asyncio.get_running_loop().time() + _CLOSE_S
        while self._due and asyncio.get_running_loop().time() < deadline_s:
            await asyncio.sleep(_LOOK_S)
        if self._polling is not None:
            self._polling.cancel()
        self._producer.close()
