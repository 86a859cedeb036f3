"""Three client libraries behind one face, so that all play the same scenarios.

Each producer sends one value at a time into partition 0 of a topic. What a library calls a fenced
producer becomes `Fenced`; everything else it raises is the test's to see.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors
from kafka.structs import OffsetAndMetadata

TIMEOUT_S = 60.0


class Fenced(Exception):
    """Somebody else owns the transactional id now."""


class TransactionalProducer(Protocol):
    """A producer with a transactional id, from `init` to `close`."""

    def __init__(
        self, address: str, transactional_id: str, *, timeout_ms: int = 60_000
    ) -> None: ...

    def begin(self) -> None: ...

    def send(self, topic: str, value: str) -> None:
        """Send and wait until the broker has it."""
        ...

    def send_offset(self, group: str, topic: str, offset: int) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Confluent:
    """librdkafka."""

    def __init__(self, address: str, transactional_id: str, *, timeout_ms: int = 60_000) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": address,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": min(timeout_ms, 30_000),
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._address = address
        self._producer.init_transactions(TIMEOUT_S)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, value: str) -> None:
        # No callback for the delivery: a fatal error raised in its midst would upset Python.
        self._producer.produce(topic, value, partition=0)
        self._raising_fenced(self._producer.flush)

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self._address, "group.id": group})
        position = [confluent_kafka.TopicPartition(topic, 0, offset)]
        self._producer.send_offsets_to_transaction(
            position, consumer.consumer_group_metadata(), TIMEOUT_S
        )
        consumer.close()

    def commit(self) -> None:
        self._raising_fenced(self._producer.commit_transaction)

    def abort(self) -> None:
        self._raising_fenced(self._producer.abort_transaction)

    def _raising_fenced(self, work: Callable[[float], object]) -> None:
        try:
            assert not work(TIMEOUT_S)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() == confluent_kafka.KafkaError._FENCED:
                raise Fenced(str(error)) from error
            raise

    def close(self) -> None:
        with contextlib.suppress(confluent_kafka.KafkaException):  # A fenced one complains again.
            self._producer.purge()
            self._producer.flush(1)


class KafkaPython:
    """kafka-python."""

    def __init__(self, address: str, transactional_id: str, *, timeout_ms: int = 60_000) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=address,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            delivery_timeout_ms=31_000,
            request_timeout_ms=30_000,
        )
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, value: str) -> None:
        try:
            self._producer.send(topic, value.encode(), partition=0).get(TIMEOUT_S)
        except _PYTHON_FENCED as error:
            raise Fenced(str(error)) from error

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        position = {kafka.TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)}
        self._producer.send_offsets_to_transaction(position, group)

    def commit(self) -> None:
        try:
            self._producer.commit_transaction()
        except _PYTHON_FENCED as error:
            raise Fenced(str(error)) from error

    def abort(self) -> None:
        try:
            self._producer.abort_transaction()
        except _PYTHON_FENCED as error:
            raise Fenced(str(error)) from error

    def close(self) -> None:
        self._producer.close(timeout=2)


_PYTHON_FENCED = (kafka.errors.ProducerFencedError, kafka.errors.InvalidProducerEpochError)


class Aiokafka:
    """aiokafka, which speaks the first version of every request."""

    def __init__(self, address: str, transactional_id: str, *, timeout_ms: int = 60_000) -> None:
        self._runner = asyncio.Runner()
        self._producer = self._run(self._started(address, transactional_id, timeout_ms))

    async def _started(self, address: str, transactional_id: str, timeout_ms: int) -> Any:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=address,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
        )
        await producer.start()
        return producer

    def _run(self, work: Any) -> Any:
        async def in_time() -> Any:
            async with asyncio.timeout(TIMEOUT_S):
                return await work

        try:
            return self._runner.run(in_time())
        except aiokafka.errors.ProducerFenced as error:
            raise Fenced(str(error)) from error

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, value: str) -> None:
        self._run(self._producer.send_and_wait(topic, value.encode(), partition=0))

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        position = {aiokafka.TopicPartition(topic, 0): offset}
        self._run(self._producer.send_offsets_to_transaction(position, group))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def close(self) -> None:
        self._run(self._producer.stop())
        self._runner.close()


FAMILIES: Sequence[type[TransactionalProducer]] = (Confluent, KafkaPython, Aiokafka)


# Reading


def read_confluent(address: str, topic: str, *, isolation: str, count: int) -> list[str]:
    """The first records of partition 0; AssertionError when they do not come."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    found: list[str] = []
    try:
        while True:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"only {found} came"
            if message.error() is None:
                found.append(message.value().decode())
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                if len(found) >= count:
                    return found
            else:
                raise confluent_kafka.KafkaException(message.error())
    finally:
        consumer.close()


def read_kafka_python(address: str, topic: str, *, isolation: str, count: int) -> list[str]:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=address,
        isolation_level=isolation,
        consumer_timeout_ms=int(TIMEOUT_S * 1000),
    )
    partition = kafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    try:
        end = consumer.end_offsets([partition])[partition]
        found: list[str] = []
        while len(found) < count or consumer.position(partition) < end:
            polled = consumer.poll(timeout_ms=int(TIMEOUT_S * 1000))
            found += [record.value.decode() for record in polled.get(partition, [])]
        return found
    finally:
        consumer.close()


def read_aiokafka(address: str, topic: str, *, isolation: str, count: int) -> list[str]:
    async def read() -> list[str]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=address, isolation_level=isolation)
        await consumer.start()
        partition = aiokafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        found: list[str] = []
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while len(found) < count:
                    found.append((await consumer.getone()).value.decode())
            rest = await consumer.getmany(partition, timeout_ms=300)
            return found + [record.value.decode() for record in rest.get(partition, [])]
        finally:
            await consumer.stop()

    return asyncio.run(read())


READERS = (read_confluent, read_kafka_python, read_aiokafka)
