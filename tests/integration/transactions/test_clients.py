"""Unmodified client libraries run the same transactions, and read what they should and no more."""

from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest
from tests.integration.transactions.families import (
    FAMILIES,
    READERS,
    Fenced,
    TransactionalProducer,
    read_confluent,
)
from tests.support.broker import BrokerProcess
from tests.support.fixtures import StartBroker
from tests.support.processes import HOST
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

from penstock.client.wire.connection import BrokerConnection
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest

Start = Callable[..., TransactionalProducer]

families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)


@pytest.fixture
def start(shared_broker: BrokerProcess) -> Iterator[Start]:
    """Starts producers; whatever still runs at the end is closed."""
    running: list[TransactionalProducer] = []

    def started(family: type[TransactionalProducer], name: str, **options: Any) -> Any:
        producer = family(shared_broker.address, name, **options)
        running.append(producer)
        return producer

    yield started
    for producer in running:
        producer.close()


def create(broker: BrokerProcess, topic: str) -> str:
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(topic) == 0
    return topic


def described(broker: BrokerProcess, transactional_id: str) -> Any:
    with BrokerConnection(HOST, broker.port) as connection:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        (state,) = connection.request(request).transaction_states
    return state


def committed(broker: BrokerProcess, topic: str, *, count: int = 0) -> list[str]:
    return read_confluent(broker.address, topic, isolation="read_committed", count=count)


@families
def test_commits_are_seen_and_aborts_are_not(
    shared_broker: BrokerProcess, start: Start, family: type[TransactionalProducer]
) -> None:
    topic = create(shared_broker, f"seen-{family.__name__}")
    producer = start(family, topic)
    for number in range(6):
        producer.begin()
        producer.send(topic, f"{number}a")
        producer.send(topic, f"{number}b")
        if number % 2:
            producer.abort()
        else:
            producer.commit()
    kept = [f"{number}{letter}" for number in (0, 2, 4) for letter in "ab"]
    everything = [f"{number}{letter}" for number in range(6) for letter in "ab"]
    for read in READERS:
        assert read(shared_broker.address, topic, isolation="read_committed", count=6) == kept
        found = read(shared_broker.address, topic, isolation="read_uncommitted", count=12)
        assert found == everything


@families
def test_an_open_transaction_holds_readers_back(
    shared_broker: BrokerProcess, start: Start, family: type[TransactionalProducer]
) -> None:
    topic = create(shared_broker, f"open-{family.__name__}")
    first, second = start(family, f"{topic}-1"), start(family, f"{topic}-2")
    first.begin()
    first.send(topic, "held back")
    second.begin()
    second.send(topic, "behind it")
    second.commit()
    assert committed(shared_broker, topic) == []
    first.commit()
    assert committed(shared_broker, topic, count=2) == ["held back", "behind it"]


@families
def test_a_new_producer_fences_the_old_one(
    shared_broker: BrokerProcess, start: Start, family: type[TransactionalProducer]
) -> None:
    topic = create(shared_broker, f"fenced-{family.__name__}")
    old = start(family, topic)
    old.begin()
    old.send(topic, "of the old one")
    new = start(family, topic)
    with pytest.raises(Fenced):
        old.commit()
    new.begin()
    new.send(topic, "of the new one")
    new.commit()
    assert committed(shared_broker, topic, count=1) == ["of the new one"]


@families
def test_a_zombie_that_goes_on_sending_writes_nothing(
    shared_broker: BrokerProcess, start: Start, family: type[TransactionalProducer]
) -> None:
    topic = create(shared_broker, f"zombie-{family.__name__}")
    old = start(family, topic)
    old.begin()
    new = start(family, topic)
    with pytest.raises(Fenced):
        old.send(topic, "too late")
        old.commit()
    new.begin()
    new.send(topic, "in time")
    new.commit()
    found = read_confluent(shared_broker.address, topic, isolation="read_uncommitted", count=1)
    assert found == ["in time"]


@families
def test_offsets_are_committed_with_the_transaction_or_not_at_all(
    shared_broker: BrokerProcess, start: Start, family: type[TransactionalProducer]
) -> None:
    topic = create(shared_broker, f"offsets-{family.__name__}")
    group = f"group-{topic}"
    producer = start(family, topic)
    producer.begin()
    producer.send(topic, "with 5")
    producer.send_offset(group, topic, 5)
    producer.commit()
    eventually(lambda: group_offset(shared_broker, group, topic) == 5)
    producer.begin()
    producer.send(topic, "with 9")
    producer.send_offset(group, topic, 9)
    producer.abort()
    eventually(lambda: described(shared_broker, topic).transaction_state == "CompleteAbort")
    assert group_offset(shared_broker, group, topic) == 5
    assert committed(shared_broker, topic, count=1) == ["with 5"]


def group_offset(broker: BrokerProcess, group: str, topic: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.address, "group.id": group})
    try:
        (found,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], 10)
        return int(found.offset)
    finally:
        consumer.close()


@families
def test_a_transaction_left_open_is_aborted_in_time(
    start_broker: StartBroker, family: type[TransactionalProducer]
) -> None:
    quick = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
    broker = start_broker(quick)
    topic = create(broker, "late")
    producer = family(broker.address, "slow", timeout_ms=1_000)
    producer.begin()
    producer.send(topic, "too slow")
    assert described(broker, "slow").transaction_state == "Ongoing"
    eventually(lambda: described(broker, "slow").transaction_state == "CompleteAbort")
    with pytest.raises(Fenced):
        producer.commit()
    assert committed(broker, topic) == []
    successor = family(broker.address, "slow", timeout_ms=10_000)
    successor.begin()
    successor.send(topic, "in time")
    successor.commit()
    assert committed(broker, topic, count=1) == ["in time"]
    successor.close()
    producer.close()
    assert broker.tracebacks() == {}


def test_transactions_survive_a_killed_broker(start_broker: StartBroker) -> None:
    """What is open goes on after a restart, and what was decided stays decided."""
    broker = start_broker()
    topic = create(broker, "survivors")
    producer = FAMILIES[0](broker.address, "survivor")
    for number in range(2):
        producer.begin()
        producer.send(topic, f"{number} before")
        broker.kill()
        broker.start()
        producer.send(topic, f"{number} after")
        if number % 2:
            producer.abort()
        else:
            producer.commit()
    assert committed(broker, topic, count=2) == ["0 before", "0 after"]
    producer.close()
    assert broker.tracebacks() == {}
