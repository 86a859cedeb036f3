import pytest
from tests.unit.records.samples import MIB, some_records

from penstock.errors import CorruptRecord, ErrorCode, InvalidRecord
from penstock.records.batch import HEADER_BYTES, Record, build_batch, read_header, seal
from penstock.records.compression import Codec
from penstock.records.validate import (
    RecordsRejected,
    TimestampsRejected,
    check_keys,
    check_records,
    check_timestamps,
)

NOW_MS = 1_000_000


def record(offset: int, *, timestamp: int = NOW_MS, key: bytes | None = b"k") -> Record:
    return Record(offset, timestamp, key, b"v")


def check_times(*records: Record) -> None:
    check_timestamps(build_batch(records), now_ms=NOW_MS, before_max_ms=100, after_max_ms=10)


@pytest.mark.parametrize("codec", Codec)
def test_compacted_topics_need_a_key_in_each_record(codec: Codec) -> None:
    check_keys(build_batch([record(0), record(1, key=b"")], codec=codec))
    keyless = [record(0), record(1, key=None), record(2), record(3, key=None)]
    with pytest.raises(RecordsRejected, match="2 records") as caught:
        check_keys(build_batch(keyless, codec=codec))
    assert [error.batch_index for error in caught.value.errors] == [1, 3]
    assert caught.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("timestamp", [NOW_MS, NOW_MS - 100, NOW_MS + 10, -1])
def test_timestamps_within_their_bounds_are_taken(timestamp: int) -> None:
    check_times(record(0), record(1, timestamp=timestamp))


@pytest.mark.parametrize("timestamp", [NOW_MS - 101, NOW_MS + 11, 0, -2])
def test_timestamps_outside_their_bounds_are_refused(timestamp: int) -> None:
    with pytest.raises(TimestampsRejected, match=f"timestamp {timestamp} ") as caught:
        check_times(record(0), record(1, timestamp=timestamp))
    assert [error.batch_index for error in caught.value.errors] == [1]
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("count", [99, 100, 5000])
def test_a_batch_of_nothing_but_bad_records_gets_a_short_answer(count: int) -> None:
    bad = [record(i, key=None, timestamp=5) for i in range(count)]
    with pytest.raises(RecordsRejected) as keyless:
        check_keys(build_batch(bad))
    with pytest.raises(TimestampsRejected) as mistimed:
        check_times(*bad)
    for caught in (keyless.value, mistimed.value):
        assert len(caught.errors) == min(count, 100)
        assert str(caught).startswith("99 records" if count == 99 else "100 or more")
        assert len(str(caught)) < 300


@pytest.mark.parametrize("codec", Codec)
def test_what_a_producer_sends_is_what_its_header_says(codec: Codec) -> None:
    check_records(build_batch(some_records(50), codec=codec))


@pytest.mark.parametrize("count", [1, 3])
def test_a_count_that_is_not_true_is_noticed(count: int) -> None:
    batch = build_batch([record(0), record(1)])
    header = read_header(batch)._replace(record_count=count, last_offset_delta=2)
    lying = seal(header, batch[HEADER_BYTES:])
    for check in (check_records, check_keys):
        with pytest.raises(CorruptRecord):
            check(lying)


def test_offsets_inside_a_produced_batch_follow_each_other() -> None:
    with pytest.raises(InvalidRecord, match="offset delta 2"):
        check_records(build_batch([record(0), record(2)]))


def test_nothing_is_unpacked_beyond_the_bound() -> None:
    batch = build_batch(some_records(1, value=bytes(MIB)), codec=Codec.GZIP)
    for check in (check_records, check_keys):
        with pytest.raises(CorruptRecord):
            check(batch, bytes_max=MIB)
