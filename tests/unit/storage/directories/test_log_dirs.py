"""Several log directories: whose they are, what is in them, and what a stop leaves behind."""

import fcntl
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from tests.unit.storage.made import SMALL, Reports, append, batch, fill, read_values

from penstock.errors import ConfigError, KafkaStorage
from penstock.records.topic_partition import TopicPartition
from penstock.storage.directories.log_dirs import LogDirs, WantedLog
from penstock.storage.log.log import Log

ORDERS = TopicPartition("orders", 0)
ID, OTHER_ID = b"a" * 16, b"b" * 16


def opened(*paths: Path, reports: Reports | None = None, now_ms: int = 0) -> LogDirs:
    return LogDirs.open(
        paths, now_ms=now_ms, recovery_threads=2, report=Reports() if reports is None else reports
    )


def claimed(*paths: Path) -> LogDirs:
    dirs = opened(*paths)
    dirs.claim(broker_id=0, cluster_id="cluster")
    return dirs


def open_log(dirs: LogDirs, partition: TopicPartition = ORDERS, topic_id: bytes = ID) -> Log:
    return dirs.open_log(partition, topic_id=topic_id, config=SMALL, now_ms=0)


def killed(dirs: LogDirs) -> None:
    """The process is gone: its locks with it, and nothing was written."""
    for found in dirs.dirs:
        found.unlock()


# Whose they are


def test_a_new_directory_is_made_and_claimed(log_dir: Path) -> None:
    path = log_dir / "a" / "b"
    dirs = opened(path)
    assert (dirs.broker_id, dirs.cluster_id, dirs.was_clean) == (None, None, True)
    dirs.claim(broker_id=3, cluster_id="abc")
    lines = (path / "meta.properties").read_text().splitlines()
    assert lines[0] == "#"
    assert lines[1] == "#Thu Jan 01 00:00:00 UTC 1970"
    assert lines[2:4] == ["broker.id=3", "cluster.id=abc"]
    assert lines[4] == f"directory.id={dirs.directory_ids[0]}"
    assert lines[5:] == ["version=0"]
    dirs.close()
    again = opened(path)
    assert (again.broker_id, again.cluster_id) == (3, "abc")
    assert again.directory_ids == dirs.directory_ids
    again.claim(broker_id=3, cluster_id="abc")
    again.close()


def test_the_file_of_a_kraft_broker_is_taken_and_kept(log_dir: Path) -> None:
    """Version 1 calls the broker a node; its directory and its metadata log stay as they are."""
    text = "#\nnode.id=5\ncluster.id=abc\ndirectory.id=someDirectoryIdxxxxxxxx\nversion=1\n"
    (log_dir / "meta.properties").write_text(text)
    (log_dir / "__cluster_metadata-0").mkdir()
    dirs = opened(log_dir)
    assert (dirs.broker_id, dirs.cluster_id) == (5, "abc")
    assert list(dirs.found_logs()) == []
    dirs.claim(broker_id=5, cluster_id="abc")
    assert (log_dir / "meta.properties").read_text() == text
    dirs.close()


@pytest.mark.parametrize(
    ("broker_id", "cluster_id", "words"),
    [
        (0, "other", "holds data of the cluster cluster, and this broker belongs to other"),
        (1, "cluster", "holds data of broker 0, and broker.id is 1; set broker.id=0"),
    ],
)
def test_the_directory_of_somebody_else_is_refused(
    log_dir: Path, broker_id: int, cluster_id: str, words: str
) -> None:
    claimed(log_dir).close()
    dirs = opened(log_dir)
    with pytest.raises(ConfigError, match=words):
        dirs.claim(broker_id=broker_id, cluster_id=cluster_id)
    dirs.close()


def test_directories_of_different_brokers_are_refused(log_dir: Path) -> None:
    for number in (0, 1):
        dirs = opened(log_dir / str(number))
        dirs.claim(broker_id=number, cluster_id="abc")
        dirs.close()
    with pytest.raises(ConfigError, match="different brokers or clusters"):
        opened(log_dir / "0", log_dir / "1")
    opened(log_dir / "0").close()  # Nothing stayed locked.


def test_an_unknown_meta_properties_is_refused(log_dir: Path) -> None:
    for text in ("version=7\n", "broker.id=0\n", "version=0\nbroker.id=first\n"):
        (log_dir / "meta.properties").write_text(text)
        with pytest.raises(ConfigError, match=r"meta.properties"):
            opened(log_dir)


def test_a_file_in_the_place_of_a_directory_is_refused(log_dir: Path) -> None:
    (log_dir / "file").touch()
    with pytest.raises(ConfigError, match=r"log.dirs: .*file is not a directory"):
        opened(log_dir / "file")


def test_a_directory_that_cannot_be_written_is_refused(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(ConfigError, match="cannot be written \\(Permission denied\\)"):
        opened(log_dir)


# Locks


def test_a_directory_in_use_is_refused(log_dir: Path) -> None:
    dirs = opened(log_dir)
    with pytest.raises(ConfigError, match="in use by another process"):
        opened(log_dir)
    dirs.close()
    opened(log_dir).close()


def test_apache_kafka_and_we_respect_each_others_lock(log_dir: Path) -> None:
    """Java's FileChannel.lock is a POSIX record lock, which flock does not see."""
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent("""
                import fcntl, sys
                held = open(sys.argv[1], "w")
                fcntl.lockf(held, fcntl.LOCK_EX)
                print("held", flush=True)
                sys.stdin.read()
            """),
            str(log_dir / ".lock"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ConfigError, match="in use by another process"):
            opened(log_dir)
        assert holder.stdin is not None
        holder.stdin.close()
    dirs = opened(log_dir)
    script = "import fcntl,sys; fcntl.lockf(open(sys.argv[1], 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    tried = subprocess.run(
        [sys.executable, "-c", script, str(log_dir / ".lock")], capture_output=True
    )
    assert tried.returncode != 0
    dirs.close()
    assert fcntl.LOCK_NB


# Logs


def test_a_new_log_goes_where_the_fewest_are(log_dir: Path) -> None:
    dirs = claimed(log_dir / "a", log_dir / "b")
    homes = [open_log(dirs, TopicPartition("t", n)).dir.parent.name for n in range(4)]
    assert sorted(homes) == ["a", "a", "b", "b"]
    assert open_log(dirs, TopicPartition("t", 2)) is open_log(dirs, TopicPartition("t", 2))
    assert len(list(dirs.logs())) == 4
    dirs.close()


def test_a_clean_stop_is_noticed_and_everything_is_there_again(log_dir: Path) -> None:
    dirs = claimed(log_dir)
    log = open_log(dirs)
    fill(log, 30)
    log.delete_records_before(3)
    dirs.note_broker_epoch(77)
    dirs.close()
    assert (log_dir / ".kafka_cleanshutdown").exists()
    assert (log_dir / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 30\n"
    assert (log_dir / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 30\n"
    assert (log_dir / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    reports = Reports()
    again = opened(log_dir, reports=reports)
    assert (again.was_clean, again.previous_broker_epoch) == (True, 77)
    assert not (log_dir / ".kafka_cleanshutdown").exists()
    assert list(again.found_logs()) == [(ORDERS, ID)]
    found = open_log(again)
    assert (found.log_start_offset, found.log_end_offset, found.high_watermark) == (3, 30, 30)
    assert reports == []
    again.close()


def test_after_a_kill_logs_are_recovered_and_the_start_offset_is_kept(log_dir: Path) -> None:
    dirs = claimed(log_dir)
    log = open_log(dirs)
    fill(log, 30)
    log.delete_records_before(3)
    dirs.write_start_offsets()
    dirs.write_high_watermarks()
    dirs.write_recovery_points()
    killed(dirs)
    reports = Reports()
    again = opened(log_dir, reports=reports)
    assert not again.was_clean
    again.recover_logs([WantedLog(ORDERS, ID, SMALL)], now_ms=0)
    found = open_log(again)
    assert (found.log_start_offset, found.log_end_offset, found.high_watermark) == (3, 30, 30)
    assert reports.mention("Recovering unflushed segment")
    again.close()
    assert opened(log_dir).was_clean


def test_logs_that_were_not_opened_keep_a_crash_a_crash(log_dir: Path) -> None:
    """A start that ended early must not make the next one believe that all is well."""
    dirs = claimed(log_dir)
    fill(open_log(dirs), 5)
    dirs.write_high_watermarks()
    killed(dirs)
    opened(log_dir).close()
    dirs = opened(log_dir)
    assert not dirs.was_clean
    assert open_log(dirs).log_end_offset == 5
    dirs.close()
    opened(log_dir).close()  # Nothing was opened, and yet it stays clean.
    dirs = opened(log_dir)
    assert dirs.was_clean
    assert open_log(dirs).high_watermark == 5
    dirs.close()


def test_a_log_that_fails_to_close_leaves_no_note_of_a_clean_stop(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dirs = claimed(log_dir)
    log = open_log(dirs)
    fill(log, 3)

    def broken(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", broken)
        with pytest.raises(KafkaStorage):
            log.flush()
    dirs.close()
    assert not opened(log_dir).was_clean


def test_a_broken_checkpoint_is_told_and_not_needed(log_dir: Path) -> None:
    dirs = claimed(log_dir)
    fill(open_log(dirs), 30)
    dirs.close()
    (log_dir / "recovery-point-offset-checkpoint").write_text("rubbish")
    reports = Reports()
    dirs = opened(log_dir, reports=reports)
    assert reports.mention("recovery-point-offset-checkpoint")
    assert len(read_values(open_log(dirs))) == 30
    dirs.close()


def test_a_log_of_an_older_topic_is_set_aside_not_reused(log_dir: Path) -> None:
    dirs = claimed(log_dir)
    fill(open_log(dirs), 5)
    dirs.close()
    dirs = opened(log_dir)
    log = open_log(dirs, topic_id=OTHER_ID)
    assert (log.log_end_offset, log.topic_id) == (0, OTHER_ID)
    (stray,) = log_dir.glob("orders-0.*-stray")
    assert len(list(stray.glob("*.log"))) > 0
    dirs.close()
    reports = Reports()
    dirs = opened(log_dir, reports=reports)
    assert reports.mention("Leaving")
    assert list(dirs.found_logs()) == [(ORDERS, OTHER_ID)]
    dirs.close()


def test_a_log_that_is_open_is_not_handed_out_as_that_of_a_younger_topic(log_dir: Path) -> None:
    """After a crash logs are open before the broker hears that a topic was made anew meanwhile."""
    dirs = claimed(log_dir)
    fill(open_log(dirs), 5)
    killed(dirs)
    dirs = opened(log_dir)
    dirs.recover_logs([WantedLog(ORDERS, ID, SMALL)], now_ms=0)
    old = open_log(dirs)
    log = open_log(dirs, topic_id=OTHER_ID)
    assert (log.log_start_offset, log.log_end_offset, log.topic_id) == (0, 0, OTHER_ID)
    assert list(dirs.logs()) == [log]
    (stray,) = log_dir.glob("orders-0.*-stray")
    assert old.dir == stray
    with pytest.raises(KafkaStorage, match="belongs to no topic"):
        append(old, batch())
    fill(log, 3)
    assert len(read_values(log)) == 3  # Nothing of the old files is read under the same names.
    dirs.close()
    dirs = opened(log_dir)
    assert open_log(dirs, topic_id=OTHER_ID).log_end_offset == 3
    dirs.close()


def test_what_a_power_cut_left_of_a_log_that_was_never_flushed_is_not_taken_for_a_younger_one(
    log_dir: Path,
) -> None:
    flushed, empty = TopicPartition("orders", 1), TopicPartition("orders", 2)
    dirs = claimed(log_dir)
    fill(open_log(dirs), 5)
    kept = open_log(dirs, flushed)
    fill(kept, 7)
    kept.flush()
    open_log(dirs, empty)
    killed(dirs)
    for partition in (ORDERS, empty):
        (log_dir / str(partition) / "partition.metadata").unlink()
    reports = Reports()
    dirs = opened(log_dir, reports=reports)
    dirs.set_aside_nameless()
    assert dict(dirs.found_logs()) == {flushed: ID, empty: None}
    assert reports.mention("whose topic is not known")
    assert open_log(dirs, flushed).log_end_offset == 7
    assert open_log(dirs, topic_id=OTHER_ID).log_end_offset == 0
    (stray,) = log_dir.glob("orders-0.*-stray")
    assert any(path.stat().st_size for path in stray.glob("*.log"))
    dirs.close()


def test_logs_of_before_there_were_topic_ids_are_kept_after_any_stop(log_dir: Path) -> None:
    """A recovery point says that a log was flushed; a clean stop says it of all."""
    dirs = claimed(log_dir)
    fill(open_log(dirs), 5)
    dirs.close()
    (log_dir / "orders-0" / "partition.metadata").unlink()
    for is_clean in (True, False):
        dirs = opened(log_dir)
        assert dirs.was_clean == is_clean
        dirs.set_aside_nameless()
        assert list(dirs.found_logs()) == [(ORDERS, None)]
        killed(dirs)
    dirs = opened(log_dir)
    assert open_log(dirs).log_end_offset == 5
    dirs.close()


@pytest.mark.parametrize("has_records", [True, False])
def test_an_id_is_flushed_at_once_only_where_no_first_flush_is_sure_to_come(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, has_records: bool
) -> None:
    """Thousands of new logs must not wait for a disk each; an old one has records to lose."""
    dirs = claimed(log_dir)
    log = open_log(dirs)
    if has_records:
        fill(log, 5)
    killed(dirs)
    (log_dir / "orders-0" / "partition.metadata").unlink()
    synced = syncs_noted(monkeypatch)
    dirs = opened(log_dir)
    log = open_log(dirs)
    wanted = {str(log.dir / "partition.metadata.tmp"), str(log.dir)}
    assert wanted <= synced if has_records else not wanted & synced
    fill(log, 5)
    log.flush()
    assert {str(log.dir / "partition.metadata"), str(log.dir)} <= synced
    dirs.close()


def syncs_noted(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What is flushed from here on."""
    noted: set[str] = set()
    monkeypatch.setattr(
        os, "fsync", lambda fd: noted.add(str(Path(f"/proc/self/fd/{fd}").readlink()))
    )
    return noted


@pytest.mark.parametrize("is_deleted", [True, False])
def test_what_was_noted_of_an_older_log_does_not_count_even_after_a_kill(
    log_dir: Path, is_deleted: bool
) -> None:
    """Else the new log would begin where the old one did, without the records before that."""
    dirs = claimed(log_dir)
    old = open_log(dirs)
    fill(old, 30)
    old.flush()
    old.delete_records_before(20)
    old.cleaned_offset = 10
    note_all(dirs)
    if is_deleted:
        dirs.delete_log(ORDERS, now_ms=0)
    new = open_log(dirs, topic_id=OTHER_ID)
    fill(new, 5)
    new.flush()
    killed(dirs)
    dirs = opened(log_dir)
    found = open_log(dirs, topic_id=OTHER_ID)
    assert (found.log_start_offset, found.log_end_offset) == (0, 5)
    assert (found.high_watermark, found.recovery_point, found.cleaned_offset) == (0, 0, None)
    dirs.close()


def note_all(dirs: LogDirs) -> None:
    dirs.write_start_offsets()
    dirs.write_high_watermarks()
    dirs.write_recovery_points()
    dirs.write_cleaned_offsets()


def test_a_log_made_anew_while_notes_are_written_does_not_get_the_old_ones_offsets(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notes are written in a thread: what the loop does meanwhile comes in between."""
    dirs = claimed(log_dir)
    old = open_log(dirs)
    fill(old, 30)
    old.flush()
    old.delete_records_before(20)
    begun, may_end = threading.Event(), threading.Event()
    fsync = os.fsync

    def slow_fsync(fd: int) -> None:
        if threading.current_thread() is writing:
            begun.set()
            assert may_end.wait(60)
        fsync(fd)

    def make_anew() -> None:
        dirs.delete_log(ORDERS, now_ms=0)
        fill(open_log(dirs, topic_id=OTHER_ID), 25)

    monkeypatch.setattr(os, "fsync", slow_fsync)
    writing = threading.Thread(target=dirs.write_start_offsets)
    making = threading.Thread(target=make_anew)
    writing.start()
    assert begun.wait(60)
    making.start()
    making.join(0.1)  # It has to wait for the disk; one that does not is done by then.
    may_end.set()
    writing.join()
    making.join()
    killed(dirs)
    dirs = opened(log_dir)
    assert open_log(dirs, topic_id=OTHER_ID).log_start_offset == 0
    dirs.close()


def test_a_log_moved_away_while_its_return_is_noted_is_not_believed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the file said before it came back is outdated, and what it says now is so as well."""
    dirs = claimed(tmp_path / "a", tmp_path / "b")
    here, there = dirs.dirs
    log = open_log(dirs)
    fill(log, 5)
    log.flush()
    dirs.write_recovery_points()

    def move() -> None:
        home = here if ORDERS in here.logs else there
        target = there if home is here else here
        log = home.logs[ORDERS]
        copy = dirs.new_copy(log, target.path, now_ms=0)
        fill(copy, 5)
        copy.flush()
        dirs.take_copy(log, copy, now_ms=0)

    def moved_once(_fd: int) -> None:
        monkeypatch.undo()
        move()

    move()
    move()
    monkeypatch.setattr(os, "fsync", moved_once)
    dirs.write_recovery_points()
    assert ORDERS in there.logs
    dirs.delete_log(ORDERS, now_ms=0)
    new = open_log(dirs, topic_id=OTHER_ID)
    fill(new, 2)
    killed(dirs)
    dirs = opened(tmp_path / "a", tmp_path / "b")
    assert open_log(dirs, topic_id=OTHER_ID).recovery_point == 0
    dirs.close()


def test_nothing_is_noted_once_the_directory_may_be_anothers(log_dir: Path) -> None:
    dirs = claimed(log_dir)
    fill(open_log(dirs), 3)
    dirs.close()
    note = log_dir / "replication-offset-checkpoint"
    note.write_text("another's")
    dirs.write_high_watermarks()
    assert note.read_text() == "another's"


def test_many_logs_made_anew_cost_one_flush_of_each_note(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions = [TopicPartition("orders", number) for number in range(20)]
    dirs = claimed(log_dir)
    for partition in partitions:
        fill(open_log(dirs, partition), 3)
    dirs.close()
    dirs = opened(log_dir)
    count = 0

    def synced(_fd: int) -> None:
        nonlocal count
        count += 1

    monkeypatch.setattr(os, "fsync", synced)
    for partition in partitions:
        assert open_log(dirs, partition, OTHER_ID).log_end_offset == 0
    assert count == 4  # Recovery points and high watermarks, each a file and its directory.
    dirs.close()


def test_strays_are_renamed_and_never_deleted(log_dir: Path) -> None:
    dirs = claimed(log_dir)
    fill(open_log(dirs), 5)
    dirs.close()
    dirs = opened(log_dir)
    moved = dirs.set_aside(ORDERS)
    assert moved.is_dir()
    assert list(dirs.found_logs()) == []
    dirs.delete_expired(1 << 60)
    assert moved.is_dir()
    dirs.close()


def test_a_deleted_log_is_removed_after_the_delay_even_by_the_next_process(log_dir: Path) -> None:
    dirs = claimed(log_dir)
    fill(open_log(dirs), 5)
    fill(open_log(dirs, TopicPartition("orders", 1)), 5)
    dirs.delete_log(ORDERS, now_ms=1000)
    assert not (log_dir / "orders-0").exists()
    assert dirs.delete_expired(1000 + 59_999) == 0
    assert dirs.delete_expired(1000 + 60_000) == 1
    assert not list(log_dir.glob("*-delete"))
    assert open_log(dirs).log_end_offset == 0  # A topic of the name may be made at once.
    dirs.delete_log(TopicPartition("orders", 1), now_ms=1000)
    dirs.close()
    assert list(log_dir.glob("*-delete"))
    dirs = opened(log_dir, now_ms=5000)
    dirs.delete_expired(5000 + 60_000)
    assert not list(log_dir.glob("*-delete"))
    dirs.close()


def test_a_partition_in_two_directories_is_refused(log_dir: Path) -> None:
    for name in ("a", "b"):
        (log_dir / name / "orders-0").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"orders-0 is in .*a and in .*b"):
        opened(log_dir / "a", log_dir / "b")


def test_a_log_that_cannot_be_opened_says_why(log_dir: Path) -> None:
    dirs = claimed(log_dir)
    append(open_log(dirs), batch())
    dirs.close()
    (log_dir / "orders-0" / "partition.metadata").write_text("rubbish")
    dirs = opened(log_dir)
    with pytest.raises(KafkaStorage, match=r"partition.metadata"):
        open_log(dirs)
    dirs.close()
