"""Bringing a log to the disk, in two steps: gather under the lock, fsync without it.

Appends go on while the disk is busy; what comes in meanwhile is for the next flush.
"""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from penstock.storage.durable_file import sync_directory, sync_file
from penstock.storage.log_state import LogState
from penstock.storage.segment import Segment


class FlushWork(NamedTuple):
    """What one flush brings to the disk."""

    end_offset: int
    segments: list[Segment]
    snapshots: list[Path]


def gather(log: LogState, *, closed_only: bool) -> FlushWork:
    """The segments behind the recovery point, with their indexes written to the page cache."""
    row = log.row
    end_offset = row.active.base_offset if closed_only else log.log_end_offset
    segments = [
        segment
        for number, segment in enumerate(row)
        if row.end_of(number, log.log_end_offset) > log.recovery_point
        and segment.base_offset < end_offset
    ]
    for segment in segments:
        segment.write_indexes()
    return FlushWork(end_offset, segments, log.producer_state.unsynced_snapshots())


def carry_out(log: LogState, work: FlushWork) -> None:
    """Flush, and move the recovery point.

    A failed fsync takes the log offline for good: the kernel may have dropped the pages, and a
    second fsync would not miss them.
    """
    if work.end_offset <= log.recovery_point and not work.snapshots:
        return
    try:
        for segment in work.segments:
            segment.sync()
        for path in work.snapshots:
            with suppress(FileNotFoundError):
                sync_file(path)
        sync_directory(log.dir)
        sync_directory(log.dir.parent)
    except OSError as error:
        log.failure = f"its records could not be flushed: {error}"
        log.health()
    log.producer_state.synced(work.snapshots)
    log.recovery_point = max(log.recovery_point, min(work.end_offset, log.log_end_offset))
