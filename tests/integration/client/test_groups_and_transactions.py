"""Members of groups and transactional producers on a real broker, through our own clients."""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.broker import BrokerProcess

from penstock.client.admin import Admin
from penstock.client.consumer.consumer import Consumer
from penstock.client.operations.topics import NewTopic
from penstock.client.producer.producer import Producer
from penstock.client.values import OffsetAndMetadata, TopicPartition
from penstock.errors import ProducerFenced

COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
PROTOCOLS = [
    {},
    {"partition.assignment.strategy": COOPERATIVE},
    {"group.protocol": "consumer"},
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.min.heartbeat.interval.ms": "300",
        "group.consumer.heartbeat.interval.ms": "300",
    }
    with BrokerProcess(tmp_path_factory.mktemp("broker"), settings) as made:
        made.start()
        yield made


@pytest.fixture
def topic(broker: BrokerProcess, request: pytest.FixtureRequest) -> str:
    """A topic of four partitions with ten records in each."""
    name = re.sub(r"[^a-zA-Z0-9]", "-", request.node.name)
    with Admin(bootstrap_servers=broker.address) as admin:
        admin.create_topics([NewTopic(name=name, partitions=4)])
    with Producer[Any, Any](bootstrap_servers=broker.address, acks="1") as producer:
        for number in range(40):
            producer.send(name, b"%d" % number, partition=number % 4)
    return name


def member(broker: BrokerProcess, topic: str, **settings: Any) -> Consumer[Any, Any]:
    base = {
        "bootstrap.servers": broker.address,
        "group.id": f"g-{topic}",
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 200,
    }
    if settings.get("group.protocol") == "consumer":
        del base["heartbeat.interval.ms"]  # The server's to say.
    made: Consumer[Any, Any] = Consumer({**base, **settings})
    made.subscribe([topic])
    return made


def read(consumer: Consumer[Any, Any], count: int) -> list[Any]:
    found: list[Any] = []
    deadline_s = time.monotonic() + 40
    while len(found) < count and time.monotonic() < deadline_s:
        found += consumer.poll(0.2)
    assert len(found) == count
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=["eager", "cooperative", "server"])
def test_two_members_share_and_one_takes_over(
    broker: BrokerProcess, topic: str, protocol: dict[str, str]
) -> None:
    first, second = member(broker, topic, **protocol), member(broker, topic, **protocol)
    try:
        _poll_until(lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second)
        assert not first.assignment() & second.assignment()
        second.close()
        _poll_until(lambda: len(first.assignment()) == 4, first)
    finally:
        first.close()
        second.close()


def _poll_until(condition: Any, *consumers: Consumer[Any, Any]) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s, [one.assignment() for one in consumers]
        for one in consumers:
            one.poll(0.1)


def test_a_group_goes_on_where_it_left_off(broker: BrokerProcess, topic: str) -> None:
    with member(broker, topic) as first:
        assert len(read(first, 40)) == 40
    with Producer[Any, Any](bootstrap_servers=broker.address) as producer:
        producer.send(topic, b"new", partition=2).result(120)
    with member(broker, topic) as second:
        assert [record.value for record in read(second, 1)] == [b"new"]


@pytest.mark.parametrize("has_joined", [False, True])
@pytest.mark.parametrize(
    "protocol",
    [{}, {"partition.assignment.strategy": "cooperative-sticky"}, {"group.protocol": "consumer"}],
    ids=["eager", "cooperative", "new"],
)
def test_who_leaves_a_group_can_be_assigned_partitions(
    broker: BrokerProcess, topic: str, has_joined: bool, protocol: dict[str, str]
) -> None:
    """The group's word may still be on its way, and is no longer for the consumer to follow."""
    with member(broker, topic, **protocol) as consumer:
        if has_joined:
            read(consumer, 40)
        consumer.unsubscribe()
        partitions = [TopicPartition(topic, number) for number in (0, 1)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        assert {record.partition for record in read(consumer, 20)} == {0, 1}
        assert consumer.assignment() == set(partitions)
        consumer.unsubscribe()
        consumer.subscribe([topic])
        _poll_until(lambda: len(consumer.assignment()) == 4, consumer)


def test_consuming_and_producing_is_one_step(broker: BrokerProcess, topic: str) -> None:
    with (
        Producer[Any, Any](
            bootstrap_servers=broker.address, transactional_id=f"x-{topic}"
        ) as producer,
        member(broker, topic, **{"enable.auto.commit": False}) as consumer,
    ):
        records = read(consumer, 40)
        out = f"{topic}-out"
        positions = {one: OffsetAndMetadata(10) for one in consumer.assignment()}
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send(out, b"never seen", partition=0).result(120)
            producer.send_offsets_to_transaction(positions, consumer.group_metadata())
            raise ZeroDivisionError
        assert set(consumer.committed(positions).values()) == {None}
        with producer.transaction():
            for record in records:
                producer.send(out, record.value, partition=0)
            producer.send_offsets_to_transaction(positions, consumer.group_metadata())
        committed = consumer.committed(positions).values()
        assert [one and one.offset for one in committed] == [10] * 4
    with Consumer[Any, Any](
        bootstrap_servers=broker.address,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as reader:
        reader.assign([TopicPartition(out, 0)])
        assert sorted(int(r.value) for r in read(reader, 40)) == list(range(40))


def test_an_older_producer_of_the_same_name_is_fenced(broker: BrokerProcess, topic: str) -> None:
    settings = {"bootstrap.servers": broker.address, "transactional.id": f"z-{topic}"}
    with Producer[Any, Any](settings) as zombie, Producer[Any, Any](settings) as heir:
        with zombie.transaction():
            zombie.send(topic, b"before")
        with heir.transaction():
            heir.send(topic, b"heir")
        with pytest.raises(ProducerFenced), zombie.transaction():
            zombie.send(topic, b"after").result(120)
