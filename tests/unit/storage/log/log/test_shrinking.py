"""One log: flushing, truncating, retention, deleting records."""

import os
from pathlib import Path
from threading import Event, Thread

import pytest
from tests.unit.storage.made import (
    append,
    batch,
    fill,
    new_log,
    read_values,
    reopened,
)

from penstock.errors import (
    KafkaStorage,
    OffsetOutOfRange,
)
from penstock.storage.log.config import LogConfig

DAY_MS = 86_400_000


# Truncating


def test_truncation_lowers_every_mark(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 30)
    log.flush()
    log.truncate_to(7)
    marks = (log.log_end_offset, log.high_watermark, log.recovery_point)
    assert marks == (7, 7, 7)
    assert [offset for offset, _ in read_values(log)] == list(range(7))
    assert append(log, batch()).base_offset == 7


def test_a_cut_before_the_first_segment_begins_the_log_anew(log_dir: Path) -> None:
    log = new_log(log_dir)
    log.truncate_fully_and_start_at(100)
    fill(log, 3)
    log.truncate_to(40)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (40, 40, 40)
    assert append(log, batch()).base_offset == 40


# Flushing


def test_a_flush_moves_the_recovery_point(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 30)
    assert log.has_unflushed_segments
    log.flush(closed_only=True)
    assert log.recovery_point == log.segments[-1].base_offset
    assert not log.has_unflushed_segments
    log.flush()
    assert log.recovery_point == 30


def test_flush_messages_flushes_within_the_append(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(flush_messages=3))
    fill(log, 2)
    assert log.recovery_point == 0
    fill(log, 1)
    assert log.recovery_point == 3


def test_flush_ms_counts_from_the_oldest_record_that_waits(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(flush_ms=100))
    assert not log.is_flush_due(10_000)
    append(log, batch(), now_ms=1000)
    append(log, batch(), now_ms=1090)
    assert not log.is_flush_due(1099)
    assert log.is_flush_due(1100)
    log.flush()
    assert not log.is_flush_due(9999)


def test_a_failed_fsync_takes_the_log_offline_for_good(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log(log_dir)
    fill(log, 3)

    def broken(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", broken)
        with pytest.raises(KafkaStorage):
            log.flush()
    for attempt in (log.flush, log.health, lambda: fill(log, 1)):
        with pytest.raises(KafkaStorage):
            attempt()
    assert log.recovery_point == 0
    assert len(read_values(log)) == 3


# Deleting


def test_retention_by_time_removes_whole_old_segments(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(segment_bytes=200, retention_ms=DAY_MS))
    for day in range(6):
        append(log, batch([b"x" * 100], timestamps=day * DAY_MS), now_ms=day * DAY_MS)
    removed = log.retain(now_ms=5 * DAY_MS)
    assert [segment.base_offset for segment in removed] == [0, 1, 2, 3]
    assert log.log_start_offset == 4
    assert log.retain(now_ms=5 * DAY_MS) == []


def test_an_expired_active_segment_is_rolled_and_removed(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(retention_ms=DAY_MS))
    fill(log, 3)
    log.retain(now_ms=3 * DAY_MS)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (3, 3, 0)
    assert log.retain(now_ms=3 * DAY_MS) == []
    assert append(log, batch()).base_offset == 3


def test_retention_by_size_keeps_at_least_that_much(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(segment_bytes=200, retention_bytes=500, retention_ms=-1))
    for _ in range(10):
        append(log, batch([b"x" * 100]))
    log.retain(now_ms=0)
    assert 500 <= log.size_bytes < 700


def test_nothing_above_the_high_watermark_is_removed(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(segment_bytes=200, retention_ms=1))
    for _ in range(6):
        append(log, batch([b"x" * 100]))
    log.high_watermark = 3
    log.retain(now_ms=DAY_MS)
    assert log.log_start_offset == 3


def test_deleted_files_are_renamed_and_go_after_the_delay(log_dir: Path) -> None:
    log = new_log(
        log_dir, LogConfig(segment_bytes=200, retention_ms=1, file_delete_delay_ms=60_000)
    )
    for _ in range(3):
        append(log, batch([b"x" * 100]))
    log.retain(now_ms=DAY_MS)
    names = {path.name for path in log.dir.iterdir()}
    assert f"{0:020d}.log" not in names
    assert {f"{0:020d}.log.deleted", f"{0:020d}.index.deleted"} <= names
    assert f"{1:020d}.snapshot.deleted" in names
    assert log.delete_expired_files(DAY_MS + 59_999) == 0
    assert log.delete_expired_files(DAY_MS + 60_000) > 0
    assert not list(log.dir.glob("*.deleted"))


def test_deleted_records_are_gone_at_once_and_their_files_with_retention(log_dir: Path) -> None:
    log = new_log(
        log_dir, LogConfig(segment_bytes=300, retention_ms=-1, cleanup_policy=frozenset())
    )
    fill(log, 10)
    log.delete_records_before(7)
    assert log.log_start_offset == 7
    assert read_values(log)[0][0] == 7
    assert list(log.epochs) == [(0, 7)]
    log.retain(now_ms=0)
    assert log.segments[0].base_offset <= 7
    assert log.segments[1].base_offset > 7


def test_records_can_be_deleted_only_up_to_the_high_watermark(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 5)
    log.high_watermark = 3
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRange):
            log.delete_records_before(offset)
    log.delete_records_before(3)
    log.delete_records_before(1)
    assert log.log_start_offset == 3


def test_a_flush_that_a_truncation_overtakes_moves_nothing(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The offsets it flushed belong to other records by then."""
    log = new_log(log_dir)
    fill(log, 5)
    real = os.fsync
    cuts = [2]

    def cutting(fd: int) -> None:
        real(fd)
        while cuts:
            log.truncate_to(cuts.pop())
            fill(log, 9)

    monkeypatch.setattr(os, "fsync", cutting)
    log.flush()
    assert (log.log_end_offset, log.recovery_point) == (11, 0)


def test_chores_in_other_threads_take_turns_with_appends_and_reads(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(segment_bytes=2000, index_interval_bytes=0, retention_ms=-1))
    stopping = Event()
    failures: list[Exception] = []

    def chores() -> None:
        try:
            while not stopping.is_set():
                log.flush(closed_only=True)
                log.flush()
                log.delete_records_before(max(log.high_watermark - 50, 0))
                log.retain(now_ms=0)
                log.delete_expired_files(1 << 60)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [Thread(target=chores) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(400):
        append(log, batch([b"value %d" % number]))
        found = log.read(number, bytes_max=1000, end_offset=number + 1, min_one=True)
        assert len(found.records) > 0
    stopping.set()
    for thread in threads:
        thread.join()
    assert failures == []
    log.flush()
    start = log.log_start_offset
    assert [offset for offset, _ in read_values(log)] == list(range(start, 400))
    assert log.recovery_point == 400
    assert read_values(reopened(log)) == read_values(log)
