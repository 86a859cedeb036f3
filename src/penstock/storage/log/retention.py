"""Which of a log's oldest segments may go: pure rules, as Apache Kafka has them.

Segments go from the oldest on, and the first that must stay keeps all behind it. Nothing at or
above the high watermark goes, because a reader or a follower may still need it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from penstock.storage.log.config import LogConfig


class Aging(Protocol):
    """What a rule asks of a segment."""

    base_offset: int
    size: int

    def largest_timestamp_ms(self) -> int: ...


class RetentionVerdict(NamedTuple):
    """How many of the oldest segments may go, and why, in a sentence for the log."""

    segment_count: int
    reason: str


def deletable(
    segments: Sequence[Aging],
    config: LogConfig,
    *,
    now_ms: int,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    count_max: int | None = None,
) -> RetentionVerdict:
    """The rule that lets the most segments go, of which no more than `count_max` do so now."""
    ends = [segment.base_offset for segment in segments[1:]] + [log_end_offset]
    verdicts = [_before_start(segments, ends, log_start_offset)]
    if config.is_deleted_by_age_or_size:
        verdicts += [_too_old(segments[:count_max], config, now_ms), _too_large(segments, config)]
    count, reason = max(verdicts, key=lambda verdict: verdict.segment_count)
    count = count if count_max is None else min(count, count_max)
    return RetentionVerdict(_committed(segments, ends, count, high_watermark), reason)


def _before_start(
    segments: Sequence[Aging], ends: list[int], log_start_offset: int
) -> RetentionVerdict:
    # The last segment stays: it is where the log goes on.
    count = _leading(range(len(segments) - 1), lambda number: ends[number] <= log_start_offset)
    return RetentionVerdict(count, f"all of it is before the log start offset {log_start_offset}")


def _too_old(segments: Sequence[Aging], config: LogConfig, now_ms: int) -> RetentionVerdict:
    limit_ms = config.retention_ms
    if limit_ms < 0:
        return RetentionVerdict(0, "")
    count = _leading(
        range(len(segments)),
        lambda number: now_ms - segments[number].largest_timestamp_ms() > limit_ms,
    )
    return RetentionVerdict(count, f"its largest timestamp is older than retention.ms ({limit_ms})")


def _too_large(segments: Sequence[Aging], config: LogConfig) -> RetentionVerdict:
    limit_bytes = config.retention_bytes
    if limit_bytes < 0:
        return RetentionVerdict(0, "")
    excess = sum(segment.size for segment in segments) - limit_bytes
    count = 0
    for segment in segments:
        excess -= segment.size
        if excess < 0:
            break
        count += 1
    return RetentionVerdict(count, f"the log is larger than retention.bytes ({limit_bytes})")


def _committed(segments: Sequence[Aging], ends: list[int], count: int, high_watermark: int) -> int:
    """Of the first `count`, those below the high watermark, without an empty last one."""

    def may_go(number: int) -> bool:
        is_empty_last = number == len(segments) - 1 and not segments[number].size
        return ends[number] <= high_watermark and not is_empty_last

    return _leading(range(count), may_go)


def _leading(numbers: range, holds: Callable[[int], bool]) -> int:
    """How many of the first numbers a condition holds for, up to the first it does not."""
    for number in numbers:
        if not holds(number):
            return number
    return len(numbers)
