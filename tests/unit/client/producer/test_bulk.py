"""BulkProducer and BulkConsumer, on the cluster that librdkafka simulates inside the process."""

from typing import Any

import pytest

from penstock.client.consumer.bulk import BulkConsumer
from penstock.client.errors import BufferExhaustedError, KafkaTimeoutError
from penstock.client.producer.bulk import BulkProducer
from penstock.client.producer.producer import Producer
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

SIMULATED = {"bootstrap.servers": "simulated", "test.mock.num.brokers": 1, "acks": "1"}


def test_every_record_of_a_batch_is_measured() -> None:
    with BulkProducer(SIMULATED, measure_latency=True) as producer:
        producer.send_batch("t", [b"x" * 100] * 300)
        assert producer.flush(30) == 0
        assert len(producer.latencies_s) == 300
        assert min(producer.latencies_s) >= 0
        assert producer.failures == []


def test_a_full_buffer_is_waited_for() -> None:
    settings = {**SIMULATED, "buffer.memory": 20_000, "linger.ms": 1}
    with BulkProducer(settings, measure_latency=True) as producer:
        producer.send_batch("t", [b"x" * 1000] * 100)
        for _ in range(100):
            producer.send("t", b"x" * 1000, b"key", [("h", b"1")])
        producer.flush(30)
        assert len(producer.latencies_s) == 200


def test_a_buffer_that_never_empties_is_told() -> None:
    settings = {**SIMULATED, "buffer.memory": 2048, "linger.ms": 60_000, "max.block.ms": 20}
    with (
        BulkProducer({**settings, "batch.size": 1_000_000}) as producer,
        pytest.raises(BufferExhaustedError),
    ):
        for _ in range(10):
            producer.send("t", b"x" * 1000)


def test_records_that_fail_are_kept_as_exceptions(stub: Any) -> None:
    parts = [MetadataResponsePartition(partition_index=0, leader_id=0)]
    topics = [MetadataResponseTopic(name="t", partitions=parts)]
    stub.answers[ApiKey.METADATA] = lambda *_: stub.metadata(topics=topics)
    stub.answers[ApiKey.PRODUCE] = lambda *_: None  # It never answers.
    settings = {"bootstrap.servers": stub.address, "acks": "1", "delivery.timeout.ms": 100}
    with BulkProducer(settings) as producer:
        producer.send("t", b"x")
        producer.flush(30)
        (failure,) = producer.failures
    assert isinstance(failure, KafkaTimeoutError)


def test_all_partitions_are_counted_from_the_beginning() -> None:
    with Producer(SIMULATED) as producer:
        for number in range(50):
            producer.send("t", b"v" * 10, key=b"k%d" % (number % 10))
        producer.flush(30)
        leader = producer.partitions_for("t")[0].leader
        assert leader is not None
        with BulkConsumer({"bootstrap.servers": f"{leader.host}:{leader.port}"}) as consumer:
            assert "t" in consumer.topics()
            consumer.assign_all(["t"], from_beginning=True)
            count = size = 0
            while count < 50:
                taken, weight = consumer.take(50 - count, 0.5)
                count, size = count + taken, size + weight
    assert (count, size) == (50, 50 * 12)
