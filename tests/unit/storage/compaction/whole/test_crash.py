"""A cleaning that is killed between any two of its steps on disk leaves a log that is whole."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.storage.compacted import (
    COMPACT,
    begin,
    clean_all,
    clean_once,
    job_of,
    keyed,
    read_committed,
    read_keyed,
)
from tests.unit.storage.made import Reports, append, marker, new_log, read_batches

from penstock.errors import KafkaStorage
from penstock.storage.compaction.rewrite import clean
from penstock.storage.log.log import Log

CONFIG = replace(COMPACT, segment_bytes=500)
NOW_MS = 5_000


class Killed(BaseException):
    """The process ends here."""


class Steps:
    """Counts what changes the disk; from one step on, nothing gets there any more."""

    def __init__(self, limit: int) -> None:
        self.count = 0
        self.limit = limit

    def guard(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            if self.count >= self.limit:
                raise Killed
            self.count += 1
            return real(*arguments, **named)

        return step

    @contextmanager
    def counting(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with monkeypatch.context() as patched:
            for name in ("pwrite", "pwritev", "fsync", "fdatasync", "ftruncate", "truncate"):
                patched.setattr(os, name, self.guard(getattr(os, name)))
            patched.setattr(os, "utime", self.guard(os.utime))
            patched.setattr(os, "open", self.opening(os.open))
            for name in ("replace", "unlink"):
                patched.setattr(Path, name, self.guard(getattr(Path, name)))
            yield

    def opening(self, real: Callable[..., int]) -> Callable[..., int]:
        """Only an open that may make a file is a step."""
        guarded = self.guard(real)

        def step(path: object, flags: int, *mode: int) -> int:
            opened: int = (guarded if flags & os.O_CREAT else real)(path, flags, *mode)
            return opened

        return step


def make_log(root: Path) -> Log:
    """Several segments with overwritten keys, tombstones and both kinds of transactions."""
    log = new_log(root, CONFIG)
    append(log, keyed([(b"gone", b"1"), (b"a", b"1"), (b"b", b"1")]))
    append(log, keyed([(b"a", b"2")], producer=(7, 0, 0), is_transactional=True))
    append(log, keyed([(b"b", b"2")], producer=(8, 0, 0), is_transactional=True))
    append(log, marker(7, 0, is_commit=False))
    append(log, marker(8, 0))
    append(log, keyed([(b"gone", None), (b"c", b"1")]))
    for number in range(12):
        append(log, keyed([(b"k%d" % (number % 5), b"v%d" % number), (b"d", b"%d" % number)]))
    append(log, keyed([(b"a", b"3")], producer=(7, 0, 1), is_transactional=True))
    append(log, marker(7, 0))
    log.roll(0)
    append(log, keyed([(b"b", b"in the active segment")]))
    log.flush()
    return log


def copied(log: Log, root: Path) -> Path:
    root.mkdir()
    return Path(shutil.copytree(log.dir, root / log.dir.name))


def reopen(directory: Path, recovery_point: int) -> Log:
    log = Log.open(
        directory,
        config=CONFIG,
        now_ms=0,
        clean=False,
        recovery_point=recovery_point,
        report=Reports(),
    )
    log.high_watermark = log.log_end_offset
    return log


def newest(log: Log) -> dict[bytes, tuple[int, bytes]]:
    """The last value of every key that has one."""
    keys = {offset: key for offset, key, _ in read_keyed(log)}
    found = {keys[offset]: (offset, value) for offset, value in read_committed(log)}
    return {
        key: (offset, value)
        for key, (offset, value) in found.items()
        if key is not None and value is not None
    }


def test_a_kill_at_any_step_loses_nothing_and_the_next_cleaning_finishes(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (log_dir / "made").mkdir()
    made = make_log(log_dir / "made")
    expected = newest(made)
    cleaned = reopen(copied(made, log_dir / "cleaned"), made.recovery_point)
    clean_all(cleaned, now_ms=NOW_MS)
    finished = read_keyed(cleaned)
    assert len(finished) < len(read_keyed(made))
    assert newest(cleaned) == expected

    limit, was_killed = 0, True
    while was_killed:
        directory = copied(made, log_dir / str(limit))
        log = reopen(directory, made.recovery_point)
        with Steps(limit).counting(monkeypatch), suppress(Killed):
            clean_once(log, now_ms=NOW_MS)
            was_killed = False
        # Another name: files that the killed process had open must not be taken for new ones.
        again = reopen(directory.rename(log_dir / f"after-{limit}"), made.recovery_point)
        assert newest(again) == expected, f"killed after {limit} steps"
        assert again.log_end_offset == made.log_end_offset
        offsets = [header.base_offset for header, _ in read_batches(again)]
        assert offsets == sorted(set(offsets))
        assert not [p for p in again.dir.iterdir() if p.suffix in (".cleaned", ".swap", ".deleted")]
        clean_all(again, now_ms=NOW_MS)
        assert read_keyed(again) == finished, f"killed after {limit} steps"
        shutil.rmtree(again.dir)
        limit += 1
    assert limit > 50  # It was not over before it began.


def test_a_truncation_between_offer_and_swap_is_not_undone(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is cut while the disk is busy with the names of the cleaned segments."""
    log = make_log(log_dir)
    log.recovery_point = 0
    cleaning = begin(log, now_ms=NOW_MS)
    assert cleaning is not None
    cut: list[int] = []

    def sync_and_cut(path: Path) -> None:
        if not cut:
            cut.append(4)
            log.truncate_to(4)

    def hand_over(old: list[int], new: list[int]) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("penstock.storage.log.swap.sync_directory", sync_and_cut)
            assert cleaning.swap(old, new, NOW_MS) is False
        raise Killed

    with suppress(Killed):
        clean(job_of(cleaning, now_ms=NOW_MS), spend=lambda _: None, hand_over=hand_over)
    assert cut == [4]
    cleaning.finish(20)
    assert log.cleaned_offset is None
    assert log.log_end_offset == 4
    again = reopen(log.dir, 0)
    assert again.log_end_offset == 4
    assert [header.base_offset for header, _ in read_batches(again)] == [0, 3]


def test_a_swap_that_the_disk_refuses_halfway_takes_the_log_offline(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(log_dir)
    expected = newest(log)
    cleaning = begin(log, now_ms=NOW_MS)
    assert cleaning is not None

    def refuse(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    def hand_over(old: list[int], new: list[int]) -> None:
        with monkeypatch.context() as patched:
            patched.setattr("penstock.storage.log.swap.doom", refuse)
            with pytest.raises(KafkaStorage):
                cleaning.swap(old, new, NOW_MS)
        raise Killed

    with suppress(Killed):
        clean(job_of(cleaning, now_ms=NOW_MS), spend=lambda _: None, hand_over=hand_over)
    with pytest.raises(KafkaStorage):
        log.health()
    assert newest(reopen(log.dir, log.recovery_point)) == expected
