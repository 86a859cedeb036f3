"""The reserve of file descriptors that new logs leave alone."""

import gc
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import KafkaStorage
from penstock.records.topic_partition import TopicPartition
from penstock.storage.directories.descriptors import left_for_logs, reserved
from penstock.storage.directories.log_dirs import LogDirs
from penstock.storage.log.config import LogConfig

ROOM = 10


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that may have only a few more logs than it has files open."""
    gc.collect()  # What other tests left behind would be closed in the middle of this one.
    highest = max(int(found.name) for found in Path("/proc/self/fd").iterdir())
    fillers = [os.open(os.devnull, os.O_RDONLY)]  # So that no free number lies below an open one.
    while fillers[-1] < highest:
        fillers.append(os.open(os.devnull, os.O_RDONLY))
    limit = next(n for n in range(10**6) if n - reserved(n) >= fillers[-1] + ROOM)
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (limit, limit))
    yield
    for filler in fillers:
        os.close(filler)


@pytest.mark.parametrize(("limit", "kept"), [(256, 64), (1024, 128), (20_000, 1024), (10**6, 1024)])
def test_a_share_is_reserved_but_never_more_than_a_thousand(limit: int, kept: int) -> None:
    assert reserved(limit) == kept


def test_each_open_file_leaves_one_less(little_room: None) -> None:
    before = left_for_logs()
    with Path(os.devnull).open():
        assert left_for_logs() < before
    assert left_for_logs() == before


def test_logs_stop_at_the_reserve_and_the_rest_stays_usable(
    tmp_path: Path, little_room: None
) -> None:
    dirs = LogDirs.open([tmp_path], now_ms=0, report=lambda _: None)

    def create(number: int) -> None:
        dirs.open_log(TopicPartition("t", number), topic_id=b"i" * 16, config=LogConfig(), now_ms=0)

    made = 0
    with pytest.raises(KafkaStorage, match=r"Not enough file descriptors.*ulimit -n"):
        while made < 10 * ROOM:
            create(made)
            made += 1
    assert 0 < made < 10 * ROOM  # Threads of other tests may still close files of theirs.
    assert not any(found.name == f"t-{made}" for found in tmp_path.iterdir())
    dirs.close()
