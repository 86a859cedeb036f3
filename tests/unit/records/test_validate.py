from collections.abc import Sequence

import pytest
from tests.unit.records.samples import MIB, some_records

from penstock.errors import ErrorCode, InvalidRecord
from penstock.records.batch import HEADER_BYTES, Record, build_batch, read_header, seal
from penstock.records.compression import Codec
from penstock.records.validate import (
    RecordRules,
    RecordsRejected,
    TimestampsRejected,
    check_records,
)

NOW_MS = 1_000_000
BOUNDS_MS = (NOW_MS - 100, NOW_MS + 10)
ANYTHING = RecordRules("t", 3, needs_key=False, bounds_ms=None)
KEYED = ANYTHING._replace(needs_key=True)
TIMED = ANYTHING._replace(bounds_ms=BOUNDS_MS)
BOTH = KEYED._replace(bounds_ms=BOUNDS_MS)
KEYLESS = "Compacted topic cannot accept message without key in topic partition t-3"


def record(offset: int, *, timestamp: int = NOW_MS, key: bytes | None = b"k") -> Record:
    return Record(offset, timestamp, key, b"v")


def out_of_range(index: int, timestamp: int) -> str:
    return (
        f"Timestamp {timestamp} of message with offset {index} is out of range. "
        f"The timestamp should be within [{NOW_MS - 100}, {NOW_MS + 10}]"
    )


def check(records: Sequence[Record], rules: RecordRules, codec: Codec = Codec.NONE) -> None:
    check_records(build_batch(records, codec=codec), rules)


@pytest.mark.parametrize("codec", Codec)
def test_compacted_topics_need_a_key_in_each_record(codec: Codec) -> None:
    check([record(0), record(1, key=b"")], KEYED, codec)
    keyless = [record(0), record(1, key=None), record(2), record(3, key=None)]
    with pytest.raises(RecordsRejected) as caught:
        check(keyless, KEYED, codec)
    assert caught.value.errors == [(1, KEYLESS), (3, KEYLESS)]
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert str(caught.value) == (
        "One or more records have been rejected due to 2 record errors in total, and only showing "
        f"the first three errors at most: [RecordError(batchIndex=1, message='{KEYLESS}'), "
        f"RecordError(batchIndex=3, message='{KEYLESS}')]"
    )


@pytest.mark.parametrize("timestamp", [NOW_MS, NOW_MS - 100, NOW_MS + 10, -1])
def test_timestamps_within_their_bounds_are_taken(timestamp: int) -> None:
    check([record(0), record(1, timestamp=timestamp)], TIMED)


@pytest.mark.parametrize("timestamp", [NOW_MS - 101, NOW_MS + 11, 0, -2])
def test_timestamps_outside_their_bounds_are_refused(timestamp: int) -> None:
    with pytest.raises(TimestampsRejected, match=r"due to invalid timestamp$") as caught:
        check([record(0), record(1, timestamp=timestamp)], TIMED)
    assert caught.value.errors == [(1, out_of_range(1, timestamp))]
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP


def test_each_bad_record_is_told_its_first_fault_and_a_bad_timestamp_names_the_whole() -> None:
    bad = [record(0, key=None), record(1, timestamp=5), record(2, key=None, timestamp=5)]
    with pytest.raises(TimestampsRejected) as caught:
        check(bad, BOTH)
    assert caught.value.errors == [(0, KEYLESS), (1, out_of_range(1, 5)), (2, KEYLESS)]
    with pytest.raises(RecordsRejected) as keyless:
        check([bad[2]._replace(offset=0)], BOTH)
    assert keyless.value.errors == [(0, KEYLESS)]


@pytest.mark.parametrize("count", [9999, 10_000, 10_001])
def test_a_batch_of_nothing_but_bad_records_gets_an_answer_of_bounded_size(count: int) -> None:
    bad = [record(i, key=None, timestamp=5) for i in range(count)]
    with pytest.raises(RecordsRejected, match=f"due to {count} record errors") as keyless:
        check(bad, KEYED)
    with pytest.raises(TimestampsRejected) as mistimed:
        check(bad, TIMED)
    for caught in (keyless.value, mistimed.value):
        assert len(caught.errors) == min(count, 10_000)
        assert len(str(caught)) < 500


@pytest.mark.parametrize("codec", Codec)
def test_what_a_producer_sends_is_what_its_header_says(codec: Codec) -> None:
    check(some_records(50), ANYTHING, codec)


@pytest.mark.parametrize("count", [1, 3])
def test_a_count_that_is_not_true_is_told_as_something_that_sending_again_does_not_mend(
    count: int,
) -> None:
    batch = build_batch([record(0), record(1)])
    header = read_header(batch)._replace(record_count=count, last_offset_delta=2)
    with pytest.raises(InvalidRecord):
        check_records(seal(header, batch[HEADER_BYTES:]), ANYTHING)


def test_offsets_inside_a_produced_batch_follow_each_other() -> None:
    with pytest.raises(InvalidRecord, match="offset delta 2"):
        check([record(0), record(2)], ANYTHING)


def test_nothing_is_unpacked_beyond_the_bound() -> None:
    batch = build_batch(some_records(1, value=bytes(MIB)), codec=Codec.GZIP)
    with pytest.raises(InvalidRecord):
        check_records(batch, ANYTHING, bytes_max=MIB)
