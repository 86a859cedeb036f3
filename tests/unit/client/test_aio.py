"""The clients for asyncio, on the cluster that librdkafka simulates inside the process."""

import asyncio
from typing import Any

import pytest

from penstock.client.aio import AsyncConsumer, AsyncProducer
from penstock.client.errors import IllegalStateError
from penstock.client.values import TopicPartition

SIMULATED = {"bootstrap.servers": "simulated", "test.mock.num.brokers": 1, "linger.ms": 0}
A = TopicPartition("t", 0)


async def consumer_of(producer: AsyncProducer[Any, Any]) -> AsyncConsumer[Any, Any]:
    leader = (await producer.partitions_for("t"))[0].leader
    assert leader is not None
    address = f"{leader.host}:{leader.port}"
    made: AsyncConsumer[Any, Any] = AsyncConsumer(
        bootstrap_servers=address, auto_offset_reset="earliest"
    )
    await made.assign([A])
    return made


def test_records_are_sent_together_and_iterated() -> None:
    async def scenario() -> list[int]:
        async with AsyncProducer[Any, Any]({**SIMULATED, "acks": "1"}) as producer:
            sent = [producer.send("t", b"v", partition=0) for _ in range(20)]
            stored = [one.offset for one in await asyncio.gather(*sent)]
            assert stored == list(range(20))  # In the order of sending.
            read = []
            async with await consumer_of(producer) as consumer:
                async for record in consumer:
                    read.append(record.offset)
                    if len(read) == 20:
                        break
                assert await consumer.position(A) == 20
            return read

    assert asyncio.run(scenario()) == list(range(20))


def test_the_loop_goes_on_while_a_poll_waits_and_cancelling_ends_it() -> None:
    async def scenario() -> None:
        async with (
            AsyncProducer[Any, Any]({**SIMULATED, "acks": "1"}) as producer,
            await consumer_of(producer) as consumer,
        ):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.poll(60), timeout=0.05)
            await producer.send("t", b"v", partition=0)
            assert len(await consumer.poll(30)) == 1

    asyncio.run(scenario())


def test_a_transaction_is_all_or_nothing() -> None:
    async def scenario() -> None:
        async with AsyncProducer[Any, Any]({**SIMULATED, "transactional.id": "x"}) as producer:
            async with producer.transaction():
                assert (await producer.send("t", b"v", partition=0)).offset == 0
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    raise ZeroDivisionError
            async with producer.transaction():
                await producer.send("t", b"v", partition=0)

    asyncio.run(scenario())


def test_records_in_the_hand_of_a_cancelled_poll_are_not_lost() -> None:
    async def scenario() -> None:
        async with (
            AsyncProducer[Any, Any]({**SIMULATED, "acks": "1"}) as producer,
            await consumer_of(producer) as consumer,
        ):
            await producer.send("t", b"v", partition=0)
            read = 0
            while not read:
                # The record may come before, while or after the poll is cancelled.
                try:
                    read = len(await asyncio.wait_for(consumer.poll(0.05), timeout=0.001))
                except TimeoutError:
                    continue
            assert read == 1

    asyncio.run(scenario())


def test_closed_clients_say_that_they_are_closed() -> None:
    async def scenario() -> None:
        producer = AsyncProducer({**SIMULATED, "acks": "1"})
        await producer.send("t", "v", partition=0, headers={"a": "1"}, timestamp=5)
        consumer = await consumer_of(producer)
        await consumer.close()
        await producer.close()
        with pytest.raises(IllegalStateError, match="This consumer has already been closed"):
            await consumer.poll(1)
        with pytest.raises(IllegalStateError, match="after producer has been closed"):
            await producer.send("t", "v")
        await consumer.close()
        await producer.close()

    asyncio.run(scenario())
