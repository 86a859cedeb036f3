"""One log: reading by offset, finding by time and by leader epoch."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.storage.made import (
    MEMORY,
    append,
    batch,
    fill,
    new_log,
    read_batches,
    reopened,
)

from penstock.errors import (
    OffsetOutOfRange,
)
from penstock.records.batch import check_batch, read_records
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log
from penstock.storage.log.time_search import TimeSearch
from penstock.storage.segments.file_slice import FileSlice
from penstock.storage.segments.segment import Segment

# Reading


def sizes(log: Log) -> list[int]:
    return [len(view) for _, view in read_batches(log)]


def read_size(log: Log, offset: int, bytes_max: int, *, min_one: bool = True) -> int:
    result = log.read(offset, bytes_max=bytes_max, end_offset=log.high_watermark, min_one=min_one)
    return len(result.records)


def test_a_read_gives_whole_batches_up_to_its_size(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig())
    fill(log, 5)
    one = sizes(log)[0]
    assert read_size(log, 0, 3 * one) == 3 * one
    assert read_size(log, 0, 3 * one - 1) == 2 * one
    assert read_size(log, 2, 1 << 20) == 3 * one


def test_a_first_batch_too_large_comes_only_when_one_is_wanted(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig())
    fill(log, 3)
    one = sizes(log)[0]
    assert read_size(log, 1, 10) == one
    assert read_size(log, 1, 0) == one
    assert read_size(log, 1, 10, min_one=False) == 0


def test_an_offset_inside_a_batch_gives_that_batch(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig())
    append(log, batch([b"a", b"b", b"c"]))
    append(log, batch([b"d"]))
    result = log.read(1, bytes_max=1, end_offset=4, min_one=True)
    assert isinstance(result.records, FileSlice)
    assert read_batches(log, 1)[0][0].base_offset == 0
    assert result.next_offset == 3


@settings(max_examples=40, deadline=None)
@given(counts=st.lists(st.integers(1, 4), min_size=1, max_size=12), data=st.data())
def test_nothing_at_or_above_the_end_offset_is_read(counts: list[int], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as root:
        log = new_log(Path(root), LogConfig(segment_bytes=400, index_interval_bytes=100))
        for count in counts:
            append(log, batch([b"value"] * count))
        end = data.draw(st.integers(0, log.log_end_offset))
        start = data.draw(st.integers(0, log.log_end_offset))
        found = log.read(start, bytes_max=1 << 20, end_offset=end, min_one=True)
        whole = [h for h, _ in read_batches(log) if h.last_offset < end and h.last_offset >= start]
        assert bool(found.records) == bool(whole)
        if whole:
            assert isinstance(found.records, FileSlice)
            assert found.next_offset <= end
            assert check_batch(memoryview(found.records.read())).base_offset == whole[0].base_offset


def test_offsets_outside_the_log_are_refused(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 5)
    log.delete_records_before(2)
    for offset in (-1, 1, 6):
        with pytest.raises(OffsetOutOfRange):
            read_size(log, offset, 100)
    assert read_size(log, 5, 100) == 0


def test_a_slice_outlives_the_deletion_of_its_segment(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 20)
    result = log.read(0, bytes_max=1 << 20, end_offset=20, min_one=True)
    assert isinstance(result.records, FileSlice)
    data = result.records.read()
    log.truncate_fully_and_start_at(0)
    log.delete_expired_files(1 << 60)
    assert result.records.read() == data
    assert len(result.records) == len(data)
    assert os.pread(result.records.fileno(), 8, result.records.position) == data[:8]


def test_a_reader_that_goes_on_needs_no_search(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log(log_dir, LogConfig())
    fill(log, 50)
    first = log.read(0, bytes_max=500, end_offset=50, min_one=True)
    monkeypatch.setattr(Segment, "_search", None)
    second = log.read(first.next_offset, bytes_max=1 << 20, end_offset=50, min_one=True)
    assert second.next_offset == 50
    fill(log, 1)
    assert log.read(50, bytes_max=1 << 20, end_offset=51, min_one=True).next_offset == 51


# Finding by time


def brute_force(log: Log, timestamp: int) -> tuple[int, int] | None:
    for _, view in read_batches(log):
        for record in read_records(view):
            if record.offset >= log.log_start_offset and record.timestamp >= timestamp:
                return record.timestamp, record.offset
    return None


@settings(max_examples=60, deadline=None)
@given(
    times=st.lists(st.lists(st.integers(-1, 50), min_size=1, max_size=4), min_size=1, max_size=15),
    start=st.integers(0, 10),
    is_reopened=st.booleans(),
)
def test_records_are_found_by_time_as_if_all_were_looked_at(
    times: list[list[int]], start: int, is_reopened: bool
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as root:
        log = new_log(Path(root), LogConfig(segment_bytes=300, index_interval_bytes=0))
        for stamps in times:
            append(log, batch([b"v"] * len(stamps), timestamps=stamps))
        log.delete_records_before(min(start, log.log_end_offset))
        if is_reopened:
            log = reopened(log, clean=True)
        for timestamp in range(52):
            found = TimeSearch(log).first(timestamp)
            assert (found and found[:2]) == brute_force(log, timestamp)
        records = [r for _, view in read_batches(log) for r in read_records(view)]
        kept = [r for r in records if r.offset >= log.log_start_offset]
        largest = max((r.timestamp for r in kept), default=-1)
        newest = TimeSearch(log).newest()
        if largest >= 0:
            assert newest is not None
            assert newest[:2] == brute_force(log, largest)
            assert newest.leader_epoch == 0
        else:
            assert newest is None


# Leader epochs


def test_epochs_are_told_as_replicas_ask_for_them(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 5)
    append(log, batch(), leader_epoch=3)
    fill_epoch_seven = [append(log, batch(), leader_epoch=7) for _ in range(4)]
    assert fill_epoch_seven[-1].last_offset == 9
    assert log.epoch_end_offset(0) == (0, 5)
    assert log.epoch_end_offset(2) == (0, 5)
    assert log.epoch_end_offset(3) == (3, 6)
    assert log.epoch_end_offset(7) == (7, 10)
    assert log.epoch_end_offset(8) == (-1, -1)
    assert [log.epoch_of(offset) for offset in (0, 4, 5, 6, 9)] == [0, 0, 3, 7, 7]
    assert (log.earliest_epoch, log.latest_epoch) == (0, 7)
    assert [log.epoch_start_offset(epoch) for epoch in (0, 3, 7, 9)] == [0, 5, 6, 10]


def test_the_epochs_file_is_kafkas(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 2)
    append(log, batch(), leader_epoch=4)
    log.flush()  # Until then the batches alone say it.
    assert (log.dir / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n4 2\n"


def test_truncation_cuts_the_epochs_too(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 2)
    append(log, batch(), leader_epoch=4)
    log.truncate_to(2)
    assert list(log.epochs) == [(0, 0)]
    log.assign_epoch_start(6, 2)
    log.truncate_to(2)
    assert list(log.epochs) == [(0, 0)]
