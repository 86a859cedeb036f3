"""Disks that fail for good: their directory goes offline, and no other, and is not trusted."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.storage.made import SMALL, Reports, fill, read_values

from penstock.errors import KafkaStorage
from penstock.records.topic_partition import TopicPartition
from penstock.storage.directories.log_dir import LogDir
from penstock.storage.directories.log_dirs import LogDirs
from penstock.storage.log.log import Log

ID = b"a" * 16
EIO, EROFS, ENOSPC = 5, 30, 28


@pytest.fixture
def dirs(log_dir: Path) -> LogDirs:
    found = LogDirs.open([log_dir / "one", log_dir / "two"], now_ms=0, report=Reports())
    found.claim(broker_id=0, cluster_id="cluster")
    return found


def open_log(dirs: LogDirs, number: int) -> Log:
    partition = TopicPartition("orders", number)
    return dirs.open_log(partition, topic_id=ID, config=SMALL, now_ms=0)


def refused(number: int) -> Callable[..., None]:
    def call(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize("number", [EIO, EROFS])
def test_a_write_that_fails_for_good_takes_the_directory_offline_and_no_other(
    dirs: LogDirs, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    first, second, third = (open_log(dirs, n) for n in range(3))
    assert first.dir.parent == third.dir.parent != second.dir.parent
    told: list[LogDir] = []
    dirs.on_failed = told.append
    fill(first, 2)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", refused(number))
        patched.setattr(os, "pwritev", refused(number))
        with pytest.raises(KafkaStorage):
            fill(first, 1)
    assert [d.path for d in told] == [first.dir.parent] == [d.path for d in dirs.failed]
    for log in (first, third):
        with pytest.raises(KafkaStorage, match="disk"):
            fill(log, 1)
    fill(second, 1)
    assert open_log(dirs, 3).dir.parent == second.dir.parent
    with pytest.raises(KafkaStorage, match="offline"):
        open_log(dirs, 0)  # Though it is open: nobody shall host it again.
    with pytest.raises(KafkaStorage, match="offline"):
        dirs.dirs[0].open_log(first.topic_partition, topic_id=ID, config=SMALL, now_ms=0)


def test_a_full_disk_is_no_failed_disk(dirs: LogDirs, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(dirs, 0)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", refused(ENOSPC))
        patched.setattr(os, "pwritev", refused(ENOSPC))
        with pytest.raises(KafkaStorage):
            fill(log, 1)
    assert dirs.failed == ()
    fill(log, 1)


@pytest.mark.parametrize("number", [EIO, ENOSPC])
def test_a_failed_flush_is_never_tried_again(
    dirs: LogDirs, log_dir: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    log, other = open_log(dirs, 0), open_log(dirs, 1)
    fill(log, 3)
    fill(other, 3)
    synced: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refused(number))
        with pytest.raises(KafkaStorage):
            log.flush()
    real = os.fsync

    def noted(fd: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        real(fd)

    monkeypatch.setattr(os, "fsync", noted)
    with pytest.raises(KafkaStorage):
        log.flush()
    dirs.write_recovery_points()
    dirs.close()
    assert synced and not [path for path in synced if path.startswith(str(log.dir.parent))]
    assert not list(log.dir.parent.glob(".kafka_cleanshutdown"))
    assert list(other.dir.parent.glob(".kafka_cleanshutdown"))


def test_a_checkpoint_that_cannot_be_written_tells_of_the_disk(
    dirs: LogDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(dirs, 0)
    fill(log, 3)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refused(EIO))
        with pytest.raises(KafkaStorage, match="checkpoint"):
            dirs.write_recovery_points()
    assert [d.path for d in dirs.failed] == [log.dir.parent]
    dirs.write_recovery_points()  # Of those that are left.
    assert len(read_values(log)) == 3


def test_a_partition_on_a_failed_disk_can_be_let_go(dirs: LogDirs) -> None:
    log = open_log(dirs, 0)
    fill(log, 3)
    dirs.dirs[0].fail(OSError(EIO, os.strerror(EIO)))
    dirs.delete_log(log.topic_partition, now_ms=0)
    assert log.dir.exists()
    assert log.topic_partition not in dict(dirs.found_logs())
