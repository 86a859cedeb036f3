"""Replacing segments as compaction does, and finding a replacement half done."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.storage.made import SMALL, Reports, append, batch, fill, new_log, read_values

from penstock.records.batch import read_header
from penstock.storage.log.log import Log
from penstock.storage.segments.segment import Placed, Segment


def cleaned(log: Log, old: list[Segment], kept: set[int]) -> Segment:
    """One segment with those batches of others whose base offset is kept."""
    new = Segment.create(log.dir, old[0].base_offset, log.config, now_ms=0, suffix=".cleaned")
    for segment in old:
        data, at = segment.log_path.read_bytes(), 0
        while at < segment.size:
            header = read_header(data, at)
            view = memoryview(data)[at : at + header.size_bytes]
            if header.base_offset in kept:
                place = Placed(len(view), header.last_offset, header.max_timestamp)
                new.append([view], len(view), [place])
            at += header.size_bytes
    new.close_for_append()
    return new


def a_log(root: Path) -> Log:
    log = new_log(root)
    fill(log, 30)
    assert len(log.segments) >= 4
    return log


def offsets(log: Log) -> list[int]:
    return [offset for offset, _ in read_values(log)]


def test_replaced_segments_are_read_at_once_and_after_a_restart(log_dir: Path) -> None:
    log = a_log(log_dir)
    old = list(log.segments[:2])
    held = log.read(0, bytes_max=1 << 20, end_offset=30, min_one=True).records
    kept = {1, 4, 9}
    rest = list(range(log.segments[2].base_offset, 30))
    log.replace_segments([cleaned(log, old, kept)], old, now_ms=0)
    assert offsets(log) == sorted(kept) + rest
    assert len(held) > 0
    assert not isinstance(held, bytes)
    assert len(held.read()) == len(held)
    log.close()
    again = Log.open(log.dir, config=SMALL, now_ms=0, clean=True, report=Reports())
    assert offsets(again) == sorted(kept) + rest
    assert not list(log.dir.glob("*.deleted"))
    assert not list(log.dir.glob("*.swap"))


class Crash(Exception):
    """The process ends here."""


@pytest.mark.parametrize("steps", range(18))
def test_a_crash_during_a_replacement_leaves_the_old_or_the_new(
    log_dir: Path, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = a_log(log_dir)
    old = list(log.segments[:2])
    before = offsets(log)
    kept = {1, 4, 9}
    after = sorted(kept) + list(range(log.segments[2].base_offset, 30))
    new = cleaned(log, old, kept)
    log.flush()
    real, count = Path.replace, [0]

    def replace(path: Path, target: Path) -> Path:
        if count[0] == steps:
            raise Crash
        count[0] += 1
        return real(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace)
        with suppress(Crash):
            log.replace_segments([new], old, now_ms=0)
    reports = Reports()
    again = Log.open(
        log.dir, config=SMALL, now_ms=0, clean=False, recovery_point=30, report=reports
    )
    assert offsets(again) in (before, after)
    assert offsets(again) == (before if steps < 3 else after)
    assert not [path for path in log.dir.iterdir() if path.suffix in (".swap", ".cleaned")]


def test_an_unfinished_cleaning_is_dropped_with_what_belongs_to_it(log_dir: Path) -> None:
    """With several new segments, a `.swap` above a `.cleaned` is of the same replacement."""
    log = a_log(log_dir)
    log.close()
    before = offsets(log)
    first, second = log.segments[:2]
    shutil.copy(first.log_path, f"{first.log_path}.cleaned")
    shutil.copy(second.log_path, f"{second.log_path}.swap")
    reports = Reports()
    again = Log.open(log.dir, config=SMALL, now_ms=0, clean=True, report=reports)
    assert offsets(again) == before
    assert reports.mention("unfinished cleaning")
    assert {path.suffix for path in log.dir.iterdir()}.isdisjoint({".swap", ".cleaned"})


def test_deleted_files_of_an_earlier_process_are_removed(log_dir: Path) -> None:
    log = a_log(log_dir)
    append(log, batch())
    log.close()
    (log.dir / f"{0:020d}.log.deleted").touch()
    (log.dir / f"{5:020d}.snapshot.deleted").touch()
    Log.open(log.dir, config=SMALL, now_ms=0, clean=True, report=Reports())
    assert not list(log.dir.glob("*.deleted"))
