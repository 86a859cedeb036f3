"""Percentiles from buckets are right within a sixteenth, over the last windows only."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.telemetry.histogram import Histogram, bucket_of, bucket_top_us

DURATIONS_US = st.integers(0, 2**32 - 1)


@given(DURATIONS_US)
def test_a_bucket_is_at_most_a_sixteenth_wide(duration_us: int) -> None:
    top_us = bucket_top_us(bucket_of(duration_us))
    assert duration_us <= top_us <= duration_us * 17 / 16


@given(DURATIONS_US, DURATIONS_US)
def test_longer_durations_are_never_in_lower_buckets(one: int, other: int) -> None:
    assert (bucket_of(one) <= bucket_of(other)) or one > other


def test_durations_out_of_range_are_counted_at_the_ends() -> None:
    assert bucket_of(-5) == 0
    assert bucket_of(2**40) == bucket_of(2**32 - 1)


@given(st.lists(DURATIONS_US, min_size=1, max_size=50), st.floats(0.01, 1))
def test_a_percentile_is_that_of_the_sorted_durations(durations_us: list[int], part: float) -> None:
    histogram = Histogram()
    for duration_us in durations_us:
        histogram.observe(duration_us / 1_000_000)
    ranked = sorted(durations_us)
    exact_us = next(d for i, d in enumerate(ranked, 1) if i >= part * len(ranked))
    (found_s,) = histogram.percentiles(part)
    # Turning microseconds into seconds and back may lose one of them.
    assert exact_us - 1 <= found_s * 1_000_000 + 1e-6 <= exact_us * 17 / 16 + 1


def test_sums_last_and_percentiles_forget() -> None:
    histogram = Histogram()
    histogram.observe(10.0)
    assert histogram.percentiles(0.5, 0.99) == [histogram.percentiles(0.5)[0]] * 2
    histogram.roll()
    histogram.observe(0.001)
    assert histogram.percentiles(1.0)[0] >= 10.0
    histogram.roll()
    assert histogram.percentiles(1.0)[0] < 0.0011
    histogram.roll()
    assert histogram.percentiles(0.5) == [0.0]
    assert (histogram.count, histogram.sum_s) == (2, 10.001)
