"""One log: appending, rolling, opening and closing."""

import os
from pathlib import Path

import pytest
from tests.unit.storage.made import (
    SMALL,
    Reports,
    append,
    batch,
    fill,
    new_log,
    read_batches,
    read_values,
    reopened,
)

from penstock.errors import (
    CorruptRecord,
    InconsistentTopicId,
    KafkaStorage,
    RecordBatchTooLarge,
    RecordTooLarge,
)
from penstock.records.batch import check_batch, read_records
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log

# Appending


def test_batches_get_consecutive_offsets_and_the_leader_epoch(log_dir: Path) -> None:
    log = new_log(log_dir)
    first = append(log, batch([b"a", b"b"]), leader_epoch=3)
    second = append(log, batch([b"c"]), batch([b"d", b"e"]), leader_epoch=3)
    assert (first.base_offset, first.last_offset, first.is_duplicate) == (0, 1, False)
    assert (second.base_offset, second.last_offset, second.log_append_ms) == (2, 4, None)
    assert [(h.base_offset, h.leader_epoch) for h, _ in read_batches(log)] == [
        (0, 3),
        (2, 3),
        (3, 3),
    ]


def test_the_file_is_the_batches_and_nothing_else(log_dir: Path) -> None:
    log = new_log(log_dir)
    sent = [batch([b"one"]), batch([b"two"])]
    append(log, *sent)
    path = log.dir / "00000000000000000000.log"
    assert path.read_bytes() == b"".join(bytes(view) for _, view in sent)


def test_append_time_replaces_the_producers_and_keeps_the_crc_true(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(message_timestamp_type="LogAppendTime"))
    appended = append(log, batch([b"a", b"b"], timestamps=5), now_ms=777)
    assert appended.log_append_ms == 777
    ((_, view),) = read_batches(log)
    assert check_batch(view).max_timestamp == 777
    assert [record.timestamp for record in read_records(view)] == [777, 777]


def test_a_batch_larger_than_allowed_is_refused(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(max_message_bytes=100))
    with pytest.raises(RecordTooLarge):
        append(log, batch([b"x" * 100]))
    assert log.log_end_offset == 0


def test_what_does_not_fit_a_segment_is_refused(log_dir: Path) -> None:
    log = new_log(log_dir)
    with pytest.raises(RecordBatchTooLarge):
        append(log, batch([b"x" * 990]))
    assert append(log, batch([b"x" * 900])).base_offset == 0


def test_a_follower_keeps_the_leaders_offsets_and_epochs(log_dir: Path) -> None:
    log = new_log(log_dir)
    log.append_as_follower(
        [
            batch([b"a"], base_offset=0, leader_epoch=0),
            batch([b"b"], base_offset=5, leader_epoch=2),
            batch([b"c"], base_offset=6, leader_epoch=4),
        ],
        now_ms=0,
    )
    assert read_values(log) == [(0, b"a"), (5, b"b"), (6, b"c")]
    assert list(log.epochs) == [(0, 0), (2, 5), (4, 6)]


def test_a_follower_refuses_batches_that_overlap(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 3)
    with pytest.raises(CorruptRecord):
        log.append_as_follower([batch([b"a"], base_offset=2)], now_ms=0)
    assert log.log_end_offset == 3


def test_many_batches_in_one_append_are_one_row(log_dir: Path) -> None:
    """More than a single vectored write takes."""
    log = new_log(log_dir, LogConfig(segment_bytes=1 << 20))
    append(log, *[batch([b"%d" % number]) for number in range(1500)])
    assert [value for _, value in read_values(log)] == [b"%d" % n for n in range(1500)]


# Rolling


def test_a_full_segment_is_followed_by_one_named_after_the_next_offset(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 40)
    assert len(log.segments) > 2
    for segment, following in zip(log.segments, log.segments[1:], strict=False):
        assert segment.size <= 1000
        last = read_batches(log, following.base_offset - 1)[0][0]
        assert last.next_offset == following.base_offset
        assert following.log_path.name == f"{following.base_offset:020d}.log"


def test_a_segment_ends_when_its_records_span_segment_ms(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(segment_ms=100))
    for timestamp in (1000, 1050, 1100, 1101, 1150):
        append(log, batch(timestamps=timestamp))
    assert [segment.base_offset for segment in log.segments] == [0, 3]


def test_without_timestamps_a_segment_ends_by_the_clock(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(segment_ms=100))
    for now_ms in (0, 60, 100, 101):
        append(log, batch(timestamps=-1), now_ms=now_ms)
    assert [segment.base_offset for segment in log.segments] == [0, 3]


def test_the_age_of_a_segment_survives_a_restart(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(segment_ms=100))
    append(log, batch(timestamps=1000))
    log = reopened(log, clean=True)
    append(log, batch(timestamps=1101))
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_a_full_index_ends_a_segment(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(index_interval_bytes=1, segment_index_bytes=24))
    fill(log, 10)
    assert all(segment.offsets.file.count <= 3 for segment in log.segments)
    assert len(log.segments) > 2
    assert len(read_values(log)) == 10


def test_offsets_too_far_for_an_index_end_a_segment(log_dir: Path) -> None:
    log = new_log(log_dir)
    far = (1 << 31) + 5
    log.append_as_follower([batch([b"a"], base_offset=1)], now_ms=0)
    log.append_as_follower([batch([b"b"], base_offset=far)], now_ms=0)
    log.append_as_follower([batch([b"c"], base_offset=5 * far)], now_ms=0)
    expected = [(1, b"a"), (far, b"b"), (5 * far, b"c")]
    assert read_values(log) == expected
    assert read_values(reopened(log)) == expected


def test_jitter_spreads_the_rolls(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(segment_ms=1000, segment_jitter_ms=1000))
    ends = set()
    for _ in range(20):
        fill(log, 1)
        log.roll(now_ms=0)
        ends.add(log.segments[-1].jitter_ms)
    assert len(ends) > 5
    assert max(ends) < 1000


# Opening and closing


def test_a_clean_start_reads_only_the_end_of_the_active_segment(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed segments are replaced by rubbish of the same size: nobody may look at them."""
    log = new_log(log_dir)
    fill(log, 30)
    log.close()
    *closed, active = sorted(log.dir.glob("*.log"))
    assert closed
    for path in closed:
        path.write_bytes(os.urandom(path.stat().st_size))
    real_pread, reads = os.pread, []

    def counting(fd: int, size: int, position: int) -> bytes:
        reads.append((Path(f"/proc/self/fd/{fd}").readlink(), position))
        return real_pread(fd, size, position)

    monkeypatch.setattr(os, "pread", counting)
    again = Log.open(
        log.dir,
        config=SMALL,
        now_ms=0,
        clean=True,
        recovery_point=log.recovery_point,
        report=Reports(),
    )
    assert (again.log_start_offset, again.log_end_offset) == (0, 30)
    last_entry = again.segments[-1].offsets.last()
    of_logs = [(path, position) for path, position in reads if path.suffix == ".log"]
    assert {path for path, _ in of_logs} <= {active}
    assert all(position >= last_entry.position for _, position in of_logs)


def test_a_log_longer_than_its_notes_say_keeps_its_records(log_dir: Path) -> None:
    """As when somebody puts another broker's files in the place of ours."""
    log = new_log(log_dir)
    fill(log, 10)
    noted = log.log_end_offset
    fill(log, 3)
    log.close()
    again = Log.open(
        log.dir, config=SMALL, now_ms=0, clean=True, recovery_point=noted, report=Reports()
    )
    assert (again.log_end_offset, len(read_values(again))) == (noted + 3, noted + 3)


def test_a_closed_log_takes_nothing(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 1)
    log.close()
    with pytest.raises(KafkaStorage):
        fill(log, 1)
    log.close()


def test_a_deleted_log_moves_to_a_name_that_says_so(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 3)
    moved = log.rename_for_delete()
    assert moved.name.startswith("t-0.")
    assert moved.name.endswith("-delete")
    assert moved.is_dir()
    assert not (log_dir / "t-0").exists()
    with pytest.raises(KafkaStorage):
        fill(log, 1)
    assert len(read_values(log)) == 3


def test_a_directory_of_another_topic_of_the_name_is_refused(log_dir: Path) -> None:
    path = log_dir / "t-0"
    path.mkdir()
    options = {"config": SMALL, "now_ms": 0, "clean": True, "report": Reports()}
    Log.open(path, topic_id=b"a" * 16, **options).close()  # type: ignore[arg-type]
    assert (path / "partition.metadata").read_text() == (
        "version: 0\ntopic_id: YWFhYWFhYWFhYWFhYWFhYQ"
    )
    with pytest.raises(InconsistentTopicId):
        Log.open(path, topic_id=b"b" * 16, **options)  # type: ignore[arg-type]
    assert Log.open(path, **options).topic_id == b"a" * 16  # type: ignore[arg-type]


def test_changed_settings_hold_from_the_next_append_on(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(segment_bytes=1 << 20))
    fill(log, 20)
    log.reconfigure(LogConfig(segment_bytes=400, message_timestamp_type="LogAppendTime"))
    assert append(log, batch(), now_ms=9).log_append_ms == 9
    assert len(log.segments) == 2


def test_segment_marks_tell_the_age_of_files(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 20)
    marks = log.segment_marks()
    assert [base for base, _ in marks] == [segment.base_offset for segment in log.segments]
    assert all(modified > 1_600_000_000_000 for _, modified in marks)
