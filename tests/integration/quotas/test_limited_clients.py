"""Real clients under quotas: they are told, they wait, and in the end nothing is missing.

The only times asserted are shortest ones that the quota itself demands: a slow machine can only
make them longer.
"""

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.integration.quotas.conftest import SAMPLES, Configs
from tests.support.broker import BrokerProcess
from tests.support.wire import RawConnection

RECORD_BYTES = 10_000
BATCH_BYTES = 100_000
TOPIC = "limited"


class Throttled:
    """Collects what librdkafka tells of throttle times, in seconds."""

    def __init__(self) -> None:
        self.times_s: list[float] = []

    def __call__(self, event: Any) -> None:
        self.times_s.append(event.throttle_time)


def producer_of(broker: BrokerProcess, client_id: str, throttled: Throttled) -> Producer:
    return Producer(
        {
            "bootstrap.servers": broker.address,
            "client.id": client_id,
            "batch.size": BATCH_BYTES,
            "linger.ms": 20,
            "throttle_cb": throttled,
        }
    )


def send(producer: Producer, count: int) -> float:
    """Produce so many records; the seconds until the last is acknowledged."""
    failures: list[object] = []
    began_s = time.monotonic()
    for _ in range(count):
        producer.produce(
            TOPIC,
            bytes(RECORD_BYTES),
            partition=0,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(120) == 0
    assert failures == []
    return time.monotonic() - began_s


def create_topic(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(TOPIC) == 0


def end_offset(broker: BrokerProcess) -> int:
    with RawConnection(broker.port) as connection:
        return connection.offset(TOPIC)


def shortest_s(total_bytes: int, limit: int) -> float:
    """A quota allows a burst of its window, and the answer to the last batch is not waited for."""
    return (total_bytes - SAMPLES * limit - 2 * BATCH_BYTES) / limit


def test_a_producer_is_held_to_its_rate_and_loses_nothing(
    quota_broker: BrokerProcess, configs: Configs
) -> None:
    create_topic(quota_broker)
    limit = 400_000
    said = configs(
        *("--alter", "--entity-type", "clients", "--entity-name", "loud"),
        *("--add-config", f"producer_byte_rate={limit}"),
    )
    assert said == "Completed updating config for client loud.\n"
    throttled = Throttled()
    took_s = send(producer_of(quota_broker, "loud", throttled), 250)
    assert took_s >= shortest_s(250 * RECORD_BYTES, limit)
    assert max(throttled.times_s, default=0) > 0.1
    assert end_offset(quota_broker) == 250

    quiet = Throttled()
    send(producer_of(quota_broker, "another", quiet), 250)
    assert quiet.times_s == []


def test_a_quota_changes_while_the_client_runs(
    quota_broker: BrokerProcess, configs: Configs
) -> None:
    create_topic(quota_broker)
    throttled = Throttled()
    producer = producer_of(quota_broker, "loud", throttled)
    send(producer, 100)
    assert throttled.times_s == []

    entity = ("--entity-type", "clients", "--entity-default")
    configs("--alter", *entity, "--add-config", "producer_byte_rate=400000")
    took_s = send(producer, 150)
    assert took_s >= shortest_s(150 * RECORD_BYTES, 400_000)
    while producer.poll(0.2):
        pass  # What is still to be told of these requests.
    told = len(throttled.times_s)
    assert told > 0

    configs("--alter", *entity, "--delete-config", "producer_byte_rate")
    send(producer, 100)
    # librdkafka tells once more when a broker no longer throttles.
    assert [s for s in throttled.times_s[told:] if s > 0] == []


def test_a_consumer_is_held_to_its_rate_and_reads_everything(
    quota_broker: BrokerProcess, configs: Configs
) -> None:
    create_topic(quota_broker)
    count, limit = 250, 500_000
    send(producer_of(quota_broker, "writer", Throttled()), count)
    configs(
        *("--alter", "--entity-type", "users", "--entity-name", "ANONYMOUS"),
        *("--entity-type", "clients", "--entity-name", "reader"),
        *("--add-config", f"consumer_byte_rate={limit}"),
    )
    throttled = Throttled()
    consumer = Consumer(
        {
            "bootstrap.servers": quota_broker.address,
            "client.id": "reader",
            "group.id": "none",
            "enable.auto.commit": False,
            "throttle_cb": throttled,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    began_s = time.monotonic()
    offsets: list[int] = []
    while len(offsets) < count:
        messages = consumer.consume(count, timeout=1)
        assert [message.error() for message in messages] == [None] * len(messages)
        offsets += [message.offset() or 0 for message in messages]
        assert time.monotonic() - began_s < 240
    took_s = time.monotonic() - began_s
    consumer.close()
    assert offsets == list(range(count))
    assert took_s >= shortest_s(count * RECORD_BYTES, limit)
    assert max(throttled.times_s, default=0) > 0.05


def test_a_batch_larger_than_the_quota_still_reaches_its_reader(
    quota_broker: BrokerProcess, configs: Configs
) -> None:
    create_topic(quota_broker)
    send(producer_of(quota_broker, "writer", Throttled()), 10)
    configs(
        *("--alter", "--entity-type", "clients", "--entity-name", "reader"),
        *("--add-config", "consumer_byte_rate=50000"),
    )
    consumer = Consumer(
        {"bootstrap.servers": quota_broker.address, "client.id": "reader", "group.id": "none"}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    messages = []
    while len(messages) < 10:
        more = consumer.consume(10, timeout=120)
        assert more, f"only {len(messages)} of 10 records came"
        messages += more
    consumer.close()


@pytest.mark.parametrize("entity", ["users", "clients"])
def test_topics_are_created_no_faster_than_allowed(
    quota_broker: BrokerProcess, configs: Configs, entity: str
) -> None:
    """Version 2 does not know the error, so the topic is made and the next request waits."""
    configs(
        *("--alter", "--entity-type", entity, "--entity-default"),
        *("--add-config", "controller_mutation_rate=10"),
    )
    began_s = time.monotonic()
    with RawConnection(quota_broker.port) as connection:
        for name in "abc":
            assert connection.create_topic(name, partitions=20) == 0
    # 60 partitions: 20 of them at once, the last 20 after those before are paid for.
    assert time.monotonic() - began_s > 1.5
