"""A disk that is full or broken: never half a batch, and all is well once there is room."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.disk import small_disk
from tests.unit.storage.made import append, batch, fill, marker, new_log, read_values, reopened

from penstock.errors import KafkaStorage, OutOfOrderSequence
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log

ROOMY = LogConfig(segment_bytes=1 << 20, index_interval_bytes=100)


def state_of(log: Log) -> tuple[object, ...]:
    """All that a failed append must leave alone."""
    return (
        log.log_end_offset,
        log.log_start_offset,
        log.last_stable_offset,
        log.size_bytes,
        log.producers(),
        log.epochs,
        log.aborted_transactions(0, 1 << 40),
        [segment.offsets.file.count for segment in log.segments],
        read_values(log),
    )


@contextmanager
def file_size_limit(bytes_max: int) -> Iterator[None]:
    """Writes beyond this position fail; the one that crosses it is short."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 1, 60, 61, 500])
def test_a_short_write_is_taken_back(log_dir: Path, room: int) -> None:
    log = new_log(log_dir, ROOMY)
    fill(log, 5)
    before, size = state_of(log), log.size_bytes
    with file_size_limit(size + room), pytest.raises(KafkaStorage):
        append(log, batch([b"x" * 1000], producer=(7, 0, 0), is_transactional=True))
    assert state_of(log) == before
    assert log.segments[-1].log_path.stat().st_size == size
    log.health()
    append(log, batch([b"x" * 1000], producer=(7, 0, 0), is_transactional=True))
    assert read_values(reopened(log)) == read_values(log)


def test_of_several_batches_all_are_taken_back(log_dir: Path) -> None:
    log = new_log(log_dir, ROOMY)
    fill(log, 2)
    before = state_of(log)
    many = [batch([b"x" * 300]) for _ in range(10)]
    with file_size_limit(log.size_bytes + 2000), pytest.raises(KafkaStorage):
        append(log, *many)
    assert state_of(log) == before
    append(log, *many)
    assert len(read_values(log)) == 12


def of_producer(sequence: int, *, epoch: int = 0) -> bytes:
    return batch([b"%d" % sequence * 300], producer=(7, epoch, sequence))


@pytest.mark.parametrize("known", [0, 3])
def test_what_comes_behind_a_refused_batch_waits_for_it(log_dir: Path, known: int) -> None:
    """A client that hears of a wrong sequence number instead may write other records twice."""
    log = new_log(log_dir, ROOMY)
    for sequence in range(known):
        append(log, of_producer(sequence))
    with file_size_limit(log.size_bytes), pytest.raises(KafkaStorage):
        append(log, of_producer(known))
    for sequence in range(known + 1, known + 5):
        with pytest.raises(KafkaStorage, match="send that first"):
            append(log, of_producer(sequence))
    append(log, batch([b"of another"], producer=(8, 0, 0)))
    for sequence in range(known, known + 5):
        append(log, of_producer(sequence))
    assert len(read_values(log)) == known + 6


def test_a_duplicate_of_what_is_there_does_not_wait(log_dir: Path) -> None:
    log = new_log(log_dir, ROOMY)
    append(log, of_producer(0))
    with file_size_limit(log.size_bytes), pytest.raises(KafkaStorage):
        append(log, of_producer(1))
    assert append(log, of_producer(0)).is_duplicate
    with pytest.raises(KafkaStorage):
        append(log, of_producer(2))


def test_who_gives_a_refused_batch_up_hears_of_the_gap_or_begins_anew(log_dir: Path) -> None:
    log = new_log(log_dir, ROOMY)
    append(log, of_producer(0))
    with file_size_limit(log.size_bytes), pytest.raises(KafkaStorage):
        append(log, of_producer(1))
    for _ in range(5):
        with pytest.raises(KafkaStorage):
            append(log, of_producer(2))
    with pytest.raises(OutOfOrderSequence):
        append(log, of_producer(2))
    append(log, of_producer(0, epoch=1))


def test_a_short_write_that_can_go_on_does(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, data[:50], at))
    monkeypatch.setattr(os, "pwritev", lambda fd, data, at: real(fd, data[0][:50], at))
    log = new_log(log_dir, ROOMY)
    append(log, batch([b"x" * 300]))
    append(log, batch([b"y" * 300]), batch([b"z" * 300]))
    assert [value[:1] for _, value in read_values(log) if value] == [b"x", b"y", b"z"]


def failing(real: Callable[..., object], times: list[int]) -> Callable[..., object]:
    def call(*args: object, **more: object) -> object:
        if times:
            times.pop()
            raise OSError(28, "No space left on device")
        return real(*args, **more)

    return call


def test_an_error_even_while_taking_back_leaves_only_whole_batches(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log(log_dir, ROOMY)
    fill(log, 3)
    values = read_values(log)
    with monkeypatch.context() as patched:
        real = os.pwrite
        writes = iter([lambda fd, data, at: real(fd, data[:100], at)])

        def torn(fd: int, data: memoryview, at: int) -> int:
            for write in writes:
                return write(fd, data, at)
            raise OSError(28, "No space left on device")

        patched.setattr(os, "pwrite", torn)
        patched.setattr(os, "ftruncate", failing(os.ftruncate, [1]))
        with pytest.raises(KafkaStorage):
            append(log, batch([b"x" * 300]))
    assert log.segments[-1].log_path.stat().st_size > log.size_bytes
    assert read_values(log) == values
    assert read_values(reopened(log, recovery_point=0)) == values
    append(log, batch([b"short"]))
    again = reopened(log, clean=True)
    assert again.segments[-1].log_path.stat().st_size == again.size_bytes
    assert len(read_values(again)) == 4


def test_a_marker_whose_index_cannot_be_written_is_not_appended(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log(log_dir, ROOMY)
    append(log, batch(producer=(7, 0, 0), is_transactional=True))
    before = state_of(log)
    abort = marker(7, 0, is_commit=False)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", failing(os.pwrite, [1]))
        with pytest.raises(KafkaStorage):
            append(log, abort)
    assert state_of(log) == before
    with monkeypatch.context() as patched:
        calls = [1]
        real = os.pwrite

        def second_fails(fd: int, data: memoryview, at: int) -> int:
            if not calls:
                raise OSError(28, "No space left on device")
            calls.pop()
            return real(fd, data, at)

        patched.setattr(os, "pwrite", second_fails)
        with pytest.raises(KafkaStorage):
            append(log, abort)
    assert state_of(log) == before
    append(log, abort)
    assert len(log.aborted_transactions(0, 100)) == 1


def test_a_roll_that_fails_keeps_the_old_segment(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log(log_dir, LogConfig(segment_bytes=400))
    fill(log, 3)
    before = state_of(log)
    real = os.open

    def no_new_files(path: object, flags: int, *more: int) -> int:
        if flags & os.O_TRUNC:
            raise OSError(28, "No space left on device")
        return real(path, flags, *more)  # type: ignore[arg-type]

    for _ in range(2):
        with monkeypatch.context() as patched:
            patched.setattr(os, "open", no_new_files)
            with pytest.raises(KafkaStorage):
                append(log, batch([b"x" * 200]))
        assert state_of(log) == before
    append(log, batch([b"x" * 200]))
    assert len(log.segments) == 2


def test_an_epoch_that_cannot_be_noted_is_not_begun(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log(log_dir, ROOMY)
    fill(log, 3)
    before = state_of(log)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", failing(os.pwrite, [1]))
        with pytest.raises(KafkaStorage):
            append(log, batch(), leader_epoch=5)
    assert state_of(log) == before
    assert (log.dir / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"


def test_a_full_disk_heals_when_space_returns(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", size_bytes=1 << 20) as disk:
        ballast = disk / "ballast"
        log = new_log(disk, LogConfig(segment_bytes=300_000, index_interval_bytes=4096))
        ballast.write_bytes(bytes(400_000))
        stored = 0
        with pytest.raises(KafkaStorage):
            for _ in range(100):
                append(log, batch([b"x" * 20_000], producer=(7, 0, stored)))
                stored += 1
        assert 10 < stored < 100
        for _ in range(3):
            with pytest.raises(KafkaStorage):
                append(log, batch([b"x" * 20_000], producer=(7, 0, stored)))
        assert len(read_values(log)) == stored
        ballast.unlink()
        append(log, batch([b"x" * 20_000], producer=(7, 0, stored)))
        again = reopened(log)
        assert len(read_values(again)) == stored + 1
        assert again.producers()[0].last_sequence == stored


def test_an_index_that_cannot_be_written_does_not_fail_the_append(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entries wait in memory until a flush, a roll or a later page writes them."""
    log = new_log(log_dir, LogConfig(index_interval_bytes=0, segment_bytes=1 << 20))
    real = os.open

    def no_index(path: object, *more: int) -> int:
        if str(path).endswith("index"):
            raise OSError(28, "No space left on device")
        return real(path, *more)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", no_index)
        fill(log, 300)
        with pytest.raises(KafkaStorage):
            log.flush()
    fill(log, 10)
    log.flush()
    assert log.recovery_point == 310
    assert [offset for offset, _ in read_values(log, 200)] == list(range(200, 310))
    again = reopened(log, clean=True)
    assert [offset for offset, _ in read_values(again, 150)] == list(range(150, 310))
