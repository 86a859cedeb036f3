"""The clients for asyncio: the same calls, awaited, and the event loop never waits.

Each client has one thread of its own, on which every call is made: records keep the order in which
they were sent, and a consumer, which is for one thread, has one.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeAlias, TypeVar, overload

from penstock.client.consumer.commits import Offsets
from penstock.client.consumer.consumer import Consumer
from penstock.client.consumer.rebalance import RebalanceListener
from penstock.client.errors import WakeupError
from penstock.client.headers import Headers
from penstock.client.producer.producer import Producer
from penstock.client.serialization import (
    AnyDeserializer,
    AnySerializer,
    DeserializerOf,
    SerializerOf,
)
from penstock.client.values import (
    ConsumerRecord,
    ConsumerRecords,
    K,
    OffsetAndMetadata,
    PartitionInfo,
    ProducerRecord,
    RecordMetadata,
    SentK,
    SentV,
    TopicPartition,
    V,
)

P = ParamSpec("P")
T = TypeVar("T")
_Config: TypeAlias = Mapping[str, object] | None


class AsyncProducer(Generic[SentK, SentV]):
    """`async with AsyncProducer(...) as producer: await producer.send("t", value)`.

    It takes what `Producer` takes.
    """

    # fmt: off
    @overload
    def __init__(self, config: _Config = ..., /, *,
                 key: SerializerOf[SentK] = ..., key_serializer: SerializerOf[SentK] = ...,
                 value: SerializerOf[SentV] = ..., value_serializer: SerializerOf[SentV] = ...,
                 **settings: object) -> None: ...
    @overload
    def __init__(self: "AsyncProducer[Any, Any]", config: _Config = ..., /, *,
                 key: AnySerializer | None = ..., value: AnySerializer | None = ...,
                 **settings: object) -> None: ...
    # fmt: on
    def __init__(self, config: _Config = None, /, **settings: Any) -> None:
        self.producer: Producer[SentK, SentV] = Producer(config, **settings)
        self._thread = _OwnThread("producer")

    async def send(
        self,
        record: ProducerRecord[SentK, SentV] | str,
        value: SentV | None = None,
        *,
        key: SentK | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> RecordMetadata:
        """Send, and return once the broker has stored it; gather many for speed."""
        sent = await self._thread.call(
            self.producer.send,
            record,
            value,
            key=key,
            partition=partition,
            timestamp_ms=timestamp_ms,
            headers=headers,
            timestamp=timestamp,
        )
        return await asyncio.wrap_future(sent)

    async def flush(self) -> None:
        """Wait until everything sent so far has been stored or has failed."""
        await self._thread.call(self.producer.flush)

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic."""
        return await self._thread.call(self.producer.partitions_for, topic)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """All or nothing: committed at the end of the block, aborted if it raises."""
        block = self.producer.transaction()
        await self._thread.call(block.__enter__)
        try:
            yield self
        except BaseException as error:
            if not await self._thread.call(block.__exit__, type(error), error, None):
                raise
        else:
            await self._thread.call(block.__exit__, None, None, None)

    async def send_offsets_to_transaction(self, offsets: Offsets, group_metadata: object) -> None:
        """Make a consumer's progress part of the transaction."""
        await self._thread.call(self.producer.send_offsets_to_transaction, offsets, group_metadata)

    async def close(self, timeout_s: float | None = None) -> None:
        """Wait for what is under way, then free everything."""
        await self._thread.call(self.producer.close, timeout_s)
        self._thread.shut_down()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncConsumer(Generic[K, V]):
    """`async with AsyncConsumer(...) as consumer: async for record in consumer: ...`.

    It takes what `Consumer` takes.
    """

    # fmt: off
    @overload
    def __init__(self, config: _Config = ..., /, *,
                 key: DeserializerOf[K] = ..., key_deserializer: DeserializerOf[K] = ...,
                 value: DeserializerOf[V] = ..., value_deserializer: DeserializerOf[V] = ...,
                 **settings: object) -> None: ...
    @overload
    def __init__(self: "AsyncConsumer[Any, Any]", config: _Config = ..., /, *,
                 key: AnyDeserializer | None = ..., value: AnyDeserializer | None = ...,
                 **settings: object) -> None: ...
    # fmt: on
    def __init__(self, config: _Config = None, /, **settings: Any) -> None:
        self.consumer: Consumer[K, V] = Consumer(config, **settings)
        self._thread = _OwnThread("consumer")
        self._unclaimed: ConsumerRecords[K, V] | None = None  # Of a poll that was cancelled.

    async def subscribe(
        self,
        topics: Sequence[str] | re.Pattern[str],
        listener: RebalanceListener | None = None,
    ) -> None:
        """Share topics with the members of the group; the listener runs on the own thread."""
        await self._thread.call(self.consumer.subscribe, topics, listener)

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions."""
        await self._thread.call(self.consumer.assign, partitions)

    async def poll(self, timeout_s: float = 0.0) -> ConsumerRecords[K, V]:
        """Records; waits for the first, at most the timeout. Cancelling ends the wait."""
        if self._unclaimed is not None:
            records, self._unclaimed = self._unclaimed, None
            return records
        polling = asyncio.ensure_future(self._thread.call(self.consumer.poll, timeout_s))
        try:
            return await asyncio.shield(polling)
        except asyncio.CancelledError:
            await self._end(polling)
            raise

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Records without end."""
        while True:
            for record in await self.poll(1.0):
                yield record

    async def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read this record next."""
        await self._thread.call(self.consumer.seek, partition, offset)

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record."""
        return await self._thread.call(self.consumer.position, partition)

    async def commit(self, offsets: Offsets | None = None) -> None:
        """Commit positions, or given offsets."""
        await self._thread.call(self.consumer.commit, offsets)

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed."""
        return await self._thread.call(self.consumer.committed, partitions)

    async def close(self) -> None:
        """Leave the group and free everything."""
        await self._thread.call(self.consumer.close)
        self._thread.shut_down()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _end(self, polling: asyncio.Future[ConsumerRecords[K, V]]) -> None:
        """Wake the poll up; what it had in hand already is for the next one."""
        self.consumer.wakeup()
        await asyncio.wait([polling])
        if polling.exception() is None:
            self._unclaimed = polling.result()
        if not isinstance(polling.exception(), WakeupError):
            self.consumer.clear_wakeup()


class _OwnThread:
    """One thread, for calls in the order they were made."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._ended = False

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call there, wait here."""
        if self._ended:
            return function(*args, **kwargs)  # A closed client refuses at once, and says why.
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: function(*args, **kwargs))

    def shut_down(self) -> None:
        """End the thread."""
        self._ended = True
        self._executor.shutdown()
