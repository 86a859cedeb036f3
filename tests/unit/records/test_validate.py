import pytest

from penstock.errors import CorruptRecord, ErrorCode, InvalidRecord
from penstock.records.batch import HEADER_BYTES, Record, build_batch, read_header, seal
from penstock.records.compression import Codec
from penstock.records.validate import (
    RecordRules,
    RecordsRejected,
    TimestampsRejected,
    validate_batch,
    validate_records,
)

NOW_MS = 1_000_000


def check(rules: RecordRules, *records: Record, codec: Codec = Codec.NONE) -> None:
    batch = build_batch(records, codec=codec)
    validate_batch(read_header(batch), batch, rules, now_ms=NOW_MS)


def record(offset: int, *, timestamp: int = NOW_MS, key: bytes | None = b"k") -> Record:
    return Record(offset, timestamp, key, b"v")


def test_without_rules_nothing_is_even_decoded() -> None:
    batch = build_batch([record(0, key=None)])
    rubbish = seal(read_header(batch), b"not records")
    validate_batch(read_header(rubbish), rubbish, RecordRules(), now_ms=NOW_MS)
    with pytest.raises(CorruptRecord):
        validate_records(rubbish, RecordRules(), now_ms=NOW_MS)


@pytest.mark.parametrize("codec", Codec)
def test_compacted_topics_need_a_key_in_each_record(codec: Codec) -> None:
    rules = RecordRules(needs_keys=True)
    check(rules, record(0), record(1, key=b""), codec=codec)
    with pytest.raises(RecordsRejected) as caught:
        check(rules, record(0), record(1, key=None), record(2), record(3, key=None), codec=codec)
    assert [error.batch_index for error in caught.value.errors] == [1, 3]
    assert caught.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("timestamp", "is_allowed"),
    [
        (NOW_MS, True),
        (NOW_MS - 100, True),
        (NOW_MS - 101, False),
        (NOW_MS + 10, True),
        (NOW_MS + 11, False),
        (-1, True),
    ],
)
def test_timestamps_stay_within_their_bounds(timestamp: int, is_allowed: bool) -> None:
    rules = RecordRules(timestamp_before_max_ms=100, timestamp_after_max_ms=10)
    records = (record(0), record(1, timestamp=timestamp))
    if is_allowed:
        check(rules, *records)
        return
    with pytest.raises(TimestampsRejected) as caught:
        check(rules, *records)
    assert [error.batch_index for error in caught.value.errors] == [1]
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP


def test_a_bound_on_the_future_alone_is_seen_in_the_header() -> None:
    rules = RecordRules(timestamp_after_max_ms=10)
    fine = read_header(build_batch([record(0, timestamp=5), record(1)]))
    late = read_header(build_batch([record(0), record(1, timestamp=NOW_MS + 11)]))
    assert not rules.needs_records(fine, NOW_MS)
    assert rules.needs_records(late, NOW_MS)


def test_timestamps_that_the_broker_replaces_have_no_bounds() -> None:
    rules = RecordRules(is_append_time=True, timestamp_before_max_ms=1, timestamp_after_max_ms=1)
    check(rules, record(0, timestamp=5), record(1, timestamp=NOW_MS * 2))
    assert not rules.needs_records(read_header(build_batch([record(0, timestamp=5)])), NOW_MS)


def test_bad_timestamps_decide_the_error_and_all_bad_records_are_named() -> None:
    rules = RecordRules(needs_keys=True, timestamp_before_max_ms=100)
    with pytest.raises(TimestampsRejected) as caught:
        check(rules, record(0, key=None), record(1, timestamp=3), record(2))
    assert [error.batch_index for error in caught.value.errors] == [0, 1]


def test_a_batch_of_nothing_but_bad_records_gets_a_short_answer() -> None:
    with pytest.raises(RecordsRejected) as caught:
        check(RecordRules(needs_keys=True), *(record(i, key=None) for i in range(5000)))
    assert len(caught.value.errors) == 100
    assert len(str(caught.value)) < 300


def test_a_count_that_is_not_true_is_noticed() -> None:
    batch = build_batch([record(0), record(1)])
    header = read_header(batch)._replace(record_count=3, last_offset_delta=2)
    lying = seal(header, batch[HEADER_BYTES:])
    with pytest.raises(CorruptRecord):
        validate_batch(header, lying, RecordRules(needs_keys=True), now_ms=NOW_MS)


def test_offsets_inside_a_produced_batch_follow_each_other() -> None:
    with pytest.raises(InvalidRecord, match="offset delta 2"):
        check(RecordRules(needs_keys=True), record(0), record(2))
