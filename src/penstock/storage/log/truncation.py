"""Cutting a log off at its end, as a follower does that parted from its leader.

Epochs and producers are cut too: they are functions of the batches that are left. The files of
dropped segments are renamed at once and removed with the next chores.
"""

from penstock.storage.log.config import LONG_MAX
from penstock.storage.log.recovery import deep_snapshot, replay_producers
from penstock.storage.log.removal import doom, withdraw
from penstock.storage.log.state import LogState
from penstock.storage.segments.row import SegmentRow
from penstock.storage.segments.segment import Segment


def truncate_to(log: LogState, offset: int) -> None:
    """Forget everything from an offset on; epochs are cut even where the log ends already."""
    if offset < log.row.first.base_offset:
        restart_at(log, offset)
    elif offset < log.log_end_offset:
        _cut(log, offset)
    else:
        log.epoch_history.truncate_from_end(log.log_end_offset)


def _cut(log: LogState, offset: int) -> None:
    withdraw(log)
    row = log.row
    # The batch with the offset may be in an earlier segment than the offset's own.
    later = [segment for segment in row.segments[1:] if segment.base_offset > offset]
    row.replace(later, [])
    for segment in later:
        doom(log, segment, log.producer_state.forget_snapshot(segment.base_offset), due_ms=0)
    row.active.truncate_to(offset)
    log.producer_state.drop_outside(log.log_start_offset, offset)
    log.epoch_history.truncate_from_end(offset)
    _reload_producers(log, offset)
    log.ends_at(offset)


def _reload_producers(log: LogState, end_offset: int) -> None:
    table = log.producer_state.table
    if not table.entries and not table.open and not table.completed:
        table.end_offset = end_offset  # Without producers at the old end there are none before it.
        return
    log.producer_state.load(
        log_start_offset=min(log.log_start_offset, end_offset),
        snapshot_offset_max=deep_snapshot(log.row, end_offset),
        now_ms=0,
        expiration_ms=LONG_MAX,  # Removing idle producers is left to housekeeping.
        report=log.report,
    )
    replay_producers(log.row, log.producer_state.table, end_offset)


def restart_at(log: LogState, offset: int) -> None:
    """Forget everything and go on at another offset."""
    withdraw(log)
    old = log.row.segments
    for segment in old:
        doom(log, segment, None, due_ms=0)
    log.producer_state.restart_at(offset)
    log.row = SegmentRow([Segment.create(log.dir, offset, log.config, now_ms=0)])
    log.epoch_history.clear()
    log.ends_at(offset)
    log.log_start_offset = log.high_watermark = offset  # A start above the watermark is no start.
