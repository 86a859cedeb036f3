"""The files, byte for byte as Apache Kafka writes them; expected bytes are written by hand."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.storage.made import append, batch, marker, new_log

from penstock.errors import CorruptRecord
from penstock.records.topic_partition import TopicPartition
from penstock.storage.directories.checkpoints import (
    read_offsets,
    read_topic_id,
    take_clean_stop,
    write_clean_stop,
    write_offsets,
    write_topic_id,
)
from penstock.storage.directories.names import (
    leaving_name,
    parse_directory_name,
    parse_leaving_name,
)
from penstock.storage.log.config import LogConfig
from penstock.storage.producers.producers import ProducerEntry, SequencedBatch
from penstock.storage.producers.snapshot import decode_snapshot, encode_snapshot


def hexed(*words: str) -> bytes:
    return bytes.fromhex("".join(words))


def test_the_offset_index_holds_relative_last_offsets_and_positions(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(index_interval_bytes=0))
    log.truncate_fully_and_start_at(1000)
    for _ in range(3):
        append(log, batch([b"a", b"b"]))
    size = log.size_bytes // 3
    log.close()
    expected = hexed("00000003", f"{size:08x}", "00000005", f"{2 * size:08x}")
    assert (log.dir / f"{1000:020d}.index").read_bytes() == expected


def test_the_time_index_holds_growing_timestamps_and_closes_with_the_largest(
    log_dir: Path,
) -> None:
    log = new_log(log_dir, LogConfig(index_interval_bytes=0))
    log.truncate_fully_and_start_at(1000)
    for timestamp in (0x100, 0x200, 0x150, 0x300):
        append(log, batch([b"a"], timestamps=timestamp))
    log.roll(now_ms=0)
    expected = hexed("0000000000000200", "00000001", "0000000000000300", "00000003")
    assert (log.dir / f"{1000:020d}.timeindex").read_bytes() == expected


def test_the_transaction_index_holds_entries_of_34_bytes(log_dir: Path) -> None:
    log = new_log(log_dir)
    held = batch(producer=(0x1234, 5, 0), is_transactional=True)
    append(log, batch(), held)
    append(log, marker(0x1234, 5, is_commit=False))
    expected = hexed(
        "0000",
        "0000000000001234",
        "0000000000000001",
        "0000000000000002",
        "0000000000000003",
    )
    assert (log.dir / f"{0:020d}.txnindex").read_bytes() == expected


SNAPSHOT = hexed(
    "0001",
    "9e688142",
    "00000002",
    # A producer with a batch and an open transaction.
    "0000000000001234000500000007000000000000001100000002",
    "0000018bcfe56800ffffffff000000000000000f",
    # A producer of which only a marker is known.
    "00000000000000090001ffffffffffffffffffffffff00000000",
    "000000000000000500000003ffffffffffffffff",
)
ENTRIES = [
    ProducerEntry(
        producer_id=0x1234,
        producer_epoch=5,
        coordinator_epoch=-1,
        last_timestamp=1_700_000_000_000,
        open_since=15,
        batches=(SequencedBatch(7, 17, 2, 1_700_000_000_000),),
    ),
    ProducerEntry(
        producer_id=9,
        producer_epoch=1,
        coordinator_epoch=3,
        last_timestamp=5,
        open_since=None,
        batches=(),
    ),
]


def test_a_snapshot_is_kafkas_version_one() -> None:
    assert encode_snapshot(ENTRIES).hex() == SNAPSHOT.hex()
    assert decode_snapshot(SNAPSHOT) == ENTRIES


@given(at=st.integers(0, len(SNAPSHOT) - 1), cut=st.booleans())
def test_a_damaged_snapshot_is_noticed(at: int, cut: bool) -> None:
    damaged = bytearray(SNAPSHOT)
    damaged[at] ^= 0x10
    with pytest.raises(CorruptRecord):
        decode_snapshot(SNAPSHOT[:at] if cut else bytes(damaged))


def test_a_checkpoint_is_lines_of_text(log_dir: Path) -> None:
    path = log_dir / "recovery-point-offset-checkpoint"
    offsets = {TopicPartition("orders", 0): 12, TopicPartition("a.b_c-d", 3): 0}
    write_offsets(path, offsets)
    assert path.read_text() == "0\n2\norders 0 12\na.b_c-d 3 0\n"
    assert read_offsets(path) == offsets
    assert read_offsets(log_dir / "never-written") == {}


@pytest.mark.parametrize(
    "text", ["", "0\n", "1\n0\n", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na b c\n"]
)
def test_a_checkpoint_that_is_not_whole_is_refused(log_dir: Path, text: str) -> None:
    path = log_dir / "checkpoint"
    path.write_text(text)
    with pytest.raises(CorruptRecord):
        read_offsets(path)


def test_a_clean_stop_is_noted_once_with_the_brokers_epoch(log_dir: Path) -> None:
    assert take_clean_stop(log_dir) is None
    write_clean_stop(log_dir, 42)
    assert (log_dir / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":42}'
    assert take_clean_stop(log_dir) == 42
    assert take_clean_stop(log_dir) is None
    (log_dir / ".kafka_cleanshutdown").touch()  # As Kafka before 3.7 left it.
    assert take_clean_stop(log_dir) == -1


def test_the_topic_id_stands_in_partition_metadata(log_dir: Path) -> None:
    assert read_topic_id(log_dir) is None
    write_topic_id(log_dir, bytes(range(16)))
    text = (log_dir / "partition.metadata").read_text()
    assert text == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert read_topic_id(log_dir) == bytes(range(16))


@given(
    topic=st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True),
    partition=st.integers(0, 99_999),
)
def test_directory_names_lead_back_to_their_partition(topic: str, partition: int) -> None:
    named = TopicPartition(topic, partition)
    assert parse_directory_name(str(named)) == named
    assert parse_leaving_name(str(named)) is None
    for reason in ("-delete", "-stray"):
        name = leaving_name(named, reason)
        assert len(name) <= 255
        assert parse_directory_name(name) is None
        found = parse_leaving_name(name)
        assert found is not None
        assert topic.startswith(found[0].topic)
        assert (found[0].partition, found[1]) == (partition, reason)


def test_other_directories_are_not_partitions() -> None:
    for name in ("lost+found", "orders", "orders-", "orders-x", "-1"):
        assert parse_directory_name(name) is None


def test_settings_come_under_kafkas_names() -> None:
    config = LogConfig.from_settings(
        {
            "segment.bytes": 1234,
            "cleanup.policy": ["compact", "delete"],
            "message.timestamp.type": "LogAppendTime",
            "preallocate": True,
            "retention.ms": None,
            "leader.replication.throttled.replicas": ("*",),
            "unheard.of": 1,
        }
    )
    assert (config.segment_bytes, config.preallocate) == (1234, True)
    assert config.is_append_time
    assert config.is_compacted
    assert config.is_deleted_by_age_or_size
    assert config.retention_ms == LogConfig().retention_ms
    assert config.leader_replication_throttled_replicas == ("*",)
    assert LogConfig.from_settings({"cleanup.policy": "compact"}).is_compacted
