"""The rate of compaction, on a clock that only the test moves."""

import pytest

from penstock.storage.cleaner_pace import Pace

MB = 1_000_000


class Clock:
    """Time passes while somebody listens."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.pauses: list[float] = []

    def listen(self, timeout_s: float) -> None:
        if timeout_s:
            self.pauses.append(timeout_s)
            self.now_s += timeout_s

    def now(self) -> float:
        return self.now_s


def test_work_takes_as_long_as_the_rate_asks_for() -> None:
    clock = Clock()
    pace = Pace(10 * MB, listen=clock.listen, now_s=clock.now)
    for _ in range(1_000):
        pace.spend(50_000)
    assert clock.now_s - 100 == pytest.approx(5.0, rel=0.05)


def test_without_a_limit_nobody_waits() -> None:
    clock = Clock()
    pace = Pace(1.7976931348623157e308, listen=clock.listen, now_s=clock.now)
    for _ in range(1_000):
        pace.spend(MB)
    assert clock.pauses == []
    assert pace.total_bytes == 1_000 * MB


def test_a_low_rate_makes_many_short_pauses() -> None:
    clock = Clock()
    pace = Pace(1_000, listen=clock.listen, now_s=clock.now)
    for _ in range(100):
        pace.spend(100)
    assert clock.now_s - 100 == pytest.approx(10.0, rel=0.05)
    assert max(clock.pauses) < 0.2


def test_a_new_rate_counts_from_when_it_is_set() -> None:
    clock = Clock()
    pace = Pace(MB, listen=clock.listen, now_s=clock.now)
    pace.spend(MB)
    before_s = clock.now_s
    pace.set_rate(100 * MB)
    for _ in range(100):
        pace.spend(MB)
    assert clock.now_s - before_s == pytest.approx(1.0, rel=0.05)


def test_there_is_time_to_listen_at_full_speed() -> None:
    heard = []
    pace = Pace(float("inf"), listen=heard.append, now_s=lambda: 0.0)
    for _ in range(100):
        pace.spend(100_000)
    assert len(heard) > 20
