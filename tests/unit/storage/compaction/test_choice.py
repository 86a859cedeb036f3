"""Which log is cleaned next, how far, and what is remembered of it."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.storage.compacted import COMPACT, clean_all, keyed
from tests.unit.storage.made import Reports, append, new_log

from penstock.records.topic_partition import TopicPartition
from penstock.storage.compaction.choice import examine
from penstock.storage.compaction.cleaner import Cleaner
from penstock.storage.directories.checkpoints import CLEANER_OFFSETS
from penstock.storage.directories.log_dirs import LogDirs
from penstock.storage.log.log import Log

HALF = replace(COMPACT, min_cleanable_dirty_ratio=0.5)


def written(
    root: Path, name: str, batches: int, *, config: object = HALF, timestamp: int = 1_000
) -> Log:
    """A log of so many closed segments, one batch each."""
    log = new_log(root, config, name=name)  # type: ignore[arg-type]
    add(log, batches, timestamp=timestamp)
    return log


def add(log: Log, batches: int, *, timestamp: int = 1_000) -> None:
    for number in range(batches):
        append(log, keyed([(b"k%d" % number, b"v" * 50)], timestamp=timestamp))
        log.roll(0)


def chosen(*logs: Log, now_ms: int = 0) -> Log | None:
    cleaning = Cleaner().choose(logs, now_ms)
    return cleaning.log if cleaning else None


def test_the_log_with_the_largest_dirty_share_is_next(log_dir: Path) -> None:
    cleaner, dirtier = written(log_dir, "a-0", 4), written(log_dir, "b-0", 4)
    for log, new in ((cleaner, 5), (dirtier, 9)):
        clean_all(log)
        add(log, new)
    assert examine(cleaner, 0).dirty_share == pytest.approx(5 / 9, abs=0.01)
    assert chosen(cleaner, dirtier) is dirtier
    assert chosen(cleaner) is cleaner


def test_a_log_below_its_ratio_waits(log_dir: Path) -> None:
    log = written(log_dir, "a-0", 10)
    clean_all(log)
    add(log, 9)
    assert chosen(log) is None
    log.reconfigure(replace(HALF, min_cleanable_dirty_ratio=0.4))
    assert chosen(log) is log


def test_the_active_segment_is_never_cleaned(log_dir: Path) -> None:
    log = new_log(log_dir, COMPACT)
    for _ in range(3):
        append(log, keyed([(b"a", b"1")]))
    assert chosen(log) is None
    assert examine(log, 0).dirty_bytes == 0


def test_logs_that_are_not_compacted_are_not_chosen(log_dir: Path) -> None:
    config = replace(COMPACT, cleanup_policy=frozenset({"delete"}))
    assert chosen(written(log_dir, "a-0", 4, config=config)) is None


def test_young_records_wait_for_the_smallest_lag(log_dir: Path) -> None:
    log = written(log_dir, "a-0", 2, config=replace(COMPACT, min_compaction_lag_ms=500))
    add(log, 2, timestamp=5_000)
    assert chosen(log, now_ms=1_400) is None
    assert examine(log, 1_600).end_offset == 2
    assert examine(log, 5_600).end_offset == 4


def test_records_older_than_the_largest_lag_do_not_wait_for_the_ratio(log_dir: Path) -> None:
    config = replace(HALF, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=500)
    log = written(log_dir, "a-0", 2, config=config)
    assert chosen(log, now_ms=1_500) is None
    assert examine(log, 1_700).overdue_ms == 200
    assert chosen(log, now_ms=1_700) is log


def test_a_segment_ends_within_the_largest_lag_so_that_it_can_be_cleaned(log_dir: Path) -> None:
    log = new_log(log_dir, replace(COMPACT, segment_ms=10_000, max_compaction_lag_ms=500))
    for timestamp in (1_000, 1_400, 1_600):
        append(log, keyed([(b"a", b"1")], timestamp=timestamp))
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_a_log_is_nobody_elses_while_it_is_cleaned(log_dir: Path) -> None:
    log, cleaner = written(log_dir, "a-0", 4), Cleaner()
    cleaning = cleaner.choose([log], 0)
    assert cleaning is not None
    assert cleaner.choose([log], 0) is None
    cleaning.close()
    assert cleaner.choose([log], 0) is not None


def test_a_log_that_another_took_since_it_was_examined_is_not_chosen(log_dir: Path) -> None:
    log, other, cleaner = written(log_dir, "a-0", 9), written(log_dir, "b-0", 3), Cleaner()
    examined = list(cleaner.examined([log, other], 0))
    theirs = cleaner.choose([log], 0)
    assert theirs is not None
    ours = cleaner.choose_of(examined, 0)
    assert ours is not None and ours.log is other
    other.rename_for_delete()
    ours.close()
    assert cleaner.choose_of(examined, 0) is None


def test_a_log_that_cannot_be_cleaned_is_not_chosen_again(log_dir: Path) -> None:
    log, other, cleaner = written(log_dir, "a-0", 9), written(log_dir, "b-0", 3), Cleaner()
    cleaning = cleaner.choose([log], 0)
    assert cleaning is not None
    cleaning.give_up("the CRC of a batch is wrong")
    cleaning.close()
    again = cleaner.choose([log, other], 0)
    assert again is not None and again.log is other
    assert cleaner.uncleanable[log.topic_partition] == (log, "the CRC of a batch is wrong")
    log.rename_for_delete()
    cleaner.choose([], 0)
    assert cleaner.uncleanable == {}


@pytest.mark.parametrize("noted", [None, 99, 1])
def test_a_noted_offset_that_is_not_in_the_log_means_its_start(
    log_dir: Path, noted: int | None
) -> None:
    log = written(log_dir, "a-0", 4)
    log.delete_records_before(2)
    log.cleaned_offset = noted
    assert examine(log, 0).first_dirty == 2


def test_how_far_logs_are_cleaned_is_kept_in_kafkas_file(log_dir: Path) -> None:
    partition = TopicPartition("orders", 3)

    def opened() -> tuple[LogDirs, Log]:
        dirs = LogDirs.open([log_dir], now_ms=0, report=Reports())
        dirs.claim(broker_id=0, cluster_id="c")
        return dirs, dirs.open_log(partition, topic_id=bytes(15) + b"1", config=COMPACT, now_ms=0)

    dirs, log = opened()
    log.assign_epoch_start(0, 0)
    add(log, 4)
    clean_all(log)
    dirs.write_cleaned_offsets()
    assert (log_dir / CLEANER_OFFSETS).read_text() == "0\n1\norders 3 4\n"
    dirs.close()
    dirs, log = opened()
    assert log.cleaned_offset == 4
    dirs.delete_log(partition, now_ms=0)
    dirs.write_cleaned_offsets()
    assert (log_dir / CLEANER_OFFSETS).read_text() == "0\n0\n"
    dirs.close()
