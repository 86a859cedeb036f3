"""Rates, pauses and buckets on a clock that the tests turn."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.quotas.rates import (
    THROTTLE_MS_MAX,
    QuotaWindow,
    SlidingSum,
    TokenBucket,
    throttle_ms,
)

WINDOW = QuotaWindow(samples=11, sample_ms=1000)
windows = st.builds(QuotaWindow, samples=st.integers(1, 12), sample_ms=st.integers(1, 3000))


class KafkasRate:
    """The same measure written another way: a ring of samples that is walked each time.

    In Kafka a sample that is too old begins again, empty, when somebody looks, and from then on
    counts as time in which nothing came: the rate then depends on when it was asked for, by less
    than a sample. Here, as in ours, an empty sample is no sample.
    """

    def __init__(self, window: QuotaWindow) -> None:
        self.window = window
        self.ring: list[list[float]] = []
        self.at = 0

    def record(self, amount: float, now_ms: int) -> None:
        if not self.ring:
            self.ring.append([now_ms, 0])
        if now_ms - self.ring[self.at][0] >= self.window.sample_ms:
            self.at = (self.at + 1) % self.window.samples
            if self.at == len(self.ring):
                self.ring.append([now_ms, 0])
            else:
                self.ring[self.at] = [now_ms, 0]
        self.ring[self.at][1] += amount

    def measure(self, now_ms: int) -> tuple[float, float]:
        """Amount per second, and the milliseconds it is measured over."""
        samples, sample_ms = self.window
        for sample in self.ring:
            if now_ms - sample[0] >= samples * sample_ms:
                sample[:] = [math.inf, 0]
        oldest = min((sample[0] for sample in self.ring), default=math.inf)
        oldest = now_ms if oldest == math.inf else oldest
        elapsed = now_ms - oldest
        full = elapsed // sample_ms
        if full < samples - 1:
            elapsed += (samples - 1 - full) * sample_ms
        elapsed = max(elapsed, 1)
        return sum(sample[1] for sample in self.ring) / elapsed * 1000, elapsed


@given(
    windows,
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 10_000)), max_size=60),
    st.integers(0, 40_000),
)
def test_a_rate_is_what_kafka_measures(
    window: QuotaWindow, recorded: list[tuple[int, int]], later_ms: int
) -> None:
    used, theirs = SlidingSum(window), KafkasRate(window)
    now_ms = 5_000
    for pause_ms, amount in recorded:
        now_ms += pause_ms
        used.add(amount, now_ms)
        theirs.record(amount, now_ms)
        rate, span_ms = theirs.measure(now_ms)
        assert used.per_second(now_ms) == pytest.approx(rate)
        assert used.span_ms(now_ms) == span_ms
        limit = 700
        expected = round((rate - limit) / limit * span_ms) if rate > limit else 0
        assert throttle_ms(used, limit, now_ms) == pytest.approx(expected, abs=1)
    rate, _ = theirs.measure(now_ms + later_ms)
    assert used.per_second(now_ms + later_ms) == pytest.approx(rate)


def test_a_newcomer_may_use_at_once_what_the_window_allows() -> None:
    used = SlidingSum(WINDOW)
    used.add(10 * 1000, 0)
    assert throttle_ms(used, 1000, 0) == 0
    used.add(1, 0)
    assert throttle_ms(used, 1000, 0) == 1


def test_time_before_the_client_came_counts_until_its_window_is_whole() -> None:
    used = SlidingSum(WINDOW)
    used.add(10_500, 0)
    assert [throttle_ms(used, 1000, at) for at in (0, 400, 1000)] == [500, 100, 500]
    assert [throttle_ms(used, 1000, at) for at in (10_000, 10_400, 10_500)] == [500, 100, 0]


def test_old_samples_are_forgotten_whole_and_leave_nothing() -> None:
    used = SlidingSum(WINDOW)
    used.add(0.1, 0)
    used.add(0.2, 500)
    used.add(4, 1000)
    assert (used.total, used.events) == (pytest.approx(4.3), 3)
    used.expire(11_000)
    assert (used.total, used.events) == (pytest.approx(4), 1)
    used.expire(12_000)
    assert (used.total, used.events) == (0, 0)


def test_an_average_is_of_what_came_lately() -> None:
    used = SlidingSum(WINDOW)
    assert used.average(0) == 0
    used.add(10, 0)
    used.add(30, 2000)
    assert used.average(2000) == 20
    assert used.average(11_000) == 30
    assert used.average(60_000) == 0


@pytest.mark.parametrize("limit", [0.0, 1e-9, 5e-324])
def test_a_pause_fits_into_an_answer(limit: float) -> None:
    used = SlidingSum(WINDOW)
    used.add(100_000_000, 0)
    assert throttle_ms(used, limit, 0) == THROTTLE_MS_MAX
    if limit:
        bucket = TokenBucket(WINDOW, limit=limit, now_ms=0)
        bucket.take(100_000_000, 0)
        assert bucket.debt_ms(0) == THROTTLE_MS_MAX


@given(windows, st.lists(st.integers(0, 20_000), max_size=300))
def test_a_sum_holds_no_more_samples_than_its_window(
    window: QuotaWindow, pauses: list[int]
) -> None:
    used = SlidingSum(window)
    now_ms = 0
    for pause_ms in pauses:
        now_ms += pause_ms
        used.add(1, now_ms)
        assert len(used._parts) <= window.samples


# Tokens


def test_a_bucket_is_full_at_first_and_never_fuller() -> None:
    bucket = TokenBucket(WINDOW, limit=2, now_ms=50)
    assert bucket.tokens == 22
    bucket.refill(1_000_000)
    assert bucket.tokens == 22


def test_a_debt_is_paid_at_the_rate_of_the_limit() -> None:
    bucket = TokenBucket(WINDOW, limit=2, now_ms=0)
    bucket.take(32, 0)
    assert bucket.tokens == -10
    assert bucket.debt_ms(0) == 5000
    assert bucket.debt_ms(4000) == 1000
    assert bucket.debt_ms(5000) == 0
    assert bucket.tokens == 0


@given(
    st.floats(0.1, 100),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 50)), max_size=60),
)
def test_a_strict_client_never_has_more_than_bucket_rate_and_one_request(
    limit: float, requests: list[tuple[int, int]]
) -> None:
    bucket, now_ms, taken = TokenBucket(WINDOW, limit=limit, now_ms=0), 0, 0
    largest = max((count for _, count in requests), default=0)
    for idle_ms, count in requests:
        now_ms += idle_ms
        if bucket.debt_ms(now_ms) == 0:
            bucket.take(count, now_ms)
            taken += count
    bound = limit * (now_ms / 1000 + 11) + largest
    assert taken <= bound + limit * len(requests) / 1000
