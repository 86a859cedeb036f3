"""aiokafka: asyncio inside, so each call is handed to a loop in a thread of its own."""

import argparse
import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from aiokafka import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    TopicPartition,
)
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError
from tests.faults.clients.family import Done, OnAssign, Place, Record, number, payload

ERRORS: tuple[type[Exception], ...] = (
    KafkaError,
    TimeoutError,
    ConnectionError,
    AssertionError,
    concurrent.futures.CancelledError,
)
CALL_S = 25.0
SURE_S = 5.0  # How long a coordinator may take to load before "no offset" is believed.
Result = TypeVar("Result")


class LoopThread:
    """An event loop that runs until the process ends."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def call(self, work: Coroutine[Any, Any, Result], seconds: float = CALL_S) -> Result:
        """Run to the end or for so long, then cancelled."""
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, seconds), self.loop).result()


class AioSender:
    def __init__(self, options: argparse.Namespace, transactional_id: str | None) -> None:
        self.thread = LoopThread()
        self.options = options
        self.transactional_id = transactional_id
        self.producer: AIOKafkaProducer | None = None

    def start(self) -> None:
        options = self.options

        async def start() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(
                bootstrap_servers=options.bootstrap,
                client_id=options.process,
                acks="all" if options.acks == "all" else 1,
                enable_idempotence=options.is_idempotent,
                linger_ms=5,
                request_timeout_ms=5000,
                retry_backoff_ms=50,
                metadata_max_age_ms=5000,
                transactional_id=self.transactional_id,
                transaction_timeout_ms=options.transaction_ms,
            )
            try:
                await producer.start()
            except BaseException:
                await producer.stop()
                raise
            return producer

        self.producer = self.thread.call(start())

    def send(self, place: Place, value: int, done: Done) -> None:
        assert self.producer is not None
        topic, partition = place
        delivered = self.thread.call(
            self.producer.send(topic, payload(value), key=b"%d" % partition, partition=partition)
        )

        def told(future: "asyncio.Future[Any]") -> None:
            if future.cancelled():
                done(None, RuntimeError("cancelled"))
            elif (error := future.exception()) is not None:
                done(None, RuntimeError(repr(error)))
            else:
                done(future.result().offset, None)

        self.thread.loop.call_soon_threadsafe(delivered.add_done_callback, told)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)  # The loop thread goes on delivering.

    def flush(self, seconds: float) -> None:
        assert self.producer is not None
        self.thread.call(self.producer.flush(), seconds)

    def begin(self) -> None:
        assert self.producer is not None
        self.thread.call(self.producer.begin_transaction())

    def commit(self) -> None:
        assert self.producer is not None
        self.thread.call(self.producer.commit_transaction())

    def abort(self) -> None:
        assert self.producer is not None
        self.thread.call(self.producer.abort_transaction())

    def send_offsets(self, offsets: Mapping[Place, int], reader: "AioReader") -> None:
        assert self.producer is not None
        listed = {TopicPartition(t, p): offset for (t, p), offset in offsets.items()}
        self.thread.call(self.producer.send_offsets_to_transaction(listed, reader.group))

    def close(self) -> None:
        if self.producer is not None:
            self.thread.call(self.producer.stop(), 5)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, on_assign: OnAssign) -> None:
        self.on_assign = on_assign

    def on_partitions_revoked(self, revoked: Any) -> None:
        """The next assignment says all that matters."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.on_assign({(tp.topic, tp.partition): None for tp in assigned})


class AioReader:
    def __init__(self, options: argparse.Namespace, group: str | None) -> None:
        self.thread = LoopThread()
        self.options = options
        self.group = group
        self.consumer: AIOKafkaConsumer | None = None

    def start(self) -> None:
        options = self.options

        async def start() -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=options.bootstrap,
                client_id=options.process,
                group_id=self.group,
                isolation_level=options.isolation,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                session_timeout_ms=6000,
                heartbeat_interval_ms=1000,
                request_timeout_ms=5000,
                retry_backoff_ms=50,
                metadata_max_age_ms=5000,
                fetch_max_wait_ms=100,
                partition_assignment_strategy=(RangePartitionAssignor,),
            )
            try:
                await consumer.start()
            except BaseException:
                await consumer.stop()
                raise
            return consumer

        self.consumer = self.thread.call(start())

    def assign(self, starts: Mapping[Place, int]) -> None:
        async def assign() -> None:
            assert self.consumer is not None
            self.consumer.assign([TopicPartition(t, p) for t, p in starts])
            for (topic, partition), offset in starts.items():
                self.consumer.seek(TopicPartition(topic, partition), offset)

        self.thread.call(assign())

    def subscribe(self, topic: str, on_assign: OnAssign) -> None:
        async def subscribe() -> None:
            assert self.consumer is not None
            self.consumer.subscribe([topic], listener=_Listener(on_assign))

        self.thread.call(subscribe())

    def poll(self, seconds: float) -> Sequence[Record]:
        assert self.consumer is not None
        found = self.thread.call(
            self.consumer.getmany(timeout_ms=int(seconds * 1000), max_records=200)
        )
        return [
            ((m.topic, m.partition), m.offset, number(m.value))
            for messages in found.values()
            for m in messages
        ]

    def seek(self, starts: Mapping[Place, int]) -> None:
        async def seek() -> None:
            assert self.consumer is not None
            for (topic, partition), offset in starts.items():
                self.consumer.seek(TopicPartition(topic, partition), offset)

        self.thread.call(seek())

    def commit(self, offsets: Mapping[Place, int]) -> None:
        assert self.consumer is not None
        listed = {TopicPartition(t, p): offset for (t, p), offset in offsets.items()}
        self.thread.call(self.consumer.commit(listed))

    def committed(self, places: Sequence[Place]) -> Mapping[Place, int]:
        async def committed() -> dict[Place, int]:
            assert self.consumer is not None
            found = {place: await self._committed(place) for place in places}
            return {place: offset for place, offset in found.items() if offset is not None}

        return self.thread.call(committed())

    async def _committed(self, place: Place) -> int | None:
        """None: there is no offset, by what was said again and again.

        aiokafka does not look at the error of a whole answer, such as that of a coordinator which
        is loading, and takes an answer without partitions for one without offsets.
        """
        assert self.consumer is not None
        give_up_s = time.monotonic() + SURE_S
        while True:
            offset: int | None = await self.consumer.committed(TopicPartition(*place))
            if offset is not None or time.monotonic() >= give_up_s:
                return offset
            await asyncio.sleep(0.1)

    def ends(self, places: Sequence[Place]) -> Mapping[Place, int]:
        assert self.consumer is not None
        found = self.thread.call(
            self.consumer.end_offsets([TopicPartition(t, p) for t, p in places])
        )
        return {(tp.topic, tp.partition): offset for tp, offset in found.items()}

    def close(self) -> None:
        if self.consumer is not None:
            self.thread.call(self.consumer.stop(), 10)


def error_name(_error: Exception) -> str | None:
    """None: it gives up by itself where others go on, and asserts what it did not foresee."""
    return None


def sender(options: argparse.Namespace, *, transactional_id: str | None) -> AioSender:
    return AioSender(options, transactional_id)


def reader(options: argparse.Namespace, *, group: str | None) -> AioReader:
    return AioReader(options, group)
