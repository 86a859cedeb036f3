"""The room under a log directory: what the reserve gives, what is refused, what is told."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.disk import free_bytes, leave_no_byte, small_disk
from tests.unit.storage.made import Reports, append, batch, read_values

from penstock.errors import KafkaStorage
from penstock.records.topic_partition import TopicPartition
from penstock.storage.directories.disk_room import RESERVE_FILE, DiskRoom, NoRoom
from penstock.storage.directories.log_dirs import LogDirs
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log

DISK_BYTES = 32 << 20
RESERVE_BYTES = 1 << 20
SMALL_SEGMENTS = LogConfig(
    segment_bytes=1 << 20, index_interval_bytes=4096, file_delete_delay_ms=60_000
)
ID = b"a" * 16


class Clock:
    """Seconds that pass when a test says so."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", size_bytes=DISK_BYTES) as directory:
        yield directory


def room_of(disk: Path) -> DiskRoom:
    return told_room(disk, Reports(), Clock())


def told_room(disk: Path, warnings: Reports, clock: Clock) -> DiskRoom:
    room = DiskRoom(disk, reserve_bytes=RESERVE_BYTES, warn=warnings, clock_s=clock)
    room.set_up()
    return room


def write(path: Path, size: int) -> None:
    path.write_bytes(bytes(size))


def test_a_reserve_is_of_real_blocks_and_outlives_a_process(disk: Path) -> None:
    before = free_bytes(disk)
    assert room_of(disk).reserve_bytes == RESERVE_BYTES
    assert before - free_bytes(disk) == RESERVE_BYTES
    leave_no_byte(disk)
    again = room_of(disk)
    assert again.reserve_bytes == RESERVE_BYTES
    assert not again.is_full


@pytest.mark.parametrize(("wanted", "held"), [(0, 0), (1 << 30, DISK_BYTES // 32), (65536, 65536)])
def test_the_reserve_follows_its_setting_and_never_takes_much_of_a_small_disk(
    disk: Path, wanted: int, held: int
) -> None:
    room_of(disk)
    room = DiskRoom(disk, reserve_bytes=wanted)
    room.set_up()
    assert room.reserve_bytes == held
    assert (disk / RESERVE_FILE).exists() == bool(held)


def test_what_must_be_written_gets_slices_until_there_are_none(disk: Path) -> None:
    room = room_of(disk)
    leave_no_byte(disk)
    for number in range(4):
        room.with_room(lambda at=number: write(disk / f"note-{at}", 250_000))  # type: ignore[misc]
    assert room.reserve_bytes == 0
    with pytest.raises(OSError, match="No space left"):
        room.with_room(lambda: write(disk / "note-4", 250_000))


def test_another_error_takes_nothing_of_the_reserve(disk: Path) -> None:
    room = room_of(disk)
    with pytest.raises(NotADirectoryError):
        room.with_room(lambda: write(disk / RESERVE_FILE / "x", 1))
    assert room.reserve_bytes == RESERVE_BYTES
    assert not room.is_full


def test_records_get_nothing_of_what_the_reserve_gave(disk: Path) -> None:
    room = room_of(disk)
    ballast = leave_no_byte(disk)
    room.with_room(lambda: write(disk / "note", 10))
    assert free_bytes(disk) > 50_000
    assert room.usable_bytes() == 0
    with pytest.raises(NoRoom, match="there is no room for 10 bytes of t-0"):
        room.check("t-0", 10)
    assert not room.watch()
    os.truncate(ballast, ballast.stat().st_size - (3 << 20))
    room.check("t-0", 10)
    assert room.watch()
    assert room.reserve_bytes == RESERVE_BYTES
    assert room.usable_bytes() == free_bytes(disk)


def test_the_reserve_is_made_when_there_is_room_for_it(disk: Path) -> None:
    ballast = leave_no_byte(disk)
    room = room_of(disk)
    assert room.is_full
    assert room.reserve_bytes == 0
    ballast.unlink()
    assert room.watch()
    assert room.reserve_bytes == RESERVE_BYTES


def test_a_disk_that_others_fill_is_noticed_before_anybody_writes(disk: Path) -> None:
    room = room_of(disk)
    assert room.watch()
    leave_no_byte(disk)
    assert not room.watch()
    assert room.is_full


def test_refusals_are_told_now_and_then_with_the_number_of_those_left_out(disk: Path) -> None:
    warnings, clock = Reports(), Clock()
    room = told_room(disk, warnings, clock)
    ballast = leave_no_byte(disk)
    for number in range(10):
        room.refuse(f"t-{number}", 5000 + number)
    assert len(warnings) == 2
    assert f"The disk under {disk} is full: 0 bytes are free" in warnings[0]
    assert "Refused to append 5000 bytes to t-0" in warnings[1]
    clock.now_s += 31
    room.refuse("orders-7", 123)
    assert "Refused to append 123 bytes to orders-7" in warnings[-1]
    assert "9 more appends were refused" in warnings[-1]
    ballast.unlink()
    room.watch()
    assert "has room again" in warnings[-1]
    assert "Appends refused since the start: 11" in warnings[-1]


def test_a_batch_larger_than_what_is_free_does_not_keep_others_out(disk: Path) -> None:
    room = room_of(disk)
    free = free_bytes(disk)
    room.refuse("large-0", free + 1)
    room.check("small-0", 100)
    assert not room.is_full


# Logs on such a disk


@pytest.fixture
def dirs(disk: Path) -> LogDirs:
    found = LogDirs.open(
        [disk / "data"], now_ms=0, reserve_bytes=RESERVE_BYTES, report=Reports(), warn=Reports()
    )
    found.claim(broker_id=0, cluster_id="cluster")
    return found


def open_log(dirs: LogDirs, topic: str) -> Log:
    return dirs.open_log(TopicPartition(topic, 0), topic_id=ID, config=SMALL_SEGMENTS, now_ms=0)


def fill_log(log: Log) -> int:
    count = 0
    with pytest.raises(NoRoom):
        while True:
            append(log, batch([b"x" * 100_000], producer=(7, 0, count)))
            count += 1
    log.high_watermark = log.log_end_offset
    return count


def test_a_full_log_can_be_shortened_and_goes_on(dirs: LogDirs, disk: Path) -> None:
    log = open_log(dirs, "growing")
    count = fill_log(log)
    leave_no_byte(disk)
    log.delete_records_before(15)
    assert log.log_start_offset == 15
    log.reconfigure(LogConfig(segment_bytes=1 << 20, retention_bytes=5 << 20))
    assert log.retain(now_ms=1)
    log.delete_expired_files(now_ms=1)  # Without a delay.
    assert free_bytes(disk) > 10 << 20
    append(log, batch([b"x" * 100_000], producer=(7, 0, count)))
    assert len(read_values(log)) == log.log_end_offset - log.log_start_offset


def test_a_shortening_that_finds_no_room_at_all_changes_nothing(dirs: LogDirs, disk: Path) -> None:
    log = open_log(dirs, "growing")
    fill_log(log)
    while dirs.dirs[0].room.give():
        pass
    leave_no_byte(disk)
    segments, values = log.segments, read_values(log)
    log.reconfigure(LogConfig(segment_bytes=1 << 20, retention_bytes=5 << 20))
    with pytest.raises(KafkaStorage):
        log.delete_records_before(15)
    with pytest.raises(KafkaStorage):
        log.retain(now_ms=1)
    assert log.segments == segments
    assert log.log_start_offset == 0
    assert read_values(log) == values
    (disk / "ballast").unlink()
    assert log.retain(now_ms=1)


def test_a_deleted_log_gives_its_room_back_without_a_delay(dirs: LogDirs, disk: Path) -> None:
    log = open_log(dirs, "doomed")
    fill_log(log)
    leave_no_byte(disk)
    dirs.delete_log(log.topic_partition, now_ms=0)
    del log
    assert dirs.delete_expired(now_ms=0) == 1
    assert free_bytes(disk) > 20 << 20
    assert dirs.dirs[0].room.watch()


def test_what_a_log_reserved_is_given_back(dirs: LogDirs, disk: Path) -> None:
    config = LogConfig(segment_bytes=8 << 20, preallocate=True)
    partition = TopicPartition("reserving", 0)
    log = dirs.open_log(partition, topic_id=ID, config=config, now_ms=0)
    append(log, batch([b"x" * 100_000]))
    log.roll(now_ms=0)
    before = free_bytes(disk)
    log.give_back_reserved()
    assert free_bytes(disk) - before == 8 << 20
    append(log, batch([b"x" * 100_000]))
    assert len(read_values(log)) == 2


def test_after_a_crash_logs_open_on_a_disk_without_a_free_byte(dirs: LogDirs, disk: Path) -> None:
    log = open_log(dirs, "growing")
    fill_log(log)
    values = read_values(log)
    leave_no_byte(disk)
    dirs.dirs[0].unlock()  # As if the process had died.
    again = LogDirs.open(
        [disk / "data"], now_ms=0, reserve_bytes=RESERVE_BYTES, report=Reports(), warn=Reports()
    )
    assert not again.was_clean
    assert read_values(open_log(again, "growing")) == values
    again.close()
    assert LogDirs.open([disk / "data"], now_ms=0, report=Reports()).was_clean


def test_a_log_that_could_not_be_made_is_made_when_there_is_room(dirs: LogDirs, disk: Path) -> None:
    while dirs.dirs[0].room.give():
        pass
    leave_no_byte(disk)
    with pytest.raises(NoRoom):
        open_log(dirs, "new")
    assert not (disk / "data" / "new-0").exists()
    (disk / "ballast").unlink()
    append(open_log(dirs, "new"), batch([b"x"]))


def test_new_logs_go_where_there_is_room(dirs: LogDirs, disk: Path, tmp_path: Path) -> None:
    both = LogDirs.open([disk / "full", tmp_path / "roomy"], now_ms=0, report=Reports())
    both.dirs[0].room.is_full = True
    homes = {open_log(both, f"t{number}").dir.parent.name for number in range(4)}
    assert homes == {"roomy"}
