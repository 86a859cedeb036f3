"""Producer, Consumer and Admin against a real broker, without groups."""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.broker import BrokerProcess

from penstock.client.admin import Admin
from penstock.client.consumer.consumer import Consumer
from penstock.client.operations.configs import ConfigChange, ConfigResource, ResourceType
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.operations.topics import NewPartitions, NewTopic
from penstock.client.producer.producer import Producer
from penstock.client.values import NO_OFFSET, OffsetAndTimestamp, TopicPartition
from penstock.errors import InvalidConfiguration, RecordTooLarge, TopicExists


@pytest.fixture
def admin(shared_broker: BrokerProcess) -> Iterator[Admin]:
    with Admin(bootstrap_servers=shared_broker.address) as made:
        yield made


@pytest.fixture
def topic(admin: Admin, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^a-zA-Z0-9]", "-", request.node.name)
    admin.create_topics([NewTopic(name=name, partitions=3)])
    return name


def producer(broker: BrokerProcess, **settings: Any) -> Producer[Any, Any]:
    return Producer({"bootstrap.servers": broker.address, "linger.ms": 0}, **settings)


def read(broker: BrokerProcess, topic: str, count: int, **settings: Any) -> list[Any]:
    """The records of all partitions."""
    found: list[Any] = []
    deadline_s = time.monotonic() + 30
    with Consumer[Any, Any](
        bootstrap_servers=broker.address, auto_offset_reset="earliest", **settings
    ) as consumer:
        consumer.assign(TopicPartition(topic, p.partition) for p in consumer.partitions_for(topic))
        while len(found) < count and time.monotonic() < deadline_s:
            found += consumer.poll(0.5)
    assert len(found) == count
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_sent_is_read(shared_broker: BrokerProcess, topic: str, codec: str) -> None:
    long = "org.apache.kafka.common.serialization.Long"
    settings = {"compression_type": codec, "value_serializer": f"{long}Serializer"}
    with producer(shared_broker, **settings) as made:
        futures = [made.send(topic, n, key=b"k%d" % (n % 7)) for n in range(500)]
        stored = {(m.partition, m.offset) for m in (future.result(120) for future in futures)}
    assert len(stored) == 500
    records = read(shared_broker, topic, 500, value_deserializer=f"{long}Deserializer")
    assert {(r.partition, r.offset) for r in records} == stored
    assert sorted(r.value for r in records) == list(range(500))
    for number in range(7):
        values = [r.value for r in records if r.key == b"k%d" % number]
        assert values == sorted(values)


def test_headers_timestamps_and_nulls_survive(shared_broker: BrokerProcess, topic: str) -> None:
    headers = [("a", b"1"), ("b", None), ("a", b"2")]
    with producer(shared_broker) as made:
        made.send(topic, None, key="ключ", timestamp_ms=1234567890123, headers=headers).result(120)
    (record,) = read(shared_broker, topic, 1)
    assert (record.value, record.key.decode()) == (None, "ключ")
    assert (record.timestamp_ms, record.timestamp_type) == (1234567890123, "CreateTime")
    assert record.headers == tuple(headers)


@pytest.mark.parametrize(("acks", "known"), [("0", False), ("1", True), ("all", True)])
def test_the_offset_is_known_unless_nobody_answers(
    shared_broker: BrokerProcess, topic: str, acks: str, known: bool
) -> None:
    with producer(shared_broker, acks=acks) as made:
        metadata = made.send(topic, b"v", partition=1).result(120)
    assert (metadata.offset == 0) is known
    assert (metadata.offset == NO_OFFSET) is not known
    assert len(read(shared_broker, topic, 1)) == 1


def test_a_record_that_the_topic_forbids_is_an_exception(
    shared_broker: BrokerProcess, admin: Admin, topic: str
) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin.alter_configs({resource: [ConfigChange(name="max.message.bytes", value="1000")]})
    with producer(shared_broker) as made:
        with pytest.raises(RecordTooLarge):
            made.send(topic, b"x" * 5000).result(120)
        assert made.send(topic, b"small").result(120).offset == 0


def test_records_are_found_by_time(shared_broker: BrokerProcess, admin: Admin, topic: str) -> None:
    with producer(shared_broker) as made:
        for number in range(10):
            made.send(topic, b"v", partition=0, timestamp_ms=1000 * (number + 1)).result(120)
    at = TopicPartition(topic, 0)
    assert admin.list_offsets({at: 4500})[at] == OffsetAndTimestamp(4, 5000, 0)
    assert admin.list_offsets({at: OffsetSpec.MAX_TIMESTAMP})[at] == OffsetAndTimestamp(
        9, 10_000, 0
    )
    assert admin.list_offsets({at: 99_000})[at] is None
    with Consumer[Any, Any](bootstrap_servers=shared_broker.address) as consumer:
        found = consumer.offsets_for_times({at: 4500})[at]
        assert found is not None
        consumer.assign([at])
        consumer.seek(at, found.offset)
        assert next(record.timestamp_ms for record in consumer.poll(60)) == 5000


def test_a_topic_grows_and_its_records_can_go(
    shared_broker: BrokerProcess, admin: Admin, topic: str
) -> None:
    admin.create_partitions({topic: NewPartitions(total_count=5)})
    assert len(admin.describe_topics([topic])[topic].partitions) == 5
    with producer(shared_broker) as made:
        assert len(made.partitions_for(topic)) == 5
        for _ in range(4):
            made.send(topic, b"v", partition=4).result(120)
    at = TopicPartition(topic, 4)
    assert admin.delete_records({at: 3}) == {at: 3}
    with Consumer[Any, Any](bootstrap_servers=shared_broker.address) as consumer:
        assert consumer.beginning_offsets([at]) == {at: 3}
        assert consumer.end_offsets([at]) == {at: 4}


def test_the_producers_of_a_partition_are_known(
    shared_broker: BrokerProcess, admin: Admin, topic: str
) -> None:
    with producer(shared_broker) as made:
        for _ in range(3):
            made.send(topic, b"v", partition=0).result(120)
    (known,) = admin.describe_producers([TopicPartition(topic, 0)])[TopicPartition(topic, 0)]
    assert (known.producer_epoch, known.last_sequence) == (0, 2)
    assert known.transaction_start_offset is None


def test_errors_have_kafkas_names(admin: Admin, topic: str) -> None:
    with pytest.raises(TopicExists):
        admin.create_topics([NewTopic(name=topic)])
    with pytest.raises(InvalidConfiguration, match="zork"):
        admin.create_topics([NewTopic(name="odd", configs={"zork": "1"})])
    admin.create_topics([NewTopic(name="only-checked")], validate_only=True)
    assert "only-checked" not in [listing.name for listing in admin.list_topics()]


def test_a_restarted_broker_is_found_again(shared_broker: BrokerProcess, topic: str) -> None:
    with producer(shared_broker) as made:
        first = made.send(topic, b"before", partition=0).result(120)
        shared_broker.restart()
        second = made.send(topic, b"after", partition=0).result(120)
    assert (first.offset, second.offset) == (0, 1)
    assert [r.value for r in read(shared_broker, topic, 2)] == [b"before", b"after"]
