"""LoopProducer, on the cluster that librdkafka simulates inside the process."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.client.errors import BufferExhaustedError, KafkaTimeoutError
from penstock.client.interceptors import ProducerInterceptor
from penstock.client.producer.loop import LoopProducer, Outcomes
from penstock.client.producer.polled import StoredAt
from penstock.client.values import ProducerRecord
from penstock.errors import PenstockError
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

SIMULATED = {"bootstrap.servers": "simulated", "test.mock.num.brokers": 1, "acks": "all"}


def record(value: bytes = b"v", **more: Any) -> "ProducerRecord[bytes, bytes]":
    return ProducerRecord(topic="t", value=value, **more)


@pytest.fixture
def producer() -> Iterator[LoopProducer]:
    made = LoopProducer(SIMULATED)
    yield made
    made.close(5.0)


def test_outcomes_are_where_records_were_stored(producer: LoopProducer) -> None:
    outcomes: Outcomes = {}
    for number in range(300):
        producer.send(record(partition=1, timestamp_ms=1_700_000_000_000), outcomes, number)
    producer.flush(30)
    places = [one[:2] for n in range(300) if isinstance(one := outcomes[n], StoredAt)]
    assert places == [(1, n) for n in range(300)]


def test_one_record_can_be_waited_for(producer: LoopProducer) -> None:
    outcomes: Outcomes = {}
    producer.send(record(key=b"k", headers=(("h", b"1"),)), outcomes, 7)
    found = producer.wait_for(outcomes, 7, 30)
    assert isinstance(found, StoredAt) and found.offset == 0
    with pytest.raises(KafkaTimeoutError):
        producer.wait_for(outcomes, 8, 0.01)


def test_a_time_that_means_now_to_librdkafka_is_refused(producer: LoopProducer) -> None:
    with pytest.raises(ValueError, match="Invalid timestamp: 0"):
        producer.send(record(timestamp_ms=0), {}, 0)


def test_transactions_are_committed_and_aborted() -> None:
    producer = LoopProducer({**SIMULATED, "transactional.id": "x"})
    outcomes: Outcomes = {}
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(record(), outcomes, 0)
    producer.commit_transaction()
    assert isinstance(outcomes[0], StoredAt), "who committed knows what became of each record"
    producer.begin_transaction()
    producer.send(record(), outcomes, 1)
    producer.abort_transaction()
    with pytest.raises(PenstockError):
        producer.commit_transaction()
    producer.close(5.0)


def test_a_full_buffer_is_waited_for_and_told_when_it_never_empties() -> None:
    producer = LoopProducer({**SIMULATED, "buffer.memory": 20_000, "linger.ms": 1})
    outcomes: Outcomes = {}
    for number in range(200):
        producer.send(record(b"x" * 1000, partition=0), outcomes, number)
    producer.flush(30)
    offsets = [one.offset for n in range(200) if isinstance(one := outcomes[n], StoredAt)]
    assert offsets == list(range(200)), "in their order"
    producer.close(5.0)
    settings = {**SIMULATED, "buffer.memory": 2048, "linger.ms": 60_000}
    # Long enough for the topic to become known on a busy machine.
    stuck = LoopProducer({**settings, "max.block.ms": 5000, "batch.size": 1_000_000})
    with pytest.raises(BufferExhaustedError):
        for number in range(10):
            stuck.send(record(b"x" * 1000), {}, number)
    stuck.close(0.0)


def test_a_record_that_nobody_takes_has_its_error_as_outcome(stub: Any) -> None:
    parts = [MetadataResponsePartition(partition_index=0, leader_id=0)]
    topics = [MetadataResponseTopic(name="t", partitions=parts)]
    stub.answers[ApiKey.METADATA] = lambda *_: stub.metadata(topics=topics)
    stub.answers[ApiKey.PRODUCE] = lambda *_: None  # It never answers.
    settings = {"bootstrap.servers": stub.address, "acks": "1", "delivery.timeout.ms": 100}
    producer, outcomes = LoopProducer(settings), {}
    producer.send(record(), outcomes, 0)
    producer.flush(30)
    assert isinstance(outcomes[0], KafkaTimeoutError)
    producer.close(5.0)


class Recorder(ProducerInterceptor):
    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        return ProducerRecord(topic=record.topic, value=record.value + b"!", partition=2)

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        self.told.append((metadata, error))


class Third:
    def partition(self, *_: Any) -> int:
        return 3


def test_interceptors_and_partitioners_are_asked() -> None:
    recorder, outcomes = Recorder(), {}
    producer = LoopProducer({**SIMULATED, "interceptor.classes": [recorder]})
    producer.send(record(b"abc"), outcomes, 0)
    producer.flush(30)
    (stored, error), = recorder.told  # fmt: skip
    assert (stored.partition, stored.offset, stored.serialized_value_size) == (2, 0, 4)
    assert error is None and outcomes[0] == (2, 0, stored.timestamp_ms)
    producer.close(5.0)
    third = LoopProducer({**SIMULATED, "partitioner.class": Third()})
    third.send(record(), outcomes, 1)
    third.flush(30)
    assert outcomes[1].partition == 3
    third.close(5.0)
