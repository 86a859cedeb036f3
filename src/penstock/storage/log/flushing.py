"""Bringing a log to the disk, in two steps: gather under the lock, fsync without it.

Appends go on while the disk is busy; what comes in meanwhile is for the next flush.
"""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from penstock.storage.directories.checkpoints import PARTITION_METADATA
from penstock.storage.directories.durable_file import sync_directory, sync_file
from penstock.storage.log.state import LogState
from penstock.storage.segments.segment import Segment


class FlushWork(NamedTuple):
    """What one flush brings to the disk."""

    end_offset: int
    segments: list[Segment]
    snapshots: list[Path]
    cut_count: int


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
    if segments:
        log.epoch_history.settle(end_offset)
    snapshots = log.producer_state.unsynced_snapshots()
    return FlushWork(end_offset, segments, snapshots, log.cut_count)


def _sync_notes(log: LogState) -> None:
    """Small files of the log that were written without a flush, such as the topic's id."""
    if not log.epoch_history.is_synced:
        sync_file(log.epoch_history.path)
        log.epoch_history.is_synced = True
    if not log.recovery_point:
        with suppress(FileNotFoundError):
            sync_file(log.dir / PARTITION_METADATA)
        sync_directory(log.dir.parent)


def carry_out(log: LogState, work: FlushWork) -> None:
    """Flush; for this the lock is not needed.

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
        _sync_notes(log)
        sync_directory(log.dir)
    except OSError as error:
        log.take_offline(f"its records could not be flushed: {error}", error)
        log.health()


def settle(log: LogState, work: FlushWork) -> None:
    """Under the lock again: what was flushed need not be recovered.

    Unless the log was cut meanwhile: then other records may have those offsets by now.
    """
    log.producer_state.note_synced(work.snapshots)
    if log.cut_count == work.cut_count:
        log.recovery_point = max(log.recovery_point, work.end_offset)
