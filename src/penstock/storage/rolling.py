"""Closing the active segment and beginning the next, with the producers noted in between."""

import os

from penstock.storage.log_state import LogState
from penstock.storage.segment import Segment


def roll(log: LogState, base_offset: int, now_ms: int) -> Segment:
    """The new active segment; an OSError leaves the old one in its place."""
    old, config = log.row.active, log.config
    old.close_for_append()
    segment = None
    try:
        segment = Segment.create(
            log.dir,
            base_offset,
            config,
            now_ms=now_ms,
            jitter_ms=_random_below(config.segment_jitter_ms, config.segment_ms),
        )
        log.producer_state.table.end_offset = base_offset
        log.producer_state.take_snapshot()
    except OSError:
        if segment is not None:
            segment.delete()
        old.open_for_append()
        raise
    log.row.add(segment)
    return segment


def _random_below(jitter_ms: int, segment_ms: int) -> int:
    """A different part of the jitter for each segment, so that logs do not roll all at once."""
    limit = min(jitter_ms, segment_ms)
    return int.from_bytes(os.urandom(8), "big") % limit if limit > 0 else 0
