"""Closing the active segment and beginning the next, with the producers noted in between."""

import os
from collections.abc import Iterator

from penstock.storage.log.appending import NO_TIMESTAMP, Batches
from penstock.storage.log.state import LogState
from penstock.storage.segments.segment import Segment


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


def split_at_rolls(log: LogState, batches: Batches, now_ms: int) -> Iterator[Batches]:
    """Batches that fit one segment each; what was given is written before more is taken."""
    while batches:
        count = _count_before_roll(log, batches, now_ms)
        yield batches[:count]
        batches = batches[count:]


def _count_before_roll(log: LogState, batches: Batches, now_ms: int) -> int:
    """How many go into one segment; nearly always all do, which is asked once then."""
    active, config = log.row.active, log.config
    size = sum(len(batch) for _, batch in batches)
    newest = max(header.max_timestamp for header, _ in batches)
    last_offset = batches[-1][0].last_offset
    if not active.must_roll(size, last_offset, newest, now_ms, config):
        return len(batches)
    size, newest = 0, NO_TIMESTAMP
    for count, (header, batch) in enumerate(batches):
        size += len(batch)
        newest = max(newest, header.max_timestamp)
        if count and active.must_roll(size, header.last_offset, newest, now_ms, config):
            return count
    return len(batches)
