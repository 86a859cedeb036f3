"""Which segments may go, decided without a file in sight."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.log.config import LogConfig
from penstock.storage.log.retention import RetentionVerdict, deletable


@dataclass
class Fake:
    """A segment as the rules see it."""

    base_offset: int
    size: int
    timestamp: int

    def largest_timestamp_ms(self) -> int:
        return self.timestamp


def judged(
    segments: list[Fake],
    config: LogConfig,
    *,
    now_ms: int = 0,
    start: int = 0,
    high_watermark: int | None = None,
) -> RetentionVerdict:
    end = len(segments) * 10
    return deletable(
        segments,
        config,
        now_ms=now_ms,
        log_start_offset=start,
        log_end_offset=end,
        high_watermark=end if high_watermark is None else high_watermark,
    )


def row(sizes: list[int], times: list[int] | None = None) -> list[Fake]:
    stamps = times or [0] * len(sizes)
    return [Fake(n * 10, size, stamps[n]) for n, size in enumerate(sizes)]


KEEP = LogConfig(retention_ms=-1)


def test_the_first_segment_that_is_young_keeps_all_behind_it() -> None:
    verdict = judged(row([1] * 4, [0, 50, 10, 20]), LogConfig(retention_ms=60), now_ms=100)
    assert verdict.segment_count == 1
    assert "retention.ms (60)" in verdict.reason


def test_exactly_as_old_as_allowed_is_not_too_old() -> None:
    assert judged(row([1, 1]), LogConfig(retention_ms=60), now_ms=60).segment_count == 0
    assert judged(row([1, 1]), LogConfig(retention_ms=60), now_ms=61).segment_count == 2


def test_size_counts_what_would_be_left() -> None:
    config = LogConfig(retention_ms=-1, retention_bytes=100)
    assert judged(row([60, 50, 50]), config).segment_count == 1
    assert judged(row([61, 50, 50]), config).segment_count == 1
    assert judged(row([60, 50, 49]), config).segment_count == 0


def test_the_last_segment_goes_by_age_but_never_while_empty() -> None:
    config = LogConfig(retention_ms=1)
    assert judged(row([5, 5]), config, now_ms=100).segment_count == 2
    assert judged(row([5, 0]), config, now_ms=100).segment_count == 1


def test_segments_before_the_log_start_go_whatever_the_policy() -> None:
    config = LogConfig(retention_ms=1, cleanup_policy=frozenset({"compact"}))
    assert judged(row([1] * 4), config, now_ms=10**6, start=29).segment_count == 2
    assert judged(row([1] * 4), config, now_ms=10**6, start=30).segment_count == 3
    assert judged(row([1] * 4), config, now_ms=10**6, start=40).segment_count == 3


@given(
    sizes=st.lists(st.integers(0, 100), min_size=1, max_size=8),
    limit_bytes=st.integers(-1, 300),
    limit_ms=st.integers(-1, 100),
    times=st.lists(st.integers(0, 100), min_size=8, max_size=8),
    high_watermark=st.integers(0, 80),
    start=st.integers(0, 80),
)
def test_nothing_above_the_high_watermark_goes_and_each_that_goes_had_a_reason(
    sizes: list[int],
    limit_bytes: int,
    limit_ms: int,
    times: list[int],
    high_watermark: int,
    start: int,
) -> None:
    segments = row(sizes, times)
    config = LogConfig(retention_ms=limit_ms, retention_bytes=limit_bytes)
    verdict = judged(segments, config, now_ms=100, start=start, high_watermark=high_watermark)
    count = verdict.segment_count
    assert count * 10 <= high_watermark
    left = sum(sizes[count:])
    gone = segments[:count]
    is_too_old = limit_ms >= 0 and all(100 - s.timestamp > limit_ms for s in gone)
    is_too_large = 0 <= limit_bytes <= left
    assert not gone or is_too_old or is_too_large or count * 10 <= start
