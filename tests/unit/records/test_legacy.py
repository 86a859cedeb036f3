import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.records.samples import (
    LEGACY_CODECS,
    MIB,
    mutations,
    record_lists,
    some_records,
)

from penstock.errors import (
    CorruptRecord,
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
    split_batches,
)
from penstock.records.compression import Codec
from penstock.records.control import ControlType, EndTransactionMarker
from penstock.records.legacy import convert_down, convert_up, is_legacy
from penstock.records.message_set import read_message_set, split_messages, write_message_set


def records_of(batches: bytes | bytearray) -> list[Record]:
    return [
        record for _, batch in split_batches(memoryview(batches)) for record in read_records(batch)
    ]


def messages_of(message_set: bytes) -> list[Record]:
    return list(read_message_set(message_set, bytes_max=MIB))


def without_headers(records: list[Record]) -> list[Record]:
    return [record._replace(headers=()) for record in records]


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_sets_are_told_from_batches(magic: int) -> None:
    assert is_legacy(bytes(write_message_set(some_records(1), magic=magic)))
    assert not is_legacy(bytes(build_batch(some_records(1))))
    assert not is_legacy(b"")
    assert not is_legacy(bytes(16))


@settings(max_examples=60)
@given(
    record_lists(base_offset=1000),
    st.sampled_from((0, 1)),
    st.sampled_from(LEGACY_CODECS),
)
def test_down_and_up_again_keeps_offsets_keys_and_values(
    records: list[Record], magic: int, codec: Codec
) -> None:
    batch = build_batch(records, base_offset=1000, codec=codec)
    message_set = convert_down(bytes(batch), magic)
    again = convert_up(message_set, keep_offsets=True)
    expected = without_headers(records)
    if magic == 0:
        expected = [record._replace(timestamp=-1) for record in expected]
    assert records_of(again) == expected
    assert read_header(again).codec is codec


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", LEGACY_CODECS)
def test_what_a_producer_sends_becomes_one_batch_counted_from_zero(
    magic: int, codec: Codec
) -> None:
    sent = [
        record._replace(offset=0 if codec is Codec.NONE else i)
        for i, record in enumerate(without_headers(some_records(4)))
    ]
    batches = split_batches(
        memoryview(convert_up(write_message_set(sent, magic=magic, codec=codec)))
    )
    ((header, batch),) = batches
    assert header.codec is codec
    assert (header.base_offset, header.last_offset_delta, header.record_count) == (0, 3, 4)
    got = list(read_records(batch))
    assert [record.offset for record in got] == [0, 1, 2, 3]
    assert [(r.key, r.value) for r in got] == [(r.key, r.value) for r in sent]
    assert [r.timestamp for r in got] == [r.timestamp if magic else -1 for r in sent]


def test_each_wrapper_becomes_a_batch_and_plain_messages_between_them_one() -> None:
    records = without_headers(some_records(8))
    message_set = b"".join(
        (
            write_message_set(records[:2], magic=1, codec=Codec.GZIP),
            write_message_set(records[2:4], magic=1, codec=Codec.GZIP),
            write_message_set(records[4:7], magic=1),
            write_message_set(records[7:], magic=1, codec=Codec.LZ4),
        )
    )
    batches = split_batches(memoryview(convert_up(message_set, keep_offsets=True)))
    assert [(header.base_offset, header.record_count) for header, _ in batches] == [
        (0, 2),
        (2, 2),
        (4, 3),
        (7, 1),
    ]
    assert [header.codec for header, _ in batches] == [
        Codec.GZIP,
        Codec.GZIP,
        Codec.NONE,
        Codec.LZ4,
    ]
    assert records_of(convert_up(message_set, keep_offsets=True)) == records


def test_offsets_that_do_not_ascend_start_another_batch() -> None:
    records = [
        Record(5, 1, None, b"a"),
        Record(4, 1, None, b"b"),
        Record(4 + (1 << 31), 1, None, b"c"),
    ]
    up = convert_up(write_message_set(records, magic=1), keep_offsets=True)
    assert records_of(up) == records
    assert len(split_batches(memoryview(up))) == 3


def test_append_time_may_come_from_the_log_but_not_from_a_producer() -> None:
    message_set = write_message_set(some_records(2), magic=1, append_time_ms=77)
    with pytest.raises(InvalidTimestamp):
        convert_up(message_set)
    kept = convert_up(message_set, keep_offsets=True)
    assert read_header(kept).is_log_append_time
    assert {record.timestamp for record in records_of(kept)} == {77}


def test_the_brokers_clock_can_replace_the_producers() -> None:
    up = convert_up(write_message_set(some_records(2), magic=1), append_time_ms=88)
    assert read_header(up).is_log_append_time
    assert {record.timestamp for record in records_of(up)} == {88}


def test_append_time_is_carried_down_to_format_one() -> None:
    batch = bytes(build_batch(some_records(2), append_time_ms=99))
    assert {outer.append_time_ms for outer in split_messages(convert_down(batch, 1))} == {99}
    assert {record.timestamp for record in messages_of(convert_down(batch, 0))} == {-1}


def test_control_batches_have_no_place_in_old_formats() -> None:
    data = build_batch(some_records(2))
    marker = EndTransactionMarker(ControlType.COMMIT, coordinator_epoch=1)
    data += control_batch(marker, producer_id=1, producer_epoch=0, now_ms=5, base_offset=2)
    data += build_batch([Record(3, 1, None, b"after")], base_offset=3)
    assert [record.offset for record in messages_of(convert_down(bytes(data), 1))] == [0, 1, 3]


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_is_refused_because_readers_of_that_time_do_not_know_it(magic: int) -> None:
    with pytest.raises(UnsupportedCompressionType):
        convert_down(bytes(build_batch(some_records(1), codec=Codec.ZSTD)), magic)


@pytest.mark.parametrize("codec", LEGACY_CODECS)
def test_plain_records_before_the_wanted_offset_are_left_out(codec: Codec) -> None:
    batch = bytes(build_batch(some_records(5), codec=codec))
    offsets = [record.offset for record in messages_of(convert_down(batch, 1, start_offset=3))]
    # A wrapper cannot be cut, and its readers skip on their own.
    assert offsets == ([3, 4] if codec is Codec.NONE else [0, 1, 2, 3, 4])


def test_nothing_is_left_when_all_records_lie_before_the_wanted_offset() -> None:
    assert convert_down(bytes(build_batch(some_records(2))), 1, start_offset=9) == b""


def test_a_batch_cut_off_at_the_end_is_left_out() -> None:
    whole = bytes(build_batch(some_records(2)))
    after = bytes(build_batch([Record(2, 1, None, b"after")], base_offset=2))
    for size in range(len(after)):
        down = convert_down(whole + after[:size], 1)
        assert [record.offset for record in messages_of(down)] == [0, 1]


def test_old_messages_on_disk_pass_or_lose_their_timestamp() -> None:
    for codec in LEGACY_CODECS:
        newer = bytes(write_message_set(some_records(3), magic=1, codec=codec))
        older = bytes(write_message_set(some_records(3), magic=0, codec=codec))
        assert convert_down(newer, 1) == newer
        assert convert_down(older, 1) == older
        assert messages_of(convert_down(newer, 0)) == messages_of(older)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_set_cut_anywhere_is_not_converted(magic: int) -> None:
    data = bytes(write_message_set(some_records(1), magic=magic))
    for size in range(1, len(data)):
        with pytest.raises(CorruptRecord):
            convert_up(data[:size])


@pytest.mark.parametrize("codec", LEGACY_CODECS)
def test_damage_raises_nothing_but_protocol_errors_either_way(codec: Codec) -> None:
    batch = bytes(build_batch(some_records(4), codec=codec))
    messages = bytes(write_message_set(some_records(4), magic=1, codec=codec))
    for convert, data in ((lambda b: convert_down(b, 0), batch), (convert_up, messages)):
        for damaged in mutations(data, count=300, seed=codec):
            try:
                convert(bytes(damaged))
            except ProtocolError:
                continue


def test_a_wrapper_that_unpacks_beyond_the_bound_is_refused() -> None:
    big = [Record(0, 1, None, bytes(MIB))]
    with pytest.raises(CorruptRecord):
        convert_up(write_message_set(big, magic=1, codec=Codec.GZIP), bytes_max=MIB)
    with pytest.raises(CorruptRecord):
        convert_down(bytes(build_batch(big, codec=Codec.LZ4)), 1, bytes_max=MIB)
