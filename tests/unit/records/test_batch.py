import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.records.samples import MIB, mutations, record_lists, some_records

from penstock.errors import CorruptRecord, ProtocolError, UnsupportedCompressionType
from penstock.records.batch import (
    HEADER_BYTES,
    LEAD,
    LOG_OVERHEAD,
    BatchHeader,
    Record,
    build_batch,
    build_key_values,
    check_batch,
    control_batch,
    emptied_batch,
    read_header,
    read_records,
    seal,
    split_batches,
    stamp_append_time,
)
from penstock.records.compression import Codec
from penstock.records.control import ControlType, EndTransactionMarker, read_marker


@settings(max_examples=60)
@given(record_lists(base_offset=7), st.sampled_from(Codec))
def test_records_come_back_as_they_went_in(records: list[Record], codec: Codec) -> None:
    batch = build_batch(records, base_offset=7, codec=codec)
    header = check_batch(memoryview(batch))
    assert list(read_records(batch, bytes_max=MIB)) == records
    assert header.codec is codec
    assert header.size_bytes == len(batch)
    assert (header.base_offset, header.last_offset) == (7, records[-1].offset)
    assert header.next_offset == records[-1].offset + 1
    assert header.record_count == len(records)
    assert header.base_timestamp == records[0].timestamp
    assert header.max_timestamp == max(record.timestamp for record in records)


def test_the_header_tells_what_the_batch_was_built_with() -> None:
    batch = build_batch(
        some_records(3),
        producer_id=9,
        producer_epoch=2,
        base_sequence=40,
        leader_epoch=6,
        is_transactional=True,
    )
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 40)
    assert header.last_sequence == 42
    assert header.leader_epoch == 6
    assert header.has_producer_id
    assert header.is_transactional
    assert not header.is_control
    assert not header.is_log_append_time
    assert not header.has_delete_horizon
    assert header.delete_horizon_ms is None


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("producer", [(-1, -1), (9, 4)])
def test_keys_and_values_of_one_moment_become_a_batch(
    codec: Codec, producer: tuple[int, int]
) -> None:
    pairs = [(b"offset", b"value"), (b"gone", None), (b"", b"x" * 300)]
    header, batch = build_key_values(pairs, 1_700, codec, *producer)
    assert header == check_batch(memoryview(batch))
    assert header.codec is codec
    assert header.is_transactional == (producer != (-1, -1))
    assert (header.producer_id, header.producer_epoch) == producer
    found = [(one.offset, one.timestamp, one.key, one.value) for one in read_records(batch)]
    assert found == [(at, 1_700, key, value) for at, (key, value) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("base_sequence", "count", "last"),
    [(-1, 3, -1), (0, 1, 0), (0x7FFFFFFF, 1, 0x7FFFFFFF), (0x7FFFFFFF, 2, 0), (0x7FFFFFFE, 5, 2)],
)
def test_sequence_numbers_go_on_at_zero_after_the_largest(
    base_sequence: int, count: int, last: int
) -> None:
    batch = build_batch(some_records(count), producer_id=1, base_sequence=base_sequence)
    assert read_header(batch).last_sequence == last


def test_a_header_can_be_read_anywhere_in_a_buffer() -> None:
    one, two = build_batch(some_records(2)), build_batch(some_records(3))
    both = memoryview(bytes(one + two))
    assert read_header(both, len(one)) == read_header(two)
    assert check_batch(both, len(one)) == check_batch(memoryview(two))
    assert split_batches(both) == [(read_header(one), one), (read_header(two), two)]


def test_stamping_moves_a_batch_without_touching_its_checksum() -> None:
    batch = build_batch(some_records(3))
    LEAD.pack_into(batch, 0, 1 << 40, len(batch) - LOG_OVERHEAD, 12)
    header = check_batch(memoryview(batch))
    assert (header.base_offset, header.leader_epoch) == (1 << 40, 12)
    assert [record.offset - (1 << 40) for record in read_records(batch)] == [0, 1, 2]


@pytest.mark.parametrize("codec", Codec)
def test_append_time_replaces_the_timestamps_of_all_records(codec: Codec) -> None:
    records = some_records(3)
    batch = build_batch(records, codec=codec)
    stamp_append_time(memoryview(batch), 99)
    header = check_batch(memoryview(batch))
    assert header.is_log_append_time
    assert header.codec is codec
    assert header.max_timestamp == 99
    assert {record.timestamp for record in read_records(batch)} == {99}
    assert batch == build_batch(records, codec=codec, append_time_ms=99)


def test_what_compaction_removes_leaves_the_end_and_the_delete_horizon() -> None:
    kept = [Record(12, 500, b"k", None), Record(14, 600, b"l", b"v")]
    batch = build_batch(kept, base_offset=10, last_offset_delta=9, delete_horizon_ms=7000)
    header = check_batch(memoryview(batch))
    assert (header.base_offset, header.last_offset, header.record_count) == (10, 19, 2)
    assert header.delete_horizon_ms == 7000
    assert header.max_timestamp == 600
    assert list(read_records(batch)) == kept


def test_a_batch_without_records_keeps_its_offsets_and_its_producer() -> None:
    full = build_batch(
        some_records(4), codec=Codec.ZSTD, producer_id=3, producer_epoch=1, base_sequence=8
    )
    empty = emptied_batch(read_header(full))
    header = check_batch(memoryview(empty))
    assert len(empty) == HEADER_BYTES
    assert header.codec is Codec.NONE
    assert (header.last_offset, header.last_sequence, header.producer_id) == (3, 11, 3)
    assert list(read_records(empty)) == []


def test_building_a_batch_of_nothing_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="needs a record"):
        build_batch([])


@pytest.mark.parametrize("kind", ControlType)
def test_a_control_batch_ends_the_transaction_of_one_producer(kind: ControlType) -> None:
    marker = EndTransactionMarker(kind, coordinator_epoch=17)
    batch = control_batch(marker, producer_id=5, producer_epoch=3, now_ms=1000, base_offset=44)
    header = check_batch(memoryview(batch))
    (record,) = read_records(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 3, -1)
    assert record.offset == 44
    assert record.timestamp == 1000
    assert record.key == bytes((0, 0, 0, kind))
    assert record.value == bytes((0, 0, 0, 0, 0, 17))
    assert read_marker(record) == marker


def test_a_change_of_any_byte_under_the_checksum_is_noticed() -> None:
    batch = build_batch(some_records(2))
    for at in range(8, len(batch)):
        if LOG_OVERHEAD <= at < LOG_OVERHEAD + 4:
            continue  # The leader's epoch is stamped by brokers and not covered.
        for flipped in (0x01, 0x80):
            damaged = bytearray(batch)
            damaged[at] ^= flipped
            with pytest.raises(CorruptRecord):
                split_batches(memoryview(damaged))


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_cut_anywhere_is_corrupt(codec: Codec) -> None:
    batch = bytes(build_batch(some_records(3), codec=codec))
    for size in range(1, len(batch)):
        with pytest.raises(CorruptRecord):
            split_batches(memoryview(batch)[:size])
        with pytest.raises(CorruptRecord):
            list(read_records(batch[:size]))


def test_bytes_behind_the_last_batch_are_corrupt() -> None:
    with pytest.raises(CorruptRecord):
        split_batches(memoryview(bytes(build_batch(some_records(1))) + b"\0"))


@pytest.mark.parametrize("magic", [-1, 0, 1, 3, 127])
def test_only_magic_two_is_a_batch(magic: int) -> None:
    batch = build_batch(some_records(1))
    batch[16] = magic & 0xFF
    with pytest.raises(CorruptRecord, match=f"magic {magic}"):
        check_batch(memoryview(batch))
    with pytest.raises(CorruptRecord, match=f"magic {magic}"):
        read_records(batch)


@pytest.mark.parametrize("change", [{"record_count": -1}, {"last_offset_delta": -1}])
def test_negative_counts_are_corrupt_even_with_a_true_checksum(change: dict[str, int]) -> None:
    batch = build_batch(some_records(1))
    sealed = seal(read_header(batch)._replace(**change), batch[HEADER_BYTES:])
    with pytest.raises(CorruptRecord):
        check_batch(memoryview(sealed))


@pytest.mark.parametrize("length", [-(1 << 31), -13, -12, 0, 48, (1 << 31) - 1])
def test_a_length_that_cannot_be_is_corrupt(length: int) -> None:
    batch = build_batch(some_records(1))
    batch[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptRecord):
        split_batches(memoryview(batch))
    with pytest.raises(CorruptRecord):
        read_records(batch)


@pytest.mark.parametrize("said", [0, 1, 3, 0x7FFFFFFF])
def test_a_wrong_record_count_is_noticed_by_whoever_reads_records(said: int) -> None:
    batch = build_batch(some_records(2))
    sealed = seal(read_header(batch)._replace(record_count=said), batch[HEADER_BYTES:])
    check_batch(memoryview(sealed))
    with pytest.raises(CorruptRecord):
        list(read_records(sealed))


@pytest.mark.parametrize("number", [5, 6, 7])
def test_a_codec_nobody_knows_is_refused(number: int) -> None:
    batch = build_batch(some_records(1))
    header = read_header(batch)._replace(attributes=number)
    with pytest.raises(UnsupportedCompressionType):
        _ = header.codec
    with pytest.raises(CorruptRecord):
        read_records(seal(header, batch[HEADER_BYTES:]))


@pytest.mark.parametrize("codec", Codec)
def test_damaged_batches_raise_nothing_but_protocol_errors(codec: Codec) -> None:
    batch = bytes(build_batch(some_records(6), codec=codec))
    for damaged in mutations(batch, count=600, seed=codec):
        for read in (lambda b: split_batches(memoryview(b)), lambda b: list(read_records(b))):
            try:
                read(damaged)
            except ProtocolError:
                continue


@pytest.mark.parametrize("codec", Codec)
def test_damaged_payloads_under_a_true_checksum_raise_only_corrupt_record(codec: Codec) -> None:
    batch = build_batch(some_records(6), codec=codec)
    header = read_header(batch)
    refused = 0
    for damaged in mutations(bytes(batch[HEADER_BYTES:]), count=600, seed=50 + codec):
        sealed = seal(header, damaged)
        check_batch(memoryview(sealed))
        try:
            list(read_records(sealed, bytes_max=MIB))
        except CorruptRecord:
            refused += 1
    assert refused > 100


def test_header_fields_have_their_places_on_the_wire() -> None:
    header = BatchHeader(*range(1, 14))
    sealed = seal(header, b"xyz")
    assert sealed[:8] == (1).to_bytes(8, "big")
    assert sealed[8:12] == (HEADER_BYTES - LOG_OVERHEAD + 3).to_bytes(4, "big")
    assert sealed[12:17] == bytes((0, 0, 0, 3, 2))
    assert sealed[21:23] == bytes((0, 6))
    assert sealed[57:] == bytes((0, 0, 0, 13)) + b"xyz"
