"""The same records on Apache Kafka and on Penstock: compaction leaves the same of them."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from tests.integration.compaction.topics import (
    CLEAN_SOON,
    COMPACTED,
    Stored,
    await_cleaning,
    create_topic,
    read_all,
    set_policy,
)
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.java import run_java
from tests.support.outside import needs
from tests.support.wire import RawConnection

from penstock.records.batch import build_batch, split_batches
from penstock.records.compression import Codec
from penstock.records.record import Record

pytestmark = pytest.mark.kafka

TOPIC = "same"
# Nothing is cleaned before all is written.
NOT_YET_COMPACTED = {**COMPACTED, "cleanup.policy": "delete", "retention.ms": "-1"}
NOW_MS = 1_700_000_000_000


def batches() -> list[bytes]:
    """The same bytes for both: many keys, some tombstones, every codec."""
    chance = random.Random(11)
    made = []
    for number in range(900):
        codec = chance.choice([Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD])
        records = [
            Record(
                at,
                NOW_MS + number,
                b"key-%d" % chance.randrange(400),
                None if chance.random() < 0.1 else chance.randbytes(chance.randrange(100, 700)),
            )
            for at in range(chance.randrange(1, 20))
        ]
        made.append(bytes(build_batch(records, codec=codec)))
    return made


def compacted(server: BrokerProcess | KafkaProcess, made: list[bytes]) -> list[Stored]:
    create_topic(server, TOPIC, NOT_YET_COMPACTED)
    with RawConnection(server.port) as connection:
        for batch in made:
            connection.produce_one(TOPIC, batch, acks=1)
    set_policy(server, TOPIC, "compact")
    await_cleaning(server.data, TOPIC, timeout_s=120)
    return read_all(server, TOPIC)


def transactions(server: BrokerProcess | KafkaProcess) -> None:
    """One batch and one marker each, some aborted, all keys written again and again."""
    producer = Producer({"bootstrap.servers": server.address, "transactional.id": "t"})
    producer.init_transactions(60)
    chance = random.Random(12)
    for number in range(150):
        producer.begin_transaction()
        for _ in range(chance.randrange(1, 6)):
            key = b"key-%d" % chance.randrange(60)
            producer.produce(TOPIC, chance.randbytes(4_000), key, partition=0, timestamp=NOW_MS)
        producer.flush(120)
        if number % 3 == 0:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)


class Kept(NamedTuple):
    """What is left of a batch in a cleaned segment."""

    base_offset: int
    last_offset: int
    record_count: int
    is_control: bool
    has_horizon: bool


def kept_batches(directory: Path) -> list[Kept]:
    """The batches of all segments but the active one."""
    paths = sorted(directory.glob("*.log"))
    return [
        Kept(h.base_offset, h.last_offset, h.record_count, h.is_control, h.has_delete_horizon)
        for path in paths[:-1]
        for h, _ in split_batches(memoryview(path.read_bytes()))
    ]


def cleaned_transactions(server: BrokerProcess | KafkaProcess) -> tuple[list[Kept], list[Stored]]:
    """Two cleanings: the second finds markers without data."""
    create_topic(server, TOPIC, NOT_YET_COMPACTED)
    transactions(server)
    set_policy(server, TOPIC, "compact")
    await_cleaning(server.data, TOPIC, timeout_s=120)
    set_policy(server, TOPIC, "delete")
    with RawConnection(server.port) as connection:
        for number in range(40):
            records = [Record(0, NOW_MS, b"filler-%d" % number, b"." * 30_000)]
            connection.produce_one(TOPIC, bytes(build_batch(records)), acks=1)
    set_policy(server, TOPIC, "compact")
    await_cleaning(server.data, TOPIC, timeout_s=120)
    return kept_batches(server.partition_dir(TOPIC)), read_all(server, TOPIC)


def test_both_keep_the_same_batches_and_markers_of_transactions(tmp_path: Path) -> None:
    settings = {**CLEAN_SOON, "transaction.state.log.num.partitions": "1"}
    with KafkaProcess(needs(CURRENT), tmp_path / "kafka", settings) as kafka:
        kafka.start()
        expected_batches, expected_records = cleaned_transactions(kafka)
    with BrokerProcess(tmp_path / "penstock", settings) as broker:
        broker.start()
        batches, records = cleaned_transactions(broker)
    assert records == expected_records
    assert batches == expected_batches
    assert any(batch.is_control and batch.has_horizon for batch in batches)
    assert any(batch.is_control and not batch.has_horizon for batch in batches)


def test_both_keep_the_same_records_and_kafka_reads_our_segments(tmp_path: Path) -> None:
    jars = needs(CURRENT)
    made = batches()
    with KafkaProcess(jars, tmp_path / "kafka", CLEAN_SOON) as kafka:
        kafka.start()
        expected = compacted(kafka, made)
    with BrokerProcess(tmp_path / "penstock", CLEAN_SOON) as broker:
        broker.start()
        found = compacted(broker, made)
        broker.stop()
    written = sum(Path(path).stat().st_size for path in broker.partition_dir(TOPIC).glob("*.log"))
    assert found == expected
    assert written < sum(map(len, made)) * 0.7  # There was something to compact.
    for path in sorted(broker.partition_dir(TOPIC).glob("*.log")):
        report = run_java(
            f"{jars}/*",
            "org.apache.kafka.tools.DumpLogSegments",
            "--deep-iteration",
            "--files",
            f"{path},{path.with_suffix('.index')},{path.with_suffix('.timeindex')}",
        )
        assert "Mismatches" not in report and "isvalid: false" not in report
        assert "Found timestamp mismatch" not in report and "out of order" not in report
