"""A process that dies, and files that suffer: the longest valid prefix survives."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.storage.made import (
    MEMORY,
    SMALL,
    Reports,
    append,
    batch,
    fill,
    marker,
    new_log,
    read_batches,
    read_values,
    reopened,
)

from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log
from penstock.storage.producers.producers import ProducerEntry


def a_busy_log(root: Path) -> Log:
    """Several segments, epochs, producers, open and ended transactions."""
    log = new_log(root, LogConfig(segment_bytes=700, index_interval_bytes=100))
    for number in range(12):
        epoch = number // 4
        append(log, batch([b"plain"] * 2), leader_epoch=epoch)
        append(log, batch([b"once"], producer=(7, 0, number)), leader_epoch=epoch)
        held = batch([b"txn"], producer=(8, 0, number), is_transactional=True)
        append(log, held, leader_epoch=epoch)
        if number % 3 == 2:
            log.append_as_leader(
                [marker(8, 0, is_commit=number % 2 == 0)], leader_epoch=epoch, now_ms=0
            )
    log.high_watermark = log.log_end_offset
    return log


def batch_ends(log: Log, segment_number: int) -> dict[int, int]:
    """Where batches of a segment end in its file, and the offsets behind them."""
    segment = log.segments[segment_number]
    ends, at = {0: segment.base_offset}, 0
    for header, view in read_batches(log, segment.base_offset):
        at += len(view)
        if at <= segment.size:
            ends[at] = header.next_offset
    return ends


def common_bytes(one: bytes, other: bytes) -> int:
    """How many first bytes two files have in common."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def covered_by_crc(log: Log, segment_number: int, at: int) -> int:
    """The byte, or the next that a CRC covers: offset and epoch are stamped outside of it."""
    start = max(end for end in batch_ends(log, segment_number) if end <= at)
    return max(at, start + 16) if at - start not in range(8, 12) else at


def rebuilt_producers(log: Log) -> list[ProducerEntry]:
    """What the log alone says of its producers: a copy of it, without any snapshot."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as root:
        copy = Path(root) / log.dir.name
        shutil.copytree(log.dir, copy)
        for path in copy.glob("*.snapshot"):
            path.unlink()
        alone = Log.open(copy, config=log.config, now_ms=0, clean=False, report=Reports())
        return sorted(alone.producers())


def last_batches(entries: list[ProducerEntry]) -> list[ProducerEntry]:
    """Snapshots keep one batch of each producer; that much must always agree."""
    return sorted(entry._replace(batches=entry.batches[-1:]) for entry in entries)


def assert_consistent(log: Log) -> None:
    """Indexes, producers and epochs fit the batches."""
    batches = read_batches(log)
    assert last_batches(log.producers()) == last_batches(rebuilt_producers(log))
    starts: list[tuple[int, int]] = []
    for header, _ in batches:
        if not starts or header.leader_epoch > starts[-1][0]:
            starts.append((header.leader_epoch, header.base_offset))
    assert list(log.epochs) == starts
    for header, view in batches:
        found = log.read(
            header.last_offset, bytes_max=1, end_offset=log.log_end_offset, min_one=True
        )
        assert not isinstance(found.records, bytes)
        assert found.records.read() == bytes(view)


Damage = Callable[[Path, int], None]


def cut(path: Path, at: int) -> None:
    os.truncate(path, at)


def zero(path: Path, at: int) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:at] + bytes(len(data) - at))


def garbage(path: Path, at: int) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:at] + os.urandom(len(data) - at + 100))


def one_bit(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[min(at, len(data) - 1)] ^= 1
    path.write_bytes(data)


def repeat(path: Path, at: int) -> None:
    """The bytes behind `at` come twice, as after a write that was done again."""
    data = path.read_bytes()
    path.write_bytes(data + data[at:])


@settings(max_examples=120, deadline=None)
@given(
    damage=st.sampled_from([cut, zero, garbage, one_bit, repeat]),
    data=st.data(),
)
def test_the_longest_valid_prefix_survives_damage_at_any_byte(
    damage: Damage, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as root:
        log = a_busy_log(Path(root))
        number = data.draw(st.integers(0, len(log.segments) - 1), label="segment")
        segment = log.segments[number]
        at = data.draw(st.integers(0, segment.size - 1), label="byte")
        if damage is one_bit:
            at = covered_by_crc(log, number, at)
        values, ends = read_values(log), batch_ends(log, number)
        before = segment.log_path.read_bytes()
        damage(segment.log_path, at)
        after = segment.log_path.read_bytes()
        intact = common_bytes(before, after)
        valid = max(end for end in ends if end <= intact)
        reports = Reports()
        recovered = reopened(log, recovery_point=0, reports=reports)
        is_whole = after == before
        end = log.log_end_offset if is_whole else ends[valid]
        assert recovered.log_end_offset == end
        assert read_values(recovered) == [pair for pair in values if pair[0] < end]
        assert reports.mention("cut off") == (len(after) > valid)
        assert_consistent(recovered)


@settings(max_examples=60, deadline=None)
@given(
    suffix=st.sampled_from([".index", ".timeindex", ".txnindex", ".snapshot"]),
    damage=st.sampled_from([cut, zero, garbage, one_bit, repeat, None]),
    is_clean=st.booleans(),
    data=st.data(),
)
def test_damaged_or_missing_side_files_change_no_answer(
    suffix: str, damage: Damage | None, is_clean: bool, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as root:
        log = a_busy_log(Path(root))
        if is_clean:
            log.close()
        else:
            log.flush()
        values = read_values(log)
        path = data.draw(st.sampled_from(sorted(log.dir.glob(f"*{suffix}"))), label="file")
        if damage is None:
            path.unlink()
        elif path.stat().st_size:
            damage(path, data.draw(st.integers(0, path.stat().st_size - 1), label="byte"))
        recovered = Log.open(
            log.dir,
            config=log.config,
            now_ms=0,
            clean=is_clean,
            recovery_point=log.recovery_point if is_clean else 0,
            report=Reports(),
        )
        assert recovered.log_end_offset == log.log_end_offset
        assert read_values(recovered) == values
        if suffix != ".snapshot" or damage is not one_bit:
            assert_consistent(recovered)


def test_a_kill_loses_nothing_that_was_appended(log_dir: Path) -> None:
    log = a_busy_log(log_dir)
    recovered = reopened(log)
    assert read_values(recovered) == read_values(log)
    assert recovered.producers() == log.producers()
    assert recovered.last_stable_offset == log.last_stable_offset
    assert recovered.aborted_transactions(0, 1000) == log.aborted_transactions(0, 1000)
    assert recovered.epochs == log.epochs


def test_recovery_begins_at_the_recovery_point(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 40)
    log.roll(now_ms=0)
    log.flush()
    fill(log, 3)
    damaged = log.segments[0].log_path
    one_bit(damaged, 100)
    reports = Reports()
    recovered = reopened(log, reports=reports)
    assert recovered.log_end_offset == 43
    assert not reports.mention(str(damaged))


def test_segments_behind_the_damage_are_removed_and_appends_go_on(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 40)
    assert len(log.segments) > 3
    second = log.segments[1]
    one_bit(second.log_path, 30)
    reports = Reports()
    recovered = reopened(log, reports=reports)
    assert recovered.log_end_offset == second.base_offset
    assert reports.mention("the log ends at offset")
    assert append(recovered, batch()).base_offset == second.base_offset
    assert len(list(log.dir.glob("*.log"))) == 2


def test_reserved_space_is_given_back_after_a_kill(log_dir: Path) -> None:
    log = new_log(log_dir, LogConfig(preallocate=True, segment_bytes=1 << 20))
    fill(log, 3)
    assert log.segments[0].log_path.stat().st_size == 1 << 20
    size = log.size_bytes
    recovered = reopened(log)
    assert recovered.log_end_offset == 3
    assert recovered.segments[0].log_path.stat().st_size == size


def test_a_log_start_offset_beyond_the_end_begins_the_log_anew(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 5)
    log.close()
    reports = Reports()
    recovered = Log.open(
        log.dir, config=SMALL, now_ms=0, clean=True, log_start_offset=50, report=reports
    )
    assert (recovered.log_start_offset, recovered.log_end_offset) == (50, 50)
    assert append(recovered, batch()).base_offset == 50
    assert reports.mention("before the log's start offset 50")


def test_lost_epochs_are_read_from_the_batches(log_dir: Path) -> None:
    log = a_busy_log(log_dir)
    epochs = log.epochs
    log.close()
    path = log.dir / "leader-epoch-checkpoint"
    for content in (None, "0\n9\n1 1\n", "nonsense"):
        path.unlink() if content is None else path.write_text(content)
        reports = Reports()
        recovered = Log.open(log.dir, config=SMALL, now_ms=0, clean=True, report=reports)
        assert recovered.epochs == epochs
        assert reports.mention("leader epochs")
        recovered.close()


def test_an_index_without_a_log_is_removed(log_dir: Path) -> None:
    log = new_log(log_dir)
    fill(log, 2)
    orphan = log.dir / f"{77:020d}.index"
    orphan.write_bytes(bytes(8))
    reports = Reports()
    reopened(log, clean=True, reports=reports)
    assert not orphan.exists()
    assert reports.mention("an index without a log")


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_full_of_zeros_is_built_anew(log_dir: Path, suffix: str) -> None:
    """Apache Kafka reserves index files and leaves them so when it is killed."""
    log = new_log(log_dir)
    fill(log, 8)
    log.close()
    path = log.segments[-1].log_path.with_suffix(suffix)
    path.write_bytes(path.read_bytes() + bytes(480))
    recovered = Log.open(log.dir, config=SMALL, now_ms=0, clean=True, report=Reports())
    assert read_values(recovered) == read_values(log)
    assert path.read_bytes()[-8:] != bytes(8)


def test_messages_of_old_formats_survive_recovery(log_dir: Path) -> None:
    """A directory of an old Kafka may hold formats 0 and 1; they are checked, not thrown away."""
    old = b"".join(_old_message(offset, magic=offset % 2) for offset in range(3))
    directory = log_dir / "t-0"
    directory.mkdir()
    (directory / f"{0:020d}.log").write_bytes(old + _old_message(3, magic=1)[:-1])
    log = Log.open(directory, config=SMALL, now_ms=0, clean=False, report=Reports())
    assert (log.log_end_offset, log.size_bytes) == (3, len(old))
    found = log.read(2, bytes_max=1000, end_offset=3, min_one=True)
    assert not isinstance(found.records, bytes)
    assert found.records.read() == _old_message(2, magic=0)


def _old_message(offset: int, *, magic: int) -> bytes:
    import struct
    import zlib

    time = struct.pack(">q", 5000) if magic else b""
    body = (
        struct.pack(">bb", magic, 0) + time + struct.pack(">i", -1) + struct.pack(">i", 2) + b"hi"
    )
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(message)) + message


def test_an_epoch_noted_for_records_that_a_power_cut_undid_is_forgotten(log_dir: Path) -> None:
    """The cut of an old tail was lost, its note was not: the tail is of its old epoch."""
    log = new_log(log_dir, SMALL)
    append(log, batch([b"a", b"b"]), leader_epoch=0)
    append(log, batch([b"an old tail"]), leader_epoch=0)
    checkpoint = log.dir / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n2\n0 0\n2 2\n")
    again = reopened(log)
    assert again.log_end_offset == 3
    assert again.epochs == ((0, 0),)
    assert again.epoch_of(2) == 0


def test_the_noted_start_of_an_epoch_holds_where_the_batches_leave_room(log_dir: Path) -> None:
    """Compaction may take the first batch of an epoch; its start stays where it was."""
    log = new_log(log_dir, SMALL)
    append(log, batch([b"a", b"b"]), leader_epoch=0)
    later = batch([b"c"], base_offset=5, leader_epoch=3)
    log.append_as_follower([later], now_ms=0)
    (log.dir / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n3 4\n")
    assert reopened(log).epochs == ((0, 0), (3, 4))


@pytest.mark.parametrize("noted_start", [0, 10])
@pytest.mark.parametrize("recovery_point", [0, 15, 52])
@pytest.mark.parametrize("start_offset", [12, 17, 30, 40, 52])
def test_records_that_were_deleted_and_came_back_bring_their_epochs_along(
    log_dir: Path, start_offset: int, recovery_point: int, noted_start: int
) -> None:
    """A kill came after the history was cut off and before the log's new start was noted."""
    log = a_busy_log(log_dir)
    before = [log.epoch_of(offset) for offset in range(noted_start, log.log_end_offset)]
    assert len(log.epochs) == 3
    log.flush()
    log.delete_records_before(start_offset)
    assert log.epochs[0].start_offset == start_offset
    again = Log.open(
        log.dir,
        config=log.config,
        now_ms=0,
        clean=False,
        recovery_point=recovery_point,
        log_start_offset=noted_start,
        report=Reports(),
    )
    assert (again.log_start_offset, again.log_end_offset) == (noted_start, log.log_end_offset)
    assert [again.epoch_of(o) for o in range(noted_start, again.log_end_offset)] == before
    assert again.epochs[0].start_offset == noted_start
    healed = Log.open(log.dir, config=log.config, now_ms=0, clean=True, report=Reports())
    assert healed.epochs == again.epochs  # It was written, too.


def test_epochs_that_are_known_from_the_start_are_not_read_again(log_dir: Path) -> None:
    log = a_busy_log(log_dir)
    log.flush()
    reports = Reports()
    assert reopened(log, reports=reports).epochs == log.epochs
    assert not reports.mention("from the batches")
