"""A disk without a free byte: the operator makes room with the usual tools, and writers go on.

Nothing here waits for retention's turn (five minutes) or for the delay of deleted files (one
minute): with the defaults the broker must not either.
"""

import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from tests.integration.cluster.writing import QUIET, Stream, read_all
from tests.support.broker import BrokerProcess
from tests.support.disk import free_bytes, leave_no_byte, small_disk
from tests.support.processes import ROOT, free_port, python
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

DISK_BYTES = 48_000_000
SETTINGS = {
    "log.segment.bytes": "2000000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
KEPT, LARGE, WANTED = "kept", "large", "wanted"
VALUES = [b"%d" % number for number in range(100)]
RECORD_BYTES = 100_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", size_bytes=DISK_BYTES) as directory:
        yield directory


@pytest.fixture
def metrics_port() -> int:
    return free_port()


@pytest.fixture
def broker(disk: Path, tmp_path: Path, metrics_port: int) -> Iterator[BrokerProcess]:
    """One whose disk has no byte left; three topics, and one of them is large."""
    settings = {
        **SETTINGS,
        "log.dirs": str(disk / "data"),
        "metrics.listeners": f"http://127.0.0.1:{metrics_port}",
    }
    with BrokerProcess(tmp_path / "b", settings) as broker:
        broker.data = disk / "data"
        broker.start()
        with RawConnection(broker.port) as connection:
            for topic in (KEPT, LARGE, WANTED):
                assert connection.create_topic(topic) == 0
        keep(broker)
        (disk / "ballast").write_bytes(bytes(DISK_BYTES // 3))
        assert fill(broker) > 150
        leave_no_byte(disk)
        yield broker
        assert broker.tracebacks() == {}


def keep(broker: BrokerProcess) -> None:
    producer = Producer({"bootstrap.servers": broker.address, **QUIET})
    for value in VALUES:
        producer.produce(KEPT, value)
    assert producer.flush(120) == 0


def fill(broker: BrokerProcess) -> int:
    """Produce until the disk is full; how many records were acknowledged."""
    taken: list[int] = []
    codes: list[int] = []

    def note(error: KafkaError | None, _message: object) -> None:
        (taken if error is None else codes).append(0 if error is None else error.code())

    producer = Producer({"bootstrap.servers": broker.address, "retries": 0, **QUIET})
    while not codes:
        producer.produce(LARGE, bytes(RECORD_BYTES), on_delivery=note)
        producer.poll(0 if len(producer) < 20 else 0.05)
    producer.flush(120)
    assert set(codes) == {KafkaError.KAFKA_STORAGE_ERROR}
    return len(taken)


def told(broker: BrokerProcess, topic: str, **settings: Any) -> str | None:
    """Produce one record that is not sent again; the name of the error, None: it was taken."""
    heard: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.address, "retries": 0, **QUIET, **settings})
    producer.produce(topic, b"x" * 1000, on_delivery=lambda error, _: heard.append(error))
    assert producer.flush(120) == 0
    return None if heard[0] is None else heard[0].name()


def tool(broker: BrokerProcess, words: str, *more: object, code: int = 0) -> str:
    """Run one of the commands to its end."""
    command = [python(), "-m", "penstock.cli.main", *words.split()]
    command += ["--bootstrap-server", broker.address, *(str(word) for word in more)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    return done.stdout


def until_taken(broker: BrokerProcess, topic: str = WANTED) -> None:
    eventually(
        lambda: told(broker, topic) is None, timeout_s=120, what="a record to find room again"
    )


def until_free(disk: Path, size: int) -> None:
    """The first file that goes makes room for a record; the others go one after the other."""
    eventually(lambda: free_bytes(disk) > size, timeout_s=60, what=f"{size} bytes of room")


def assert_kept(broker: BrokerProcess) -> None:
    assert read_all(broker.address, KEPT) == VALUES


# What the operator does


@pytest.mark.parametrize(
    "settings",
    [{"acks": "1"}, {"acks": "all"}, {"enable.idempotence": True, "retries": 1}],
    ids=["acks=1", "acks=all", "idempotent"],
)
def test_a_producer_hears_of_the_full_disk_and_no_time_out(
    broker: BrokerProcess, settings: dict[str, Any]
) -> None:
    assert told(broker, WANTED, **settings) == "KAFKA_STORAGE_ERROR"
    assert_kept(broker)


def test_deleting_a_topic_makes_room_at_once(broker: BrokerProcess, disk: Path) -> None:
    tool(broker, "topics", "--delete", "--topic", LARGE)
    until_taken(broker)
    until_free(disk, 10_000_000)
    assert tool(broker, "topics", "--list").split() == [KEPT, WANTED]
    assert_kept(broker)


@pytest.mark.parametrize("setting", ["retention.bytes=5000000", "retention.ms=1"])
def test_lowering_retention_makes_room_at_once(
    broker: BrokerProcess, disk: Path, setting: str
) -> None:
    entity = ["--entity-type", "topics", "--entity-name", LARGE]
    tool(broker, "configs", "--alter", *entity, "--add-config", setting)
    until_taken(broker)
    until_free(disk, 5_000_000)
    assert setting in tool(broker, "configs", "--describe", *entity)
    assert_kept(broker)


def test_deleting_records_makes_room_at_once(
    broker: BrokerProcess, disk: Path, tmp_path: Path
) -> None:
    wanted = tmp_path / "offsets.json"
    wanted.write_text(
        f'{{"partitions": [{{"topic": "{LARGE}", "partition": 0, "offset": 150}}], "version": 1}}'
    )
    assert "low_watermark: 150" in tool(broker, "delete-records", "--offset-json-file", wanted)
    until_taken(broker)
    until_free(disk, 5_000_000)
    assert_kept(broker)


def test_topics_are_made_and_settings_changed_on_a_full_disk(broker: BrokerProcess) -> None:
    tool(broker, "topics", "--create", "--topic", "new")
    entity = ["--entity-type", "brokers", "--entity-default"]
    tool(broker, "configs", "--alter", *entity, "--add-config", "log.cleaner.threads=2")
    tool(broker, "topics", "--delete", "--topic", LARGE)
    until_taken(broker, "new")


def test_a_killed_broker_starts_on_its_full_disk(broker: BrokerProcess, disk: Path) -> None:
    for _ in range(6):
        broker.kill()
        leave_no_byte(disk)  # What the start before left of the reserve is gone, too.
        broker.start()
        assert_kept(broker)
        assert told(broker, WANTED) == "KAFKA_STORAGE_ERROR"
    tool(broker, "topics", "--delete", "--topic", LARGE)
    until_taken(broker)
    assert_kept(broker)


def test_a_broker_stops_and_starts_cleanly_on_its_full_disk(
    broker: BrokerProcess, disk: Path
) -> None:
    broker.stop()
    leave_no_byte(disk)
    broker.start()
    assert "Attempting recovery" not in broker.log
    tool(broker, "topics", "--delete", "--topic", LARGE)
    until_taken(broker)
    assert_kept(broker)


# What is said


def test_the_status_and_the_metrics_name_the_full_disk(
    broker: BrokerProcess, disk: Path, metrics_port: int
) -> None:
    said = " ".join(tool(broker, "cluster status", "--check", code=1).split())
    assert f"broker 0: the disk under {broker.data} is full, so records are refused" in said
    assert "(0 bytes) of 48.0 MB are left for records" in said
    assert "Nothing is wrong" not in said
    labels = f'{{logDirectory="{broker.data}"}}'
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    assert f"penstock_log_dir_full{labels} 1.0" in lines
    assert f"penstock_log_dir_usable_bytes{labels} 0.0" in lines

    (disk / "ballast").unlink()
    until_taken(broker)
    assert "Nothing is wrong." in tool(broker, "cluster status", "--check")


def test_the_log_says_now_and_then_what_was_refused(broker: BrokerProcess) -> None:
    for _ in range(20):
        assert told(broker, WANTED) == "KAFKA_STORAGE_ERROR"
    assert f"WARN The disk under {broker.data} is full" in broker.log
    refusals = [line for line in broker.log.splitlines() if "Refused to append" in line]
    assert refusals and f" bytes to {LARGE}-0: the disk under {broker.data}" in refusals[0]
    assert len(refusals) < 10
    assert not [line for line in broker.log.splitlines() if " ERROR " in line]


# What heals


def test_an_idempotent_producer_goes_on_in_order_without_loss_or_double(
    broker: BrokerProcess, disk: Path
) -> None:
    with Stream(broker.address, WANTED) as stream:
        waiting = eventually(lambda: "Refused to append" in broker.log)
        assert waiting
        (disk / "ballast").unlink()
        stream.until_more(2000)
        leave_no_byte(disk)
        eventually(lambda: told(broker, KEPT) == "KAFKA_STORAGE_ERROR", timeout_s=120)
        tool(broker, "topics", "--delete", "--topic", LARGE)
        stream.until_more(2000)
    assert stream.failed == []
    values = [int(value) for value in read_all(broker.address, WANTED)]
    assert values == stream.acked == list(range(len(values)))


def test_an_offset_is_committed_once_there_is_room(broker: BrokerProcess, disk: Path) -> None:
    ballast = disk / "ballast"
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "readers", **QUIET})
    position = [TopicPartition(KEPT, 0, 42)]

    def committed() -> bool:
        try:
            consumer.commit(offsets=position, asynchronous=False)
        except KafkaException as error:
            assert error.args[0].code() in (
                KafkaError.NOT_COORDINATOR,
                KafkaError.COORDINATOR_NOT_AVAILABLE,
                KafkaError._WAIT_COORD,
            ), error
            return False
        return True

    try:
        assert not committed()
        ballast.unlink()
        eventually(committed, timeout_s=120)
        (found,) = consumer.committed(position, timeout=120)
        assert found.offset == 42
    finally:
        consumer.close()


def test_offsets_of_a_topic_deleted_without_room_go_in_the_end(
    broker: BrokerProcess, disk: Path
) -> None:
    ballast = disk / "ballast"
    ballast.unlink()
    until_taken(broker)
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "readers", **QUIET})
    try:
        consumer.commit(offsets=[TopicPartition(LARGE, 0, 7)], asynchronous=False)
        leave_no_byte(disk)
        eventually(lambda: told(broker, WANTED) == "KAFKA_STORAGE_ERROR", timeout_s=120)
        tool(broker, "topics", "--delete", "--topic", LARGE)
        until_taken(broker)
        with RawConnection(broker.port) as connection:
            assert connection.create_topic(LARGE) == 0

        def is_forgotten() -> bool:
            (found,) = consumer.committed([TopicPartition(LARGE, 0)], timeout=120)
            return found.offset < 0

        eventually(is_forgotten, timeout_s=120)
    finally:
        consumer.close()


def test_a_transaction_ends_once_there_is_room(broker: BrokerProcess, disk: Path) -> None:
    ballast = disk / "ballast"
    ballast.unlink()
    until_taken(broker)
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "t", **QUIET})
    producer.init_transactions(120)
    producer.begin_transaction()
    producer.produce(WANTED, b"in a transaction")
    producer.flush(120)
    leave_no_byte(disk)
    assert eventually(lambda: told(broker, WANTED) == "KAFKA_STORAGE_ERROR", timeout_s=120)
    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction(3)
    assert refused.value.args[0].retriable()
    ballast.unlink()
    producer.commit_transaction(120)
    assert b"in a transaction" in read_all(broker.address, WANTED, committed_only=True)
