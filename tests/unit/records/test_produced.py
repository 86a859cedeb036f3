import pytest
from tests.unit.records.samples import some_records

from penstock.errors import (
    CorruptRecord,
    InvalidRecord,
    InvalidTimestamp,
    ProtocolError,
    UnsupportedCompressionType,
)
from penstock.records.batch import (
    Record,
    build_batch,
    control_batch,
    read_header,
    read_records,
    stamp_append_time,
)
from penstock.records.compression import Codec
from penstock.records.control import ControlType, Marker
from penstock.records.message_set import write_message_set
from penstock.records.produced import check_produced, read_produced


def view(batch: bytes | bytearray) -> memoryview:
    return memoryview(bytearray(batch))


@pytest.mark.parametrize("codec", Codec)
def test_what_clients_send_is_taken(codec: Codec) -> None:
    plain = build_batch(some_records(3), codec=codec)
    idempotent = build_batch(
        some_records(3), codec=codec, producer_id=0, producer_epoch=0, base_sequence=0
    )
    transactional = build_batch(
        some_records(3),
        codec=codec,
        producer_id=4,
        producer_epoch=1,
        base_sequence=9,
        is_transactional=True,
    )
    elsewhere = build_batch([Record(40, 1, None, None)], base_offset=40)
    for batch in (plain, idempotent, transactional, elsewhere):
        ((header, same),) = read_produced(view(batch), version=9)
        assert header == read_header(batch)
        assert same == batch


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"record_count": 0}, InvalidRecord),
        ({"record_count": 2}, InvalidRecord),
        ({"record_count": 4}, InvalidRecord),
        ({"last_offset_delta": 7}, InvalidRecord),
        ({"record_count": 0, "last_offset_delta": -1}, InvalidRecord),
        ({"attributes": 0x20}, InvalidRecord),
        ({"attributes": 0x08}, InvalidTimestamp),
        ({"attributes": 0x05}, UnsupportedCompressionType),
        ({"attributes": 0x07}, UnsupportedCompressionType),
        ({"attributes": 0x10}, InvalidRecord),
        ({"producer_id": 5, "producer_epoch": 0, "base_sequence": -1}, InvalidRecord),
        ({"producer_id": 5, "producer_epoch": -1, "base_sequence": 0}, InvalidRecord),
    ],
)
def test_what_no_client_may_send_is_refused_as_kafka_does(
    change: dict[str, int], error: type[ProtocolError]
) -> None:
    header = read_header(build_batch(some_records(3)))
    check_produced(header)
    with pytest.raises(error):
        check_produced(header._replace(**change))


def test_control_batches_come_from_brokers_only() -> None:
    marker = Marker(ControlType.ABORT, coordinator_epoch=1)
    batch = control_batch(marker, producer_id=1, producer_epoch=0, now_ms=1)
    with pytest.raises(InvalidRecord, match="control"):
        read_produced(view(batch), version=9)


def test_append_time_comes_from_brokers_only() -> None:
    batch = build_batch(some_records(1))
    stamp_append_time(batch, 5)
    with pytest.raises(InvalidTimestamp):
        read_produced(view(batch), version=9)


def test_a_partition_gets_exactly_one_batch_from_version_three_on() -> None:
    batch = bytes(build_batch(some_records(1)))
    with pytest.raises(InvalidRecord, match="one batch"):
        read_produced(view(batch + batch), version=3)
    with pytest.raises(InvalidRecord, match="one batch"):
        read_produced(view(b""), version=3)
    assert read_produced(view(b""), version=2) == []


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_sets_are_converted_for_old_versions_and_refused_for_new(magic: int) -> None:
    message_set = write_message_set(some_records(3), magic=magic, codec=Codec.SNAPPY)
    ((header, batch),) = read_produced(view(message_set), version=magic)
    assert header.codec is Codec.SNAPPY
    assert [record.value for record in read_records(batch)] == [r.value for r in some_records(3)]
    with pytest.raises(InvalidRecord, match="magic 2"):
        read_produced(view(message_set), version=3)


def test_zstd_needs_version_seven() -> None:
    batch = build_batch(some_records(1), codec=Codec.ZSTD)
    read_produced(view(batch), version=7)
    with pytest.raises(UnsupportedCompressionType):
        read_produced(view(batch), version=6)


def test_a_wrong_checksum_is_corrupt() -> None:
    batch = build_batch(some_records(1))
    batch[-1] ^= 1
    with pytest.raises(CorruptRecord):
        read_produced(view(batch), version=9)
