"""The topic of the schemas as the store sees it: records to append, records to read, in order.

`KafkaTopic` is the real one. Its producer is idempotent and never gives a record up: as long as it
is not known whether a record was stored, nothing else is written, so what is decided next cannot
contradict a record that turns up late.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol

from penstock.client.aio import AsyncConsumer, AsyncProducer
from penstock.client.values import TopicPartition
from penstock.registry.records import StoreRecord
from penstock.registry.service.config import RegistryConfig

_WITHOUT_END_MS = 2**31 - 1
_POLL_S = 1.0
_CLOSE_S = 5.0  # For what is under way when the process stops.


class ReadRecord(NamedTuple):
    """One record of the topic."""

    offset: int
    key: bytes | None
    value: bytes | None


class SchemaTopic(Protocol):
    """What the store needs of a topic."""

    async def append(self, record: StoreRecord) -> int:
        """Store a record; its offset once all in-sync replicas have it."""

    async def read(self) -> Sequence[ReadRecord]:
        """The next records from the beginning on; empty when none came for a while."""


class KafkaTopic:
    """The only partition of a topic of the cluster."""

    def __init__(
        self,
        name: str,
        producer: AsyncProducer[bytes, bytes],
        consumer: AsyncConsumer[bytes, bytes],
    ) -> None:
        self._name = name
        self._producer = producer
        self._consumer = consumer

    @classmethod
    @asynccontextmanager
    async def open(cls, config: RegistryConfig) -> AsyncIterator["KafkaTopic"]:
        """The topic, read from its beginning."""
        consumer: AsyncConsumer[bytes, bytes] = AsyncConsumer(
            {**config.client, "auto.offset.reset": "earliest"}
        )
        try:
            producer: AsyncProducer[bytes, bytes] = AsyncProducer(_producer_settings(config))
            try:
                await consumer.assign([TopicPartition(config.topic, 0)])
                yield cls(config.topic, producer, consumer)
            finally:
                await producer.close(_CLOSE_S)
        finally:
            await consumer.close()

    async def append(self, record: StoreRecord) -> int:
        stored = await self._producer.send(self._name, record.value, key=record.key, partition=0)
        return stored.offset

    async def read(self) -> Sequence[ReadRecord]:
        return [
            ReadRecord(record.offset, record.key, record.value)
            for record in await self._consumer.poll(_POLL_S)
        ]


def _producer_settings(config: RegistryConfig) -> dict[str, object]:
    return {
        **config.client,
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 0,
        "delivery.timeout.ms": _WITHOUT_END_MS,
    }
