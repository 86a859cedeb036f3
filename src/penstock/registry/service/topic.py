"""The topic of the schemas as the store sees it: records to append, records to read, in order.

`KafkaTopic` is the real one. It writes in terms: a term begins with a record that shuts out whoever
wrote before (`client/wire/fenced_writer.py`), so an instance that was paused while it led, and
still believes that it does, cannot write any more.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol, TypeVar

from penstock.client.aio import AsyncConsumer
from penstock.client.values import TopicPartition
from penstock.client.wire.fenced_writer import FencedWriter
from penstock.client.wire.raw_cluster import cluster_for
from penstock.records.record import Record
from penstock.registry.records import NOOP, StoreRecord
from penstock.registry.service.config import RegistryConfig

T = TypeVar("T")

TERM_HEADER = "penstock.term"
_POLL_S = 1.0
_TERM_S = 3600.0  # Far below the time after which brokers forget a producer or its id.
_BATCH_BYTES_MAX = 512 << 10
_RECORD_BYTES_OVERHEAD = 32


class ReadRecord(NamedTuple):
    """One record of the topic."""

    offset: int
    key: bytes | None
    value: bytes | None
    term_producer_id: int | None = None  # Of a record that begins a term: who writes from here on.


class BegunTerm(NamedTuple):
    """From this offset on nobody else of the same producer id writes."""

    offset: int
    producer_id: int


class SchemaTopic(Protocol):
    """What the store needs of a topic."""

    async def mark(self) -> int:
        """Store a record that means nothing; its offset."""

    @property
    def is_in_term(self) -> bool:
        """Whether what is appended now needs no new term."""

    async def begin_term(self) -> BegunTerm:
        """Shut out all earlier writers of our producer id."""

    async def retire(self, producer_ids: Sequence[int]) -> int:
        """Shut out writers of other producer ids; the offset from which on they are."""

    async def append(self, records: Sequence[StoreRecord]) -> int:
        """Store records all or none; the first one's offset once all in-sync replicas have them."""

    def leave_term(self) -> None:
        """The next write begins a new term."""

    async def read(self) -> Sequence[ReadRecord]:
        """The next records from the beginning on; empty when none came for a while."""


class KafkaTopic:
    """The only partition of a topic of the cluster."""

    def __init__(self, writer: FencedWriter, consumer: AsyncConsumer[bytes, bytes]) -> None:
        self._writer = writer
        self._consumer = consumer
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="registry-writer")
        self._term_ends_s = 0.0  # On the clock of `time.monotonic`; 0: no term.

    @classmethod
    @asynccontextmanager
    async def open(cls, config: RegistryConfig) -> AsyncIterator["KafkaTopic"]:
        """The topic, read from its beginning."""
        at = TopicPartition(config.topic, 0)
        consumer: AsyncConsumer[bytes, bytes] = AsyncConsumer(
            {**config.client, "auto.offset.reset": "earliest"}
        )
        timeout_ms = str(int(config.timeout_s * 1000))
        cluster = cluster_for(
            {
                **config.client,
                "request.timeout.ms": timeout_ms,
                "default.api.timeout.ms": timeout_ms,
            }
        )
        # One id for a topic, whatever group its writers are in: they must fence each other.
        topic = cls(FencedWriter(cluster, at, f"penstock-schema-registry.{config.topic}"), consumer)
        try:
            await consumer.assign([at])
            yield topic
        finally:
            await asyncio.to_thread(topic._thread.shutdown, cancel_futures=True)
            cluster.close()
            await consumer.close()

    async def mark(self) -> int:
        return await self._call(lambda: self._writer.append_unfenced(_record(NOOP)))

    @property
    def is_in_term(self) -> bool:
        return time.monotonic() < self._term_ends_s

    async def begin_term(self) -> BegunTerm:
        return await self._call(self._begin)

    async def retire(self, producer_ids: Sequence[int]) -> int:
        return await self._call(lambda: self._retire(producer_ids))

    async def append(self, records: Sequence[StoreRecord]) -> int:
        made = [_record(record) for record in records]
        return await self._call(lambda: self._writer.append(made))

    def leave_term(self) -> None:
        self._term_ends_s = 0.0

    async def read(self) -> Sequence[ReadRecord]:
        return [
            ReadRecord(record.offset, record.key, record.value, _term_of(record.headers))
            for record in await self._consumer.poll(_POLL_S)
        ]

    def _begin(self) -> BegunTerm:
        began_s = time.monotonic()
        producer_id = self._writer.begin().producer_id
        header = (TERM_HEADER, str(producer_id).encode())
        offset = self._writer.append([_record(NOOP)._replace(headers=(header,))])
        self._term_ends_s = began_s + _TERM_S
        return BegunTerm(offset, producer_id)

    def _retire(self, producer_ids: Sequence[int]) -> int:
        for producer_id in producer_ids:
            self._writer.retire(producer_id, _record(NOOP))
        return self._writer.append([_record(NOOP)])

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def batches(records: Sequence[StoreRecord]) -> Iterator[list[StoreRecord]]:
    """Records in as few batches as brokers take: nearly always one, which is there whole or not."""
    batch: list[StoreRecord] = []
    size = 0
    for record in records:
        own = len(record.key) + len(record.value or b"") + _RECORD_BYTES_OVERHEAD
        if batch and size + own > _BATCH_BYTES_MAX:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += own
    if batch:
        yield batch


def _record(record: StoreRecord) -> Record:
    return Record(0, time.time_ns() // 1_000_000, record.key, record.value)


def _term_of(headers: Sequence[tuple[str, bytes | None]]) -> int | None:
    for name, value in headers:
        if name == TERM_HEADER and value is not None and value.isdigit() and len(value) < 20:
            return int(value)
    return None
