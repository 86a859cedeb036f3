"""A full disk: producers get KAFKA_STORAGE_ERROR, readers notice nothing, and space heals it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.batches import batch, stored_batches
from tests.support.broker import BrokerProcess
from tests.support.disk import small_disk
from tests.support.waiting import eventually
from tests.support.wire import RawConnection
from tests.support.writers import read_log

DISK_BYTES = 48_000_000
RECORD = bytes(range(256)) * 1000
KAFKA_STORAGE_ERROR = 56
TOPIC, OTHER = "growing", "other"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", size_bytes=DISK_BYTES) as directory:
        yield directory


@pytest.fixture
def broker(disk: Path, tmp_path: Path) -> Iterator[BrokerProcess]:
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(DISK_BYTES // 2))
    settings = {"log.dirs": str(disk / "data"), "log.index.size.max.bytes": "65536"}
    with BrokerProcess(tmp_path / "b", settings) as broker:
        broker.data = disk / "data"
        broker.start()
        yield broker


def fill(connection: RawConnection) -> int:
    """Produce until the disk is full; how many records were acknowledged."""
    for number in range(1000):
        answer = connection.produce({(TOPIC, 0): batch([RECORD])})[TOPIC, 0]
        if answer.error_code:
            assert answer.error_code == KAFKA_STORAGE_ERROR
            return number
        assert answer.base_offset == number
    raise AssertionError("the disk never filled")


def test_a_full_disk_refuses_writes_keeps_reads_and_heals(
    broker: BrokerProcess, disk: Path
) -> None:
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(TOPIC) == 0
        assert connection.create_topic(OTHER) == 0
        connection.produce_one(OTHER, batch([b"before"]))
        count = fill(connection)
        assert count > 20
        for _ in range(5):  # It stays an answer, and does not become a closed connection.
            answer = connection.produce({(TOPIC, 0): batch([RECORD])})[TOPIC, 0]
            assert answer.error_code == KAFKA_STORAGE_ERROR
        assert connection.offset(TOPIC) == count
        assert connection.fetch(OTHER, 0).error_code == 0
        assert len(read_log(broker.port, TOPIC, 0)) == count

        (disk / "ballast").unlink()
        healed = eventually(lambda: connection.produce_one(TOPIC, batch([RECORD])), timeout_s=120)
        assert healed == count
        connection.produce_one(OTHER, batch([b"after"]))
    assert len(read_log(broker.port, TOPIC, 0)) == count + 1


def test_no_half_batch_is_left_when_the_disk_fills(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(TOPIC) == 0
        count = fill(connection)
    (segment,) = broker.partition_dir(TOPIC).glob("*.log")
    content = segment.read_bytes()
    batches = list(stored_batches(content))
    assert len(batches) == count
    assert sum(61 + len(stored.records) for stored in batches) == len(content)


def test_a_broker_killed_on_a_full_disk_comes_back_when_there_is_space(
    broker: BrokerProcess, disk: Path
) -> None:
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(TOPIC) == 0
        count = fill(connection)
    broker.kill()
    (disk / "ballast").unlink()
    broker.start()
    assert [value for _, value in read_log(broker.port, TOPIC, 0)] == [RECORD] * count
