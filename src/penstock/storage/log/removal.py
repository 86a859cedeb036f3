"""Taking segments out of a log: they are renamed now, and their files go after a delay.

All of this is done under the log's lock.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from penstock.storage.log.retention import deletable
from penstock.storage.log.rolling import roll
from penstock.storage.log.state import LogState
from penstock.storage.segments.files import DELETED
from penstock.storage.segments.segment import Segment


class DeletedSegment(NamedTuple):
    """A segment that retention took out of the log."""

    base_offset: int
    size_bytes: int
    reason: str


def retain(log: LogState, now_ms: int, *, count_max: int | None = None) -> list[DeletedSegment]:
    """Take out what the rules let go; an active segment that may go is rolled first."""
    count, reason = deletable(
        log.row.segments,
        log.config,
        now_ms=now_ms,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        high_watermark=log.high_watermark,
        count_max=count_max,
    )
    old = log.row.segments[:count]
    if not old:
        return []
    if count == len(log.row):
        roll(log, log.log_end_offset, now_ms)
    _remove_oldest(log, old, due_ms=now_ms + log.config.file_delete_delay_ms)
    return [DeletedSegment(segment.base_offset, segment.size, reason) for segment in old]


def _remove_oldest(log: LogState, old: Sequence[Segment], *, due_ms: int) -> None:
    """Move the log's start first: nobody shall look for what is being renamed."""
    withdraw(log)
    row = log.row
    start_offset = row.segments[len(old)].base_offset
    if start_offset > log.log_start_offset:
        log.starts_at(start_offset)
    row.replace(old, [])
    for segment in old:
        doom(log, segment, log.producer_state.forget_snapshot(segment.base_offset), due_ms=due_ms)


def withdraw(log: LogState) -> None:
    """The log is about to change under an offer: a restart must not bring back what goes now."""
    for segment in log.offered:
        segment.delete()
    log.offered = ()


def doom(log: LogState, segment: Segment, snapshot: Path | None, *, due_ms: int) -> None:
    """Rename a segment's files, and the snapshot at its beginning, and note when they go."""
    paths = segment.rename(DELETED)
    if snapshot is not None:
        with suppress(FileNotFoundError):
            paths.append(snapshot.replace(snapshot.with_name(snapshot.name + DELETED)))
    log.doomed.add(paths, due_ms)


def leave(log: LogState, directory: Path) -> None:
    """Give the log's directory another name; files that are open do not mind."""
    log.dir.rename(directory)
    log.dir = directory
    for segment in log.row:
        segment.move_to(directory)
    log.producer_state.move_to(directory)
    log.epoch_history.move_to(directory)
    log.doomed.move_to(directory)
