"""What is written to `__consumer_offsets` is Kafka's to the byte; golden bytes made by hand."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.groups.rig import START_MS, MemoryJournal, Rig, Written

from penstock.groups.record_formats import (
    CommittedOffset,
    offset_key,
    offset_value,
    read_offset_key,
    read_offset_value,
    record_type,
)
from penstock.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from penstock.protocol.primitives import MalformedMessage


def text(value: str) -> bytes:
    """A string as the classic encoding has it: two bytes of length, then UTF-8."""
    return struct.pack(">h", len(value.encode())) + value.encode()


def null_text() -> bytes:
    return struct.pack(">h", -1)


def blob(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def records_of(journal: MemoryJournal) -> list[Written]:
    return [entry for entry in journal.log if isinstance(entry, Written)]


def test_an_offset_commit_is_key_version_1_and_value_version_4() -> None:
    rig = Rig()
    rig.commit(42, topic="orders", partition=7, metadata="note")
    (record,) = records_of(rig.journal)
    assert record.key == struct.pack(">h", 1) + text("g") + text("orders") + struct.pack(">i", 7)
    assert record.value == (
        struct.pack(">hqi", 4, 42, -1) + b"\x05note" + struct.pack(">qB", START_MS, 0)
    )


def test_a_commit_that_says_when_it_expires_is_value_version_1() -> None:
    rig = Rig()
    rig.commit(42, topic="orders", partition=7, metadata="note", retention_ms=5000)
    (record,) = records_of(rig.journal)
    assert record.value == (
        struct.pack(">hq", 1, 42) + text("note") + struct.pack(">qq", START_MS, START_MS + 5000)
    )


def test_a_group_is_key_version_2_and_value_version_3() -> None:
    rig = Rig()
    rig.stable("a")
    record = records_of(rig.journal)[-1]
    assert record.key == struct.pack(">h", 2) + text("g")
    assert record.value == (
        struct.pack(">h", 3)
        + text("consumer")
        + struct.pack(">i", 1)  # Generation.
        + text("range")
        + text("a-1")  # Leader.
        + struct.pack(">q", START_MS + 3000)  # When the initial delay was over.
        + struct.pack(">i", 1)  # Members.
        + text("a-1")
        + null_text()  # No instance id.
        + text("a")
        + text("/127.0.0.1")
        + struct.pack(">ii", 60_000, 10_000)  # Rebalance and session timeout.
        + blob(b"sub")
        + blob(b"a")
    )


def test_an_empty_group_keeps_its_generation_and_type_but_no_protocol_and_no_leader() -> None:
    rig = Rig()
    (member,) = rig.stable("a")
    rig.leave(member)
    record = records_of(rig.journal)[-1]
    assert record.value == (
        struct.pack(">h", 3)
        + text("consumer")
        + struct.pack(">i", 2)
        + null_text()
        + null_text()
        + struct.pack(">q", START_MS + 3000)
        + struct.pack(">i", 0)
    )


def test_deleting_writes_tombstones_of_the_same_keys() -> None:
    rig = Rig()
    rig.commit(42)
    rig.shard.delete_group("g")
    commit, offset_tombstone, group_tombstone = records_of(rig.journal)
    assert offset_tombstone.key == commit.key
    assert offset_tombstone.value is None
    assert group_tombstone == Written(struct.pack(">h", 2) + text("g"), None, -1)


@given(
    st.text(max_size=20),
    st.text(max_size=20),
    st.integers(0, 1 << 31),
    st.integers(-(1 << 62), 1 << 62),
    st.integers(-1, 1000),
    st.text(max_size=30) | st.text("ab", min_size=120, max_size=140),
    st.integers(-1, 1 << 40),
    st.none() | st.binary(min_size=16, max_size=16).filter(any),
)
def test_hand_made_bytes_are_those_of_the_schema(
    group: str,
    topic: str,
    partition: int,
    offset: int,
    epoch: int,
    note: str,
    expire_ms: int,
    topic_id: bytes | None,
) -> None:
    partition %= 1 << 31
    committed = CommittedOffset(offset, epoch, note, 1234, expire_ms, topic_id=topic_id)
    key, value = offset_key(group, topic, partition), offset_value(committed)
    assert key == OffsetCommitKey(group=group, topic=topic, partition=partition).to_bytes()
    schema = OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch,
        metadata=note,
        commit_timestamp=1234,
        expire_timestamp=expire_ms,
        topic_id=topic_id or bytes(16),
    )
    assert value == schema.to_bytes(4 if expire_ms == -1 else 1)
    assert read_offset_key(key) == (group, topic, partition)
    # Version 1 had neither epochs nor ids.
    known_epoch, known_id = (epoch, topic_id) if expire_ms == -1 else (-1, None)
    expected = CommittedOffset(offset, known_epoch, note, 1234, expire_ms, 9, known_id)
    assert read_offset_value(value, 9) == expected


@given(st.binary(max_size=40))
def test_damaged_values_are_judged_as_the_schema_judges_them(rest: bytes) -> None:
    value = struct.pack(">h", 4) + rest
    try:
        expected = OffsetCommitValue.from_bytes(value)
    except MalformedMessage:
        with pytest.raises(MalformedMessage):
            read_offset_value(value, 0)
        return
    read = read_offset_value(value, 0)
    assert (read.offset, read.leader_epoch, read.metadata, read.commit_ms) == (
        expected.offset,
        expected.leader_epoch,
        expected.metadata,
        expected.commit_timestamp,
    )


@pytest.mark.parametrize("version", range(5))
def test_values_of_every_version_are_read(version: int) -> None:
    stored = OffsetCommitValue(
        offset=5, leader_epoch=2, metadata="m", commit_timestamp=10, expire_timestamp=20
    )
    read = read_offset_value(stored.to_bytes(version), 3)
    assert (read.offset, read.metadata, read.commit_ms, read.record_offset) == (5, "m", 10, 3)
    assert read.leader_epoch == (2 if version >= 3 else -1)
    assert read.expire_ms == (20 if version == 1 else -1)


def test_an_offset_is_stored_byte_for_byte_as_kafka_4_3_stores_it() -> None:
    topic_id = bytes.fromhex("9cf1c86b96604066bb178a3c158b3d82")
    stored = bytes.fromhex(
        "0004 000000000000006e ffffffff 07 6d6574613130 000001a1e89182a7"
        "01 00 10 9cf1c86b96604066bb178a3c158b3d82"
    )
    committed = CommittedOffset(110, -1, "meta10", 0x1A1E89182A7, topic_id=topic_id)
    assert offset_value(committed) == stored
    assert read_offset_value(stored, -1) == committed


def test_a_value_from_the_future_is_no_value() -> None:
    with pytest.raises(MalformedMessage):
        read_offset_value(struct.pack(">hq", 99, 5), 0)


def test_a_key_tells_its_type() -> None:
    assert record_type(offset_key("g", "t", 0)) == 1
    with pytest.raises(MalformedMessage):
        record_type(b"\0")
