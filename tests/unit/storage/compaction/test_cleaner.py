"""What compaction keeps and what it takes, one sentence a test."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.storage.compacted import (
    COMPACT,
    LIMITS,
    begin,
    clean_all,
    clean_once,
    headers_of,
    job_of,
    keyed,
    read_committed,
    read_keyed,
)
from tests.unit.storage.made import append, marker, new_log, read_batches, reopened

from penstock.errors import CorruptRecord
from penstock.records.batch import build_batch, read_header, read_records
from penstock.records.compression import Codec
from penstock.records.legacy import convert_up
from penstock.records.message_set import write_message_set
from penstock.records.record import Record
from penstock.storage.compaction.output import CleanedSegment
from penstock.storage.compaction.rewrite import clean
from penstock.storage.compaction.worker import Stopped
from penstock.storage.log.log import Log
from penstock.storage.log.time_search import TimeSearch
from penstock.storage.segments.batch_scan import read_headers

RETENTION_MS = COMPACT.delete_retention_ms


def a_log(root: Path, **settings: object) -> Log:
    return new_log(root, replace(COMPACT, **settings))  # type: ignore[arg-type]


def closed(log: Log) -> Log:
    """Nothing that was written so far is in the active segment."""
    log.roll(0)
    return log


# The worked example: a head with every record, a tail with the last of each key

EXAMPLE = {
    13: "K1",
    17: "K5",
    19: "K2",
    20: "K7",
    21: "K8",
    22: "K4",
    23: "K1",
    24: "K1",
    25: "K1",
    26: "K9",
    27: "K8",
    28: "K2",
}
SURVIVORS = {17: "K5", 20: "K7", 22: "K4", 25: "K1", 26: "K9", 27: "K8", 28: "K2"}


@pytest.mark.parametrize("records_per_batch", [1, 3, 12])
def test_of_offsets_13_to_28_the_last_of_every_key_survives(
    log_dir: Path, records_per_batch: int
) -> None:
    log = a_log(log_dir)
    log.truncate_fully_and_start_at(13)
    records = [Record(at, 1_000, key.encode(), b"at %d" % at) for at, key in EXAMPLE.items()]
    for number in range(0, len(records), records_per_batch):
        some = records[number : number + records_per_batch]
        batch = memoryview(build_batch(some, base_offset=some[0].offset))
        log.append_as_follower([(read_header(batch), batch)], now_ms=0)
    log.high_watermark = log.log_end_offset
    clean_all(closed(log))
    assert {at: (key or b"").decode() for at, key, _ in read_keyed(log)} == SURVIVORS
    assert [value for _, _, value in read_keyed(log)] == [b"at %d" % at for at in SURVIVORS]


def test_a_missing_offset_gives_the_next_one_that_is_left(log_dir: Path) -> None:
    log = a_log(log_dir)
    for number in range(6):
        append(log, keyed([(b"k", b"%d" % number)]))
    clean_all(closed(log))
    assert [read_keyed(log, offset)[0][0] for offset in range(6)] == [5] * 6


def test_records_without_a_key_go(log_dir: Path) -> None:
    log = a_log(log_dir)
    append(log, keyed([(None, b"lost"), (b"k", b"kept")]))
    clean_all(closed(log))
    assert read_keyed(log) == [(1, b"k", b"kept")]


# Tombstones


def test_a_tombstone_deletes_at_once_and_stays_for_the_retention(log_dir: Path) -> None:
    log = a_log(log_dir)
    append(log, keyed([(b"a", b"old"), (b"b", b"1")]))
    append(log, keyed([(b"a", None)]))
    clean_all(closed(log), now_ms=5_000)
    assert read_keyed(log) == [(1, b"b", b"1"), (2, b"a", None)]
    assert headers_of(log)[-1].delete_horizon_ms == 5_000 + RETENTION_MS

    for number, now_ms in enumerate((5_000, 5_000 + RETENTION_MS - 1, 5_000 + RETENTION_MS)):
        append(log, keyed([(b"other%d" % number, b"x")]))
        clean_all(closed(log), now_ms=now_ms)
        is_there = (2, b"a", None) in read_keyed(log)
        assert is_there == (now_ms < 5_000 + RETENTION_MS)
    assert read_keyed(log)[0] == (1, b"b", b"1")


def test_the_horizon_changes_no_timestamp(log_dir: Path) -> None:
    log = a_log(log_dir)
    append(log, keyed([(b"a", None), (b"b", b"1"), (b"c", None)], timestamp=777))
    before = [list(read_records(data)) for _, data in read_batches(log)]
    clean_all(closed(log), now_ms=10**12)
    after = [list(read_records(data)) for _, data in read_batches(log)]
    assert after == before
    assert headers_of(log)[0].max_timestamp == 779


def test_a_horizon_once_written_stands(log_dir: Path) -> None:
    log = a_log(log_dir)
    append(log, keyed([(b"a", None)]))
    clean_all(closed(log), now_ms=100)
    append(log, keyed([(b"b", b"1")]))
    clean_all(closed(log), now_ms=900)
    assert headers_of(log)[0].delete_horizon_ms == 100 + RETENTION_MS


# Transactions


def test_records_of_aborted_transactions_go_and_others_stay(log_dir: Path) -> None:
    log = a_log(log_dir)
    append(log, keyed([(b"a", b"before")]))
    append(log, keyed([(b"a", b"aborted")], producer=(7, 0, 0), is_transactional=True))
    append(log, keyed([(b"b", b"committed")], producer=(8, 0, 0), is_transactional=True))
    append(log, marker(7, 0, is_commit=False))
    append(log, marker(8, 0))
    append(log, keyed([(b"c", b"after")]))
    visible = read_committed(log)
    clean_all(closed(log))
    assert read_committed(log) == visible
    assert b"aborted" not in [value for _, _, value in read_keyed(log)]


def test_a_marker_stays_until_its_data_is_gone_and_the_horizon_has_passed(log_dir: Path) -> None:
    log = a_log(log_dir)
    append(log, keyed([(b"a", b"1"), (b"b", b"1")], producer=(8, 0, 0), is_transactional=True))
    append(log, marker(8, 0))
    append(log, keyed([(b"z", b"1")], producer=(8, 0, 2), is_transactional=True))
    append(log, marker(8, 0))

    def first_marker_horizon() -> int | str | None:
        markers = [h for h in headers_of(log) if h.is_control and h.base_offset == 2]
        return markers[0].delete_horizon_ms if markers else "gone"

    clean_all(closed(log), now_ms=0)
    assert first_marker_horizon() is None  # Its data is there.
    append(log, keyed([(b"a", b"2"), (b"b", b"2")]))
    clean_all(closed(log), now_ms=100)
    append(log, keyed([(b"c", b"3")]))
    clean_all(closed(log), now_ms=200)
    assert first_marker_horizon() == 200 + RETENTION_MS  # The first cleaning without its data.
    append(log, keyed([(b"c", b"4")]))
    clean_all(closed(log), now_ms=200 + RETENTION_MS - 1)
    assert first_marker_horizon() == 200 + RETENTION_MS
    append(log, keyed([(b"c", b"5")]))
    clean_all(closed(log), now_ms=200 + RETENTION_MS)
    assert first_marker_horizon() == "gone"


def test_an_abort_marker_outlives_the_index_entry_that_nobody_needs_any_more(log_dir: Path) -> None:
    log = a_log(log_dir)
    append(log, keyed([(b"a", b"1")], producer=(7, 0, 0), is_transactional=True))
    append(log, marker(7, 0, is_commit=False))
    append(log, keyed([(b"a", b"2")], producer=(7, 0, 1), is_transactional=True))
    append(log, marker(7, 0))
    clean_all(closed(log))
    append(log, keyed([(b"b", b"1")]))
    clean_all(closed(log))
    assert log.aborted_transactions(0, log.log_end_offset) == []
    assert 1 in [header.base_offset for header in headers_of(log) if header.is_control]
    assert read_committed(log) == [(2, b"2"), (4, b"1")]


def test_nothing_at_or_above_the_last_stable_offset_is_cleaned(log_dir: Path) -> None:
    """I26: the fate of an open transaction is not known, so neither is the last value."""
    log = a_log(log_dir)
    append(log, keyed([(b"a", b"1")]))
    append(log, keyed([(b"a", b"2")]))
    closed(log)
    append(log, keyed([(b"x", b"1")], producer=(7, 0, 0), is_transactional=True))
    append(log, keyed([(b"a", b"3")]))
    append(log, keyed([(b"a", b"4")]))
    clean_all(closed(log))
    assert [offset for offset, _, _ in read_keyed(log)] == [1, 2, 3, 4]
    append(log, marker(7, 0, is_commit=False))
    clean_all(closed(log))
    assert [offset for offset, key, _ in read_keyed(log) if key == b"a"] == [4]


def test_nothing_above_the_high_watermark_is_cleaned(log_dir: Path) -> None:
    log = a_log(log_dir)
    for number in range(4):
        append(log, keyed([(b"a", b"%d" % number)]))
        closed(log)
    log.high_watermark = 2
    clean_all(log)
    assert [offset for offset, _, _ in read_keyed(log)] == [1, 2, 3]
    assert log.cleaned_offset == 2


# Producers


def test_the_last_batch_of_a_living_producer_stays_empty(log_dir: Path) -> None:
    log = a_log(log_dir)
    append(log, keyed([(b"a", b"1")], producer=(5, 3, 0)))
    append(log, keyed([(b"a", b"2"), (b"b", b"2")], producer=(5, 3, 1)))
    append(log, keyed([(b"a", b"3"), (b"b", b"3")]))
    clean_all(closed(log))
    empty, last = headers_of(log)
    assert (empty.base_offset, empty.record_count, empty.last_sequence) == (1, 0, 2)
    assert (empty.producer_id, empty.producer_epoch) == (5, 3)
    assert (last.base_offset, last.record_count) == (3, 2)
    append(log, keyed([(b"c", b"4")], producer=(5, 3, 3)))
    clean_all(closed(log))
    assert [header.base_offset for header in headers_of(log)] == [3, 5]


def test_a_producer_that_goes_on_after_a_crash_is_not_out_of_order(log_dir: Path) -> None:
    log = a_log(log_dir)
    append(log, keyed([(b"a", b"1")], producer=(5, 0, 0)))
    append(log, keyed([(b"a", b"2")]))
    clean_all(closed(log))
    for path in log.dir.glob("*.snapshot"):
        path.unlink()
    again = reopened(log, clean=False, recovery_point=0)
    append(again, keyed([(b"b", b"3")], producer=(5, 0, 1)))
    assert again.producers()[0].last_sequence == 1


def test_the_end_of_what_is_cleaned_is_not_forgotten(log_dir: Path) -> None:
    log = a_log(log_dir)
    append(log, keyed([(b"a", b"1")]))
    append(log, keyed([(None, b"no key")]))
    clean_all(closed(log))
    assert [(h.base_offset, h.record_count) for h in headers_of(log)] == [(0, 1), (1, 0)]


# Batches


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_keeps_its_codec_its_epoch_and_its_end(log_dir: Path, codec: Codec) -> None:
    log = a_log(log_dir)
    batch = keyed([(b"a", b"1" * 50), (b"b", b"2" * 50), (b"c", b"3" * 50)], codec=codec)
    log.append_as_leader([batch], leader_epoch=4, now_ms=0)
    append(log, keyed([(b"c", b"4")]), leader_epoch=4)
    clean_all(closed(log))
    header = headers_of(log)[0]
    assert (header.codec, header.leader_epoch, header.record_count) == (codec, 4, 2)
    assert (header.base_offset, header.last_offset) == (0, 2)
    assert header.max_timestamp == 1_001  # That of the newest record which stayed.
    assert read_keyed(log) == [(0, b"a", b"1" * 50), (1, b"b", b"2" * 50), (3, b"c", b"4")]


def test_append_time_stays_the_time_of_all_records(log_dir: Path) -> None:
    log = a_log(log_dir, message_timestamp_type="LogAppendTime")
    append(log, keyed([(b"a", b"1"), (b"b", None), (b"c", b"1")]), now_ms=4_242)
    append(log, keyed([(b"a", b"2")]), now_ms=5_000)
    clean_all(closed(log), now_ms=6_000)
    first, data = read_batches(log)[0]
    assert first.is_log_append_time
    assert [record.timestamp for record in read_records(data)] == [4_242, 4_242]


def test_headers_of_records_survive(log_dir: Path) -> None:
    log = a_log(log_dir)
    headers = (("trace", b"x"), ("empty", None))
    records = [Record(0, 1, b"a", b"1"), Record(1, 1, b"b", b"1", headers)]
    view = memoryview(build_batch(records))
    append(log, (read_header(view), view))
    append(log, keyed([(b"a", b"2")]))
    clean_all(closed(log))
    assert next(iter(read_records(read_batches(log)[0][1]))).headers == headers


def test_messages_of_old_formats_are_compacted_too(log_dir: Path) -> None:
    """They may lie in a directory that an old Kafka wrote."""
    log = a_log(log_dir)
    plain = [Record(0, 5, b"a", b"old"), Record(1, 5, b"b", b"kept")]
    wrapped = [Record(2, 6, b"c", b"old"), Record(3, 6, b"d", b"kept"), Record(4, 6, b"e", b"too")]
    data = write_message_set(plain, magic=1) + write_message_set(wrapped, magic=1, codec=Codec.GZIP)
    log.segments[0].open_for_append().append([memoryview(data)], len(data))
    log = reopened(log, clean=False, recovery_point=0)
    append(log, keyed([(b"a", b"new"), (b"c", b"new")]))
    clean_all(closed(log))
    found = [r for h, d in read_batches_of_all_formats(log) for r in d]
    assert [(r.offset, r.key, r.value) for r in found] == [
        (1, b"b", b"kept"),
        (3, b"d", b"kept"),
        (4, b"e", b"too"),
        (5, b"a", b"new"),
        (6, b"c", b"new"),
    ]
    assert [r.timestamp for r in found[:3]] == [5, 6, 6]


def read_batches_of_all_formats(log: Log) -> list[tuple[int, list[Record]]]:
    found = []
    for segment in log.segments:
        data = segment.log_path.read_bytes()
        for position, header in read_headers(segment.file, 0, segment.size):
            entry = data[position : position + header.size_bytes]
            batch = entry if header.magic == 2 else convert_up(entry, keep_offsets=True)
            found.append((header.magic, list(read_records(batch))))
    return found


# Segments


def test_small_segments_become_one_and_a_full_one_is_left_alone(log_dir: Path) -> None:
    log = a_log(log_dir)
    append(log, keyed([(b"k%d" % number, b"v" * 80) for number in range(10)]))
    closed(log)
    for number in range(3):
        append(log, keyed([(b"s%d" % number, b"v")]))
        closed(log)
    inode = log.segments[0].log_path.stat().st_ino
    clean_all(log)
    assert [segment.base_offset for segment in log.segments] == [0, 10, 13]
    assert log.segments[0].log_path.stat().st_ino == inode
    assert len(read_keyed(log)) == 13


def test_only_so_many_segments_are_swapped_at_once(log_dir: Path) -> None:
    """Everybody who uses the log waits for that."""
    log = a_log(log_dir, segment_bytes=1 << 20)
    for number in range(250):
        append(log, keyed([(b"k%d" % (number % 7), b"v%d" % number)]))
        closed(log)
    cleaning = begin(log)
    assert cleaning is not None
    swapped = []

    def hand_over(old: list[int], new: list[int]) -> None:
        assert cleaning.swap(old, new, 0)
        swapped.append(len(old))

    clean(job_of(cleaning), spend=lambda _: None, hand_over=hand_over)
    assert swapped == [50] * 5
    assert [value for _, _, value in read_keyed(log)] == [b"v%d" % n for n in range(243, 250)]


def test_cleaned_segments_are_found_by_offset_and_by_time(log_dir: Path) -> None:
    log = a_log(log_dir, segment_bytes=100_000, index_interval_bytes=50)
    for number in range(60):
        batch = keyed([(b"k%d" % (number % 40), b"%d" % number)], timestamp=1_000 + number)
        append(log, batch)
    clean_all(closed(log))
    left = read_keyed(log)
    assert [offset for offset, _, _ in left] == list(range(20, 60))
    for offset in range(60):
        assert read_keyed(log, offset)[0][0] == max(offset, 20)
        found = TimeSearch(log).first(1_000 + offset)
        assert found is not None and found.offset == max(offset, 20)
    newest = TimeSearch(log).newest()
    assert newest is not None and newest.offset == 59


def test_a_cleaned_segment_is_as_old_as_the_last_it_was_made_from(log_dir: Path) -> None:
    log = a_log(log_dir)
    for number in range(2):
        append(log, keyed([(b"a", b"%d" % number)]))
        closed(log)
    for segment, age_s in zip(log.segments, (100, 200), strict=False):
        os.utime(segment.log_path, (age_s, age_s))
    clean_all(log)
    assert log.segments[0].modified_ms() == 200_000


def test_a_full_map_takes_several_rounds_and_comes_to_the_same(log_dir: Path) -> None:
    log = a_log(log_dir)
    for number in range(120):
        append(log, keyed([(b"k%d" % (number * 7 % 50), b"%d" % number)]))
    model = {key: (offset, key, value) for offset, key, value in read_keyed(log)}
    small = replace(LIMITS, map_bytes=1, load_factor=0.35)  # Eleven keys.
    assert clean_all(closed(log), limits=small) > 5
    assert read_keyed(log) == sorted(model.values())


def test_a_batch_with_more_keys_than_the_map_holds_is_cleaned_piece_by_piece(log_dir: Path) -> None:
    log = a_log(log_dir, segment_bytes=10_000)
    append(log, keyed([(b"k%d" % (number % 60), b"v") for number in range(100)]))
    clean_all(closed(log), limits=replace(LIMITS, map_bytes=1, load_factor=0.35))
    assert [offset for offset, _, _ in read_keyed(log)] == list(range(40, 100))


def test_offsets_far_apart_do_not_take_memory_for_what_lies_between(log_dir: Path) -> None:
    log = a_log(log_dir)
    for offset in (0, 1, 10**9, 10**9 + 1, 2 * 10**9):
        view = memoryview(build_batch([Record(offset, 0, b"k", b"v")], base_offset=offset))
        log.append_as_follower([(read_header(view), view)], now_ms=0)
    log.high_watermark = log.log_end_offset
    clean_all(closed(log))
    assert [offset for offset, _, _ in read_keyed(log)] == [2 * 10**9]


def test_a_broken_record_stops_the_cleaning_and_changes_nothing(log_dir: Path) -> None:
    log = a_log(log_dir)
    for number in range(30):
        append(log, keyed([(b"a", b"%d" % number)]))
    closed(log)
    path = log.segments[1].log_path
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    before = {path.name for path in log.dir.iterdir()}
    with pytest.raises(CorruptRecord, match="CRC"):
        clean_once(log)
    assert {path.name for path in log.dir.iterdir()} == before
    assert log.cleaned_offset is None


def test_a_failed_write_leaves_no_files_behind(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = a_log(log_dir)
    for number in range(30):
        append(log, keyed([(b"a", b"%d" % number)]))
    closed(log)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(CleanedSegment, "_write", full)
        with pytest.raises(OSError, match="No space"):
            clean_once(log)
    assert not list(log.dir.glob("*.cleaned"))
    clean_all(log)
    assert [offset for offset, _, _ in read_keyed(log)] == [29]


# Together with other chores


def test_compact_and_delete_together_do_both(log_dir: Path) -> None:
    policy = frozenset({"compact", "delete"})
    log = a_log(log_dir, cleanup_policy=policy, retention_ms=10_000)
    append(log, keyed([(b"a", b"1"), (b"b", b"1")], timestamp=1_000))
    append(log, keyed([(b"a", b"2")], timestamp=1_000))
    closed(log)
    append(log, keyed([(b"c", b"3")], timestamp=50_000))
    clean_all(closed(log), now_ms=5_000)
    assert read_keyed(log) == [(1, b"b", b"1"), (2, b"a", b"2"), (3, b"c", b"3")]
    assert [gone.base_offset for gone in log.retain(50_000)] == []  # One segment now, too young.
    append(log, keyed([(b"d", b"4")], timestamp=80_000))
    assert [gone.base_offset for gone in log.retain(80_000)] == [0]
    assert read_keyed(log) == [(4, b"d", b"4")]


def test_what_retention_took_meanwhile_does_not_come_back(log_dir: Path) -> None:
    log = a_log(log_dir, cleanup_policy=frozenset({"compact", "delete"}), retention_ms=10)
    fill_keys(log, 40)
    cleaning = begin(closed(log))
    assert cleaning is not None
    swaps: list[bool] = []

    def hand_over(old: list[int], new: list[int]) -> None:
        log.retain(10**9)
        swaps.append(cleaning.swap(old, new, 0))
        raise Stopped

    with pytest.raises(Stopped):
        clean(job_of(cleaning), spend=lambda _: None, hand_over=hand_over)
    assert swaps == [False]
    assert log.log_start_offset == log.log_end_offset
    assert read_keyed(log) == []
    assert not [p for p in log.dir.iterdir() if p.suffix in (".cleaned", ".swap")]


def test_truncation_voids_the_offset_that_was_cleaned(log_dir: Path) -> None:
    log = a_log(log_dir)
    fill_keys(log, 20)
    clean_all(closed(log))
    assert log.cleaned_offset == 20
    log.truncate_to(7)
    assert log.cleaned_offset == 7


def test_a_topic_that_is_not_compacted_any_more_is_left_alone(log_dir: Path) -> None:
    log = a_log(log_dir)
    fill_keys(log, 20)
    cleaning = begin(closed(log))
    assert cleaning is not None
    log.reconfigure(replace(log.config, cleanup_policy=frozenset({"delete"})))
    assert cleaning.swap([log.segments[0].base_offset], [], 0) is False
    assert begin(log) is None


def fill_keys(log: Log, count: int) -> None:
    for number in range(count):
        append(log, keyed([(b"k%d" % (number % 3), b"%d" % number)]))


def test_a_reader_holds_what_it_was_given(log_dir: Path) -> None:
    log = a_log(log_dir)
    fill_keys(log, 20)
    held = log.read(0, bytes_max=1 << 20, end_offset=20, min_one=True).records
    assert not isinstance(held, bytes)
    before = held.read()
    clean_all(closed(log))
    log.delete_expired_files(10**9)
    assert held.read() == before
