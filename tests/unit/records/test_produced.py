import pytest
from tests.unit.records.samples import some_records

from penstock.errors import (
    InvalidRecord,
    InvalidTimestamp,
    ProtocolError,
    UnsupportedCompressionType,
)
from penstock.records.batch import (
    Record,
    build_batch,
    control_batch,
    emptied_batch,
    read_header,
    stamp_append_time,
)
from penstock.records.compression import Codec
from penstock.records.control import ControlType, EndTransactionMarker
from penstock.records.legacy import convert_up
from penstock.records.message_set import write_message_set
from penstock.records.produced import check_produced


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
    converted = convert_up(write_message_set(some_records(3), magic=0, codec=Codec.LZ4))
    for batch in (plain, idempotent, transactional, elsewhere, converted):
        check_produced(read_header(batch))


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
    marker = EndTransactionMarker(ControlType.ABORT, coordinator_epoch=1)
    batch = control_batch(marker, producer_id=1, producer_epoch=0, now_ms=1)
    with pytest.raises(InvalidRecord, match="control"):
        check_produced(read_header(batch))


def test_append_time_comes_from_brokers_only() -> None:
    batch = build_batch(some_records(1))
    stamp_append_time(batch, 5)
    with pytest.raises(InvalidTimestamp):
        check_produced(read_header(batch))


def test_what_compaction_left_cannot_be_produced_again() -> None:
    batch = build_batch(some_records(3))
    for left in (
        emptied_batch(read_header(batch)),
        build_batch(some_records(1), last_offset_delta=2),
    ):
        with pytest.raises(InvalidRecord, match="do not fill"):
            check_produced(read_header(left))
