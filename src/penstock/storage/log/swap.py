"""Putting cleaned segments in the place of others, crash or no crash.

    written     as `.cleaned`; a restart drops them
    offered     all are `.swap`; a restart completes the swap
    taken       they are the log's; the others are `.deleted`

Between these steps the disk is asked to keep them, which takes its time, so the log's lock is held
only for the renames. If the log loses segments meanwhile, by truncation or retention, the offer is
withdrawn: neither we nor a restart may bring back what went.
"""

from collections.abc import Sequence
from threading import Lock

from penstock.storage.directories.durable_file import sync_directory
from penstock.storage.log.removal import doom
from penstock.storage.log.state import LogState
from penstock.storage.segments.files import SWAP
from penstock.storage.segments.segment import Segment


def swap(
    log: LogState, lock: Lock, new: Sequence[Segment], old: Sequence[Segment], *, due_ms: int
) -> bool:
    """Whether the new segments are in the log now; if not, they are deleted."""
    for segment in new:
        segment.sync()
    with lock:
        if not _offer(log, new, old):
            return False
    sync_directory(log.dir)
    with lock:
        try:
            if not _take(log, new, old, due_ms=due_ms):
                return False
        except OSError as error:
            # Names and files may not agree any more; the next start puts that right.
            log.failure = f"cleaned segments could not take their place: {error}"
            raise
    sync_directory(log.dir)
    return True


def _offer(log: LogState, new: Sequence[Segment], old: Sequence[Segment]) -> bool:
    if not _are_in_place(log, old):
        _delete(new)
        return False
    # From the last on: a crash in between leaves the first `.cleaned`, which voids the others.
    for segment in sorted(new, key=lambda segment: -segment.base_offset):
        segment.rename(SWAP)
    log.offered = tuple(new)
    return True


def _take(log: LogState, new: Sequence[Segment], old: Sequence[Segment], *, due_ms: int) -> bool:
    if log.offered != tuple(new) or not _are_in_place(log, old):
        _delete(new)
        return False
    log.offered = ()
    log.row.replace(old, new)
    for segment in old:
        snapshot = None
        if segment.base_offset not in log.row.bases:
            snapshot = log.producer_state.forget_snapshot(segment.base_offset)
        doom(log, segment, snapshot, due_ms=due_ms)
    for segment in new:
        segment.rename("")
    return True


def _are_in_place(log: LogState, old: Sequence[Segment]) -> bool:
    return log.failure is None and set(old) <= set(log.row.segments[:-1])


def _delete(segments: Sequence[Segment]) -> None:
    for segment in segments:
        segment.delete()
