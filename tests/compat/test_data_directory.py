"""Our files in Apache Kafka's hands and its files in ours: the dump tool, and whole moves."""

import random
import re
import shutil
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.apache_kafka import CURRENT, LAST_WITH_ZOOKEEPER, KafkaProcess
from tests.support.batches import batch
from tests.support.broker import BrokerProcess
from tests.support.java import run_java
from tests.support.outside import needs
from tests.support.processes import ServerProcess
from tests.support.samples import CODECS
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

pytestmark = pytest.mark.kafka
TOPIC = "moved"
DUMP_TOOLS = {
    CURRENT: "org.apache.kafka.tools.DumpLogSegments",
    LAST_WITH_ZOOKEEPER: "kafka.tools.DumpLogSegments",
}
SMALL = {"log.segment.bytes": "1048576", "log.index.interval.bytes": "1024"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A stopped broker whose topic has several segments, every codec and a known producer."""
    with BrokerProcess(tmp_path_factory.mktemp("written"), SMALL) as broker:
        broker.start()
        create_topic(broker)
        for codec in CODECS:
            produce(broker, codec)
        with RawConnection(broker.port) as connection:
            producer = connection.init_producer_id()
            last = batch([b"idempotent"], producer=producer, sequence=0, timestamp=now_ms())
            connection.produce_one(TOPIC, last, acks=-1)
        broker.stop()
        yield broker


def now_ms() -> int:
    return int(time.time() * 1000)


def create_topic(server: ServerProcess) -> None:
    with RawConnection(server.port) as connection:
        assert connection.create_topic(TOPIC) == 0
        eventually(lambda: connection.offset(TOPIC) == 0, timeout_s=120)


def produce(server: ServerProcess, codec: str) -> None:
    settings = {"bootstrap.servers": server.address, "compression.type": codec, "linger.ms": 5}
    producer = Producer({**settings, "batch.size": 60_000})  # Several batches in each segment.
    for number in range(60):
        value = random.Random(number).randbytes(12_000) + bytes(4_000)  # Little to compress.
        producer.produce(TOPIC, value, key=str(number % 3).encode(), partition=0)
    assert producer.flush(120) == 0


def dump(version: str, *arguments: str) -> str:
    jars = needs(version)
    return run_java(f"{jars}/*", DUMP_TOOLS[version], *arguments)


@pytest.mark.parametrize("version", [CURRENT, LAST_WITH_ZOOKEEPER])
def test_kafkas_dump_tool_reads_our_segments(written: BrokerProcess, version: str) -> None:
    segments = sorted(written.partition_dir(TOPIC).glob("*.log"))
    assert len(segments) > 1
    printed = dump(version, "--deep-iteration", "--files", ",".join(str(path) for path in segments))
    offsets = [int(n) for n in re.findall(r"^\| offset: (\d+)", printed, re.MULTILINE)]
    assert offsets == list(range(301))
    assert "isvalid: false" not in printed
    for codec in CODECS:
        assert f"compresscodec: {codec}" in printed


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_kafkas_dump_tool_finds_our_indexes_right(written: BrokerProcess, kind: str) -> None:
    for path in sorted(written.partition_dir(TOPIC).glob(f"*.{kind}")):
        printed = dump(CURRENT, "--verify-index-only", "--files", str(path))
        assert not re.search(r"mismatch|not found|out of order|invalid", printed, re.IGNORECASE)
        printed = dump(CURRENT, "--index-sanity-check", "--files", str(path))
        assert "passed sanity check" in printed


def test_kafkas_dump_tool_reads_our_producer_snapshots(written: BrokerProcess) -> None:
    newest = max(written.partition_dir(TOPIC).glob("*.snapshot"))
    printed = dump(CURRENT, "--files", str(newest))
    assert re.search(r"producerId: \d+ producerEpoch: 0", printed)


def copy_partition(source: Path, target: Path) -> None:
    """Replace the target's files, except the one that holds its topic id."""
    for path in target.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in source.iterdir():
        if path.name != "partition.metadata":
            shutil.copy(path, target / path.name)


@pytest.mark.parametrize("version", [CURRENT, LAST_WITH_ZOOKEEPER])
def test_a_partition_moves_to_apache_kafka_and_back(
    written: BrokerProcess, tmp_path: Path, version: str
) -> None:
    with BrokerProcess(tmp_path / "back", SMALL) as ours:
        shutil.copytree(written.data, ours.data, symlinks=True)
        ours.start()
        before = read_raw(ours)
        ours.stop()
        with KafkaProcess(needs(version), tmp_path / "kafka") as kafka:
            kafka.start()
            create_topic(kafka)
            kafka.stop()
            copy_partition(ours.partition_dir(TOPIC), kafka.partition_dir(TOPIC))
            kafka.start()
            eventually(lambda: read_raw(kafka) == before, timeout_s=120)
            produce(kafka, "zstd")
            with RawConnection(kafka.port) as connection:
                connection.produce_one(TOPIC, batch([b"by kafka"], timestamp=now_ms()))
            after = read_raw(kafka)
            kafka.stop()
        copy_partition(kafka.partition_dir(TOPIC), ours.partition_dir(TOPIC))
        ours.start()
        assert read_raw(ours) == after
        with RawConnection(ours.port) as connection:
            end = connection.offset(TOPIC)
            assert connection.produce_one(TOPIC, batch([b"by us"], timestamp=now_ms())) == end


FRONT = struct.Struct(">qiibIhi")


def read_raw(server: ServerProcess) -> list[bytes]:
    """Every batch as it is stored, by fetching from offset to offset."""
    found: list[bytes] = []
    with RawConnection(server.port) as connection:
        end = connection.offset(TOPIC)
        offset = 0
        while offset < end:
            records = connection.fetch(TOPIC, offset).records
            base, length, _, _, _, _, last = FRONT.unpack_from(records)
            found.append(records[: 12 + length])
            offset = base + last + 1
    return found


def test_a_whole_directory_of_apache_kafkas_is_taken_over(tmp_path: Path) -> None:
    with KafkaProcess(needs(CURRENT), tmp_path / "kafka") as kafka:
        kafka.start()
        create_topic(kafka)
        for codec in CODECS:
            produce(kafka, codec)
        expected = read_raw(kafka)
        kafka.stop()
    with BrokerProcess(tmp_path / "ours", broker_id=1) as ours:
        shutil.copytree(kafka.data, ours.data)
        ours.start()
        assert read_raw(ours) == expected
        with RawConnection(ours.port) as connection:
            assert connection.leaders(TOPIC) == {0: 1}
            connection.produce_one(TOPIC, batch([b"by us"], timestamp=now_ms()))
        ours.restart()
        assert len(read_raw(ours)) == len(expected) + 1


def test_our_topics_are_read_by_kafka_with_the_same_producer_state(
    written: BrokerProcess, tmp_path: Path
) -> None:
    with KafkaProcess(needs(CURRENT), tmp_path / "kafka") as kafka:
        kafka.start()
        create_topic(kafka)
        kafka.stop()
        copy_partition(written.partition_dir(TOPIC), kafka.partition_dir(TOPIC))
        kafka.start()
        known = dump(CURRENT, "--files", str(max(written.partition_dir(TOPIC).glob("*.snapshot"))))
        producer_id = int(re.findall(r"producerId: (\d+)", known)[-1])
        again = batch([b"idempotent"], producer=(producer_id, 0), sequence=0, timestamp=now_ms())
        with RawConnection(kafka.port) as connection:
            end = eventually(lambda: connection.offset(TOPIC), timeout_s=120)
            assert connection.produce_one(TOPIC, again, acks=-1) == end - 1  # Known, not stored.
            assert connection.offset(TOPIC) == end
