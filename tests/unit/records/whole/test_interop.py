"""Our bytes against those of two other implementations of the formats, in both directions."""

from types import ModuleType
from typing import Any

import aiokafka.record.default_records as aiokafka_v2
import aiokafka.record.legacy_records as aiokafka_old
import kafka.record.default_records as kafka_v2
import kafka.record.legacy_records as kafka_old
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords
from tests.unit.records.samples import LEGACY_CODECS, MIB, record_lists, some_records

from penstock.records.batch import (
    HEADER_BYTES,
    LEAD,
    LOG_OVERHEAD,
    Record,
    build_batch,
    check_batch,
    control_batch,
    read_header,
    read_records,
)
from penstock.records.compression import Codec, decompress
from penstock.records.control import ControlType, EndTransactionMarker
from penstock.records.legacy import convert_down, convert_up
from penstock.records.message_set import read_message_set, write_message_set

V2 = {
    "kafka-python": (kafka_v2, "DefaultRecordBatchBuilder", "DefaultRecordBatch"),
    "aiokafka": (aiokafka_v2, "DefaultRecordBatchBuilder", "DefaultRecordBatch"),
    "aiokafka in Python": (aiokafka_v2, "_DefaultRecordBatchBuilderPy", "_DefaultRecordBatchPy"),
}
OLD = {
    "kafka-python": (kafka_old, "LegacyRecordBatchBuilder", "LegacyRecordBatch"),
    "aiokafka": (aiokafka_old, "LegacyRecordBatchBuilder", "LegacyRecordBatch"),
    "aiokafka in Python": (aiokafka_old, "_LegacyRecordBatchBuilderPy", "_LegacyRecordBatchPy"),
}
Implementation = tuple[ModuleType, str, str]

v2_implementations = pytest.mark.parametrize("other", V2.values(), ids=V2)
old_implementations = pytest.mark.parametrize("other", OLD.values(), ids=OLD)
# aiokafka has no lz4 for format 0, whose header checksum is peculiar; kafka-python has.
old_combinations = pytest.mark.parametrize(
    ("other", "codec", "magic"),
    [
        pytest.param(other, codec, magic, id=f"{name}-{codec.name}-{magic}")
        for name, other in OLD.items()
        for codec in LEGACY_CODECS
        for magic in (0, 1)
        if not (codec is Codec.LZ4 and magic == 0 and name.startswith("aiokafka"))
    ],
)
codecs = pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
old_codecs = pytest.mark.parametrize("codec", LEGACY_CODECS, ids=lambda codec: codec.name)


def their_batch(other: Implementation, records: list[Record], codec: Codec = Codec.NONE) -> bytes:
    module, builder_name, _ = other
    builder = getattr(module, builder_name)(
        magic=2,
        compression_type=codec,
        is_transactional=True,
        producer_id=7,
        producer_epoch=3,
        base_sequence=11,
        batch_size=MIB,
    )
    for offset, timestamp, key, value, headers in records:
        builder.append(offset, timestamp=timestamp, key=key, value=value, headers=list(headers))
    return bytes(builder.build())


def our_batch(records: list[Record], codec: Codec = Codec.NONE) -> bytes:
    return bytes(
        build_batch(
            records,
            codec=codec,
            producer_id=7,
            producer_epoch=3,
            base_sequence=11,
            is_transactional=True,
        )
    )


def leader_epoch_of(other: Implementation) -> int:
    """What an implementation leaves in the field that the broker fills."""
    return 0 if other is V2["kafka-python"] else -1


def read_by(other: Implementation, batch: bytes) -> list[Record]:
    module, _, reader_name = other
    reader = getattr(module, reader_name)(batch)
    assert reader.validate_crc()
    return [as_record(theirs) for theirs in reader]


def as_record(theirs: Any) -> Record:
    timestamp = -1 if theirs.timestamp is None else theirs.timestamp
    headers = tuple((name, value) for name, value in theirs.headers)
    return Record(theirs.offset, timestamp, theirs.key, theirs.value, headers)


@v2_implementations
@settings(max_examples=25)
@given(records=record_lists())
def test_batches_are_equal_byte_for_byte(other: Implementation, records: list[Record]) -> None:
    ours = bytearray(our_batch(records))
    LEAD.pack_into(ours, 0, 0, len(ours) - LOG_OVERHEAD, leader_epoch_of(other))
    assert ours == their_batch(other, records)


@v2_implementations
@codecs
def test_their_batches_are_read(other: Implementation, codec: Codec) -> None:
    records = some_records(300)
    batch = their_batch(other, records, codec)
    header = check_batch(memoryview(batch))
    assert header.codec is codec
    assert list(read_records(batch)) == records


@v2_implementations
@codecs
def test_our_batches_are_read(other: Implementation, codec: Codec) -> None:
    records = some_records(300)
    assert read_by(other, our_batch(records, codec)) == records


@v2_implementations
@codecs
def test_compressed_batches_differ_in_nothing_but_the_compressors_choices(
    other: Implementation, codec: Codec
) -> None:
    ours, theirs = (
        our_batch(some_records(300), codec),
        their_batch(other, some_records(300), codec),
    )
    free = {"batch_length": 0, "crc": 0, "leader_epoch": 0}
    assert read_header(ours)._replace(**free) == read_header(theirs)._replace(**free)
    assert decompress(codec, ours[HEADER_BYTES:]) == decompress(codec, theirs[HEADER_BYTES:])


@v2_implementations
def test_append_time_is_understood(other: Implementation) -> None:
    batch = bytes(build_batch(some_records(3), append_time_ms=123_456))
    assert {record.timestamp for record in read_by(other, batch)} == {123_456}


@pytest.mark.parametrize("kind", ControlType)
def test_markers_are_understood(kind: ControlType) -> None:
    marker = EndTransactionMarker(kind, coordinator_epoch=2)
    batch = bytes(control_batch(marker, producer_id=1, producer_epoch=0, now_ms=5, base_offset=8))
    theirs = MemoryRecords(batch).next_batch()
    assert theirs.is_control_batch
    assert theirs.is_transactional
    (record,) = theirs
    assert (record.offset, record.commit) == (8, kind is ControlType.COMMIT)


def their_messages(
    other: Implementation, records: list[Record], *, magic: int, codec: Codec
) -> bytes:
    module, builder_name, _ = other
    builder = getattr(module, builder_name)(magic=magic, compression_type=codec, batch_size=MIB)
    for offset, timestamp, key, value, _ in records:
        builder.append(offset, timestamp=timestamp, key=key, value=value)
    return bytes(builder.build())


def messages_read_by(other: Implementation, data: bytes, magic: int) -> list[Record]:
    module, _, reader_name = other
    records = []
    at = 0
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        reader = getattr(module, reader_name)(data[at:end], magic)
        assert reader.validate_crc()
        records += [as_record(theirs) for theirs in reader]
        at = end
    return records


def as_kept(records: list[Record], magic: int) -> list[Record]:
    """What a format keeps of records: no headers, and timestamps only in format 1."""
    return [
        Record(record.offset, record.timestamp if magic else -1, record.key, record.value)
        for record in records
    ]


@old_implementations
@settings(max_examples=25)
@given(records=record_lists(with_headers=False), magic=st.sampled_from((0, 1)))
def test_message_sets_are_equal_byte_for_byte(
    other: Implementation, records: list[Record], magic: int
) -> None:
    theirs = their_messages(other, records, magic=magic, codec=Codec.NONE)
    assert bytes(write_message_set(records, magic=magic)) == theirs


@old_combinations
def test_their_messages_are_read_and_converted(
    other: Implementation, codec: Codec, magic: int
) -> None:
    records = as_kept(some_records(200), magic)
    data = their_messages(other, records, magic=magic, codec=codec)
    assert list(read_message_set(data, bytes_max=MIB)) == records
    up = convert_up(data)
    assert check_batch(memoryview(up)).codec is codec
    assert list(read_records(up)) == records


@old_combinations
def test_our_messages_are_read(other: Implementation, codec: Codec, magic: int) -> None:
    records = [record._replace(offset=record.offset * 3 + 40) for record in some_records(200)]
    data = bytes(write_message_set(records, magic=magic, codec=codec))
    assert messages_read_by(other, data, magic) == as_kept(records, magic)


@old_combinations
def test_their_batches_are_readable_by_their_old_readers_through_us(
    other: Implementation, codec: Codec, magic: int
) -> None:
    records = some_records(200)
    batch = their_batch(V2["kafka-python"], records, codec)
    data = convert_down(batch, magic)
    assert messages_read_by(other, data, magic) == as_kept(records, magic)


@old_implementations
@old_codecs
def test_append_time_is_understood_in_format_one(other: Implementation, codec: Codec) -> None:
    batch = bytes(build_batch(some_records(3), codec=codec, append_time_ms=123_456))
    records = messages_read_by(other, convert_down(batch, 1), 1)
    assert {record.timestamp for record in records} == {123_456}
