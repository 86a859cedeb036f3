"""aiokafka against the broker; it speaks the older, inflexible versions of most requests."""

import asyncio
from collections.abc import Sequence

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from tests.support.processes import ServerProcess
from tests.support.samples import CODECS, STEP_MS, Sample, samples, stored_codec


async def create_topic(address: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 1, 1)])
    finally:
        await admin.close()


async def produce(
    address: str, topic: str, sent: Sequence[Sample], codec: str, *, idempotent: bool = False
) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=address,
        compression_type=None if codec == "none" else codec,
        linger_ms=1_000,  # All in one batch, also on a busy machine; `flush` would wait as long.
        enable_idempotence=idempotent,
    )
    await producer.start()
    try:
        waiting = [
            await producer.send(
                topic,
                sample.value.encode(),
                sample.key.encode(),
                partition=0,
                timestamp_ms=sample.timestamp_ms,
                headers=[("origin", b"compat")],
            )
            for sample in sent
        ]
        answers = await asyncio.gather(*waiting)
        assert [answer.offset for answer in answers] == list(range(len(sent)))
    finally:
        await producer.stop()


async def read(consumer: AIOKafkaConsumer, topic: str, offset: int, count: int) -> list[Sample]:
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, offset)
    found = []
    async with asyncio.timeout(120):
        while len(found) < count:
            message = await consumer.getone()
            assert message.offset == offset + len(found)
            assert message.headers == (("origin", b"compat"),)
            key, value = message.key.decode(), message.value.decode()
            found.append(Sample(key=key, value=value, timestamp_ms=message.timestamp))
    return found


async def round_trip(address: str, topic: str, codec: str, *, idempotent: bool) -> None:
    sent = samples()
    await create_topic(address, topic)
    await produce(address, topic, sent, codec, idempotent=idempotent)
    consumer = AIOKafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
    await consumer.start()
    try:
        assert await read(consumer, topic, 0, len(sent)) == sent
        assert await read(consumer, topic, 25, 15) == sent[25:]
        partition = TopicPartition(topic, 0)
        wanted = {partition: sent[30].timestamp_ms - STEP_MS // 2}
        found = (await consumer.offsets_for_times(wanted))[partition]
        assert (found.offset, found.timestamp) == (30, sent[30].timestamp_ms)
        assert await consumer.end_offsets([partition]) == {partition: len(sent)}
    finally:
        await consumer.stop()


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_by_offset_and_by_time_in_every_compression(
    server: ServerProcess, codec: str
) -> None:
    asyncio.run(round_trip(server.address, f"aiokafka-{codec}", codec, idempotent=False))
    assert stored_codec(server.port, f"aiokafka-{codec}") == codec


def test_an_idempotent_producer_delivers(server: ServerProcess) -> None:
    asyncio.run(round_trip(server.address, "aiokafka-idempotent", "none", idempotent=True))
