"""kill -9 under load, start again: every acknowledged record is there, in order, once."""

import os
import random
import threading
from collections.abc import Sequence

import pytest
from confluent_kafka import Producer
from tests.support.broker import BrokerProcess
from tests.support.fixtures import StartBroker
from tests.support.waiting import eventually
from tests.support.wire import RawConnection
from tests.support.writers import Writer, number_of, read_log

ROUNDS = 20 if os.environ.get("PENSTOCK_LONG") == "1" else 4
SMALL_SEGMENTS = {"log.segment.bytes": "1048576"}
TOPIC = "written"


def create_topic(broker: BrokerProcess, partitions: int) -> None:
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(TOPIC, partitions=partitions) == 0


def crash_under_load(broker: BrokerProcess, writers: Sequence[Writer], patience: int) -> None:
    """Let the writers get so many more acknowledgements, then pull the plug."""
    before = sum(len(writer.acked) for writer in writers)
    threads = [threading.Thread(target=writer.run, args=(broker.port,)) for writer in writers]
    for thread in threads:
        thread.start()
    eventually(
        lambda: sum(len(writer.acked) for writer in writers) >= before + patience,
        timeout_s=120,
        what=f"{patience} acknowledgements",
    )
    broker.kill()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert [writer.error_codes for writer in writers] == [[]] * len(writers)


def assert_promises_kept(broker: BrokerProcess, writer: Writer) -> list[int]:
    """Acknowledged records are at their offsets; all are in order and none twice."""
    found = read_log(broker.port, writer.topic, writer.partition)
    numbers = [number_of(value) for _, value in found]
    assert [offset for offset, _ in found] == list(range(len(found)))
    assert numbers == sorted(set(numbers))
    assert all(value == writer.value(number_of(value)) for _, value in found)
    stored = {number: offset for number, (offset, _) in zip(numbers, found, strict=True)}
    lost = {n: offset for n, offset in writer.acked.items() if stored.get(n) != offset}
    assert lost == {}
    return numbers


@pytest.mark.parametrize("acks", [1, -1])
def test_acknowledged_records_survive_a_killed_broker(start_broker: StartBroker, acks: int) -> None:
    broker = start_broker(SMALL_SEGMENTS)
    create_topic(broker, 3)
    writers = [Writer(TOPIC, partition, acks=acks) for partition in range(3)]
    chance = random.Random(acks)
    for _ in range(ROUNDS):
        crash_under_load(broker, writers, patience=chance.randrange(50, 3000))
        broker.start()
        for writer in writers:
            assert_promises_kept(broker, writer)


def test_an_idempotent_producer_loses_and_doubles_nothing(start_broker: StartBroker) -> None:
    broker = start_broker(SMALL_SEGMENTS)
    create_topic(broker, 3)
    writers = []
    for partition in range(3):
        with RawConnection(broker.port) as connection:
            producer = eventually(connection.init_producer_id)
        writers.append(Writer(TOPIC, partition, acks=-1, producer=producer))
    chance = random.Random(7)
    for _ in range(ROUNDS):
        crash_under_load(broker, writers, patience=chance.randrange(50, 3000))
        broker.start()
        for writer in writers:
            assert_promises_kept(broker, writer)
    for writer in writers:
        writer.stopping.set()
        writer.run(broker.port)  # Sends again what the last crash left open, and no more.
        assert not writer.unanswered
        numbers = assert_promises_kept(broker, writer)
        assert numbers == list(range(writer.next_number))


def test_librdkafka_goes_on_over_a_crash_without_loss_or_doubles(broker: BrokerProcess) -> None:
    create_topic(broker, 1)
    delivered: list[int] = []
    failures: list[object] = []

    def on_delivery(error: object, message: object) -> None:
        if error is not None:
            failures.append(error)
        else:
            delivered.append(int(message.value()))  # type: ignore[attr-defined]

    producer = Producer(
        {
            "bootstrap.servers": broker.address,
            "enable.idempotence": True,
            "linger.ms": 5,
            "reconnect.backoff.max.ms": 200,
            "on_delivery": on_delivery,
        }
    )
    sent = 0
    for crash in range(3):
        goal = len(delivered) + 500
        while len(delivered) < goal:
            producer.produce(TOPIC, str(sent).encode(), partition=0)
            sent += 1
            producer.poll(0.05 if sent - len(delivered) > 1000 else 0.0005)
        if crash < 2:
            broker.kill()
            broker.start()
    assert producer.flush(120) == 0
    assert failures == []
    values = [int(value) for _, value in read_log(broker.port, TOPIC, 0)]
    assert values == list(range(sent))
    assert sorted(delivered) == values


def test_a_torn_tail_is_cut_off_and_said_so(broker: BrokerProcess) -> None:
    create_topic(broker, 1)
    writer = Writer(TOPIC, 0)
    crash_under_load(broker, [writer], patience=300)
    (segment,) = broker.partition_dir(TOPIC).glob("*.log")
    whole = segment.read_bytes()
    with segment.open("ab") as file:
        file.write(whole[:100])  # The front of a batch whose rest never reached the disk.
    broker.start()
    assert_promises_kept(broker, writer)
    assert segment.stat().st_size >= max(len(whole) - 2000, 0)
    assert f"{TOPIC}-0" in broker.log


def test_a_flipped_byte_costs_what_follows_it_and_nothing_before(broker: BrokerProcess) -> None:
    create_topic(broker, 1)
    crash_under_load(broker, [Writer(TOPIC, 0)], patience=300)
    (segment,) = broker.partition_dir(TOPIC).glob("*.log")
    data = bytearray(segment.read_bytes())
    middle = len(data) // 2
    data[middle] ^= 0xFF
    segment.write_bytes(data)
    broker.start()
    found = read_log(broker.port, TOPIC, 0)
    assert [offset for offset, _ in found] == list(range(len(found)))
    kept = segment.stat().st_size
    assert kept <= middle < kept + 2000
    with RawConnection(broker.port) as connection:
        assert connection.offset(TOPIC) == len(found)


def test_lost_and_broken_indexes_are_built_again(start_broker: StartBroker) -> None:
    broker = start_broker(SMALL_SEGMENTS)
    create_topic(broker, 1)
    writer = Writer(TOPIC, 0, padding_bytes=5000)
    crash_under_load(broker, [writer], patience=1000)
    directory = broker.partition_dir(TOPIC)
    indexes = sorted(directory.glob("*.index"))
    assert len(indexes) > 2
    indexes[0].unlink()
    indexes[1].write_bytes(b"\xff" * 64)
    for path in directory.glob("*.timeindex"):
        path.unlink()
    broker.start()
    assert_promises_kept(broker, writer)
    with RawConnection(broker.port) as connection:
        assert connection.offset(TOPIC, timestamp=1) == 0
