"""Chores on a log of many segments: done piece by piece, with turns for others in between."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.storage.made import append, batch, new_log

from penstock.broker.upkeep import housekeeping
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log

SEGMENTS = 300
LATER_MS = 10**9


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Every batch is a segment of its own, and all of them are old."""
    made = new_log(tmp_path, LogConfig(segment_bytes=150, retention_ms=1, file_delete_delay_ms=0))
    for _ in range(SEGMENTS):
        append(made, batch([b"x" * 50], timestamps=0), now_ms=0)
    assert len(made.segments) == SEGMENTS
    return made


def seen_by_others(
    log: Log, chore: Callable[[Any], Coroutine[Any, Any, None]], left: Callable[[], int]
) -> list[int]:
    """How much is left at every turn that others have during a chore."""
    broker = SimpleNamespace(
        partitions=SimpleNamespace(hosted=lambda: [SimpleNamespace(log=log)]),
        log_dirs=SimpleNamespace(take_expired=lambda _: []),
        now_ms=lambda: LATER_MS,
    )

    async def look_on() -> list[int]:
        seen = [left()]
        working = asyncio.create_task(chore(broker))
        while not working.done():
            await asyncio.sleep(0)
            seen.append(left())
        await working
        return seen

    return asyncio.run(look_on())


def largest_step(seen: list[int]) -> int:
    return max(before - after for before, after in pairwise(seen))


def test_retention_takes_many_segments_out_a_few_at_a_time(log: Log) -> None:
    seen = seen_by_others(log, housekeeping._retain, lambda: len(log.segments))
    assert largest_step(seen) <= 20
    assert (len(log.segments), log.log_start_offset) == (1, SEGMENTS)


def test_the_files_of_many_segments_are_deleted_a_few_at_a_time(log: Log) -> None:
    log.retain(LATER_MS)

    def left() -> int:
        return len(list(log.dir.glob("*.deleted")))

    assert left() > SEGMENTS
    seen = seen_by_others(log, housekeeping._delete_expired_files, left)
    assert largest_step(seen) <= 100
    assert left() == 0


@pytest.mark.parametrize(
    "chore", [chore for chore in housekeeping.CHORES if "checkpoint" in chore.name],
    ids=lambda chore: chore.name,
)  # fmt: skip
def test_others_have_their_turns_while_the_disk_is_slow(chore: housekeeping.Chore) -> None:
    """Also a stop: it waits for what is being written, and the loop goes on meanwhile."""
    begun, may_end = threading.Event(), threading.Event()

    def write() -> None:
        begun.set()
        assert may_end.wait(60)

    names = ("write_recovery_points", "write_start_offsets", "write_high_watermarks")
    broker: Any = SimpleNamespace(log_dirs=SimpleNamespace(**dict.fromkeys(names, write)))

    async def look_on() -> None:
        working: asyncio.Future[None] = asyncio.ensure_future(chore.work(broker))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        working.cancel()
        await asyncio.sleep(0.001)
        assert not working.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await working

    asyncio.run(look_on())
