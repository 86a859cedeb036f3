"""The rate of compaction on a clock that only the test moves, and when it gets no time at all."""

import pytest

from penstock.storage.compaction.pace import Pace, Starved, Times, Watch, processor_times

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


class Machine:
    """A clock, and what the kernel would say."""

    def __init__(self) -> None:
        self.now_s = 50.0
        self.ran_s = 1.0
        self.waited_s = 1.0

    def times(self) -> Times | None:
        return self.ran_s, self.waited_s

    def go(self, *, ran_s: float, waited_s: float, slept_s: float = 0.0) -> None:
        self.ran_s += ran_s
        self.waited_s += waited_s
        self.now_s += ran_s + waited_s + slept_s


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def watch(machine: Machine) -> Watch:
    return Watch(lambda: machine.now_s, machine.times)


def test_waiting_nearly_always_is_starving(machine: Machine, watch: Watch) -> None:
    machine.go(ran_s=0.2, waited_s=10.0)
    with pytest.raises(Starved):
        watch.check()


def test_a_fair_share_is_enough(machine: Machine, watch: Watch) -> None:
    for _ in range(5):
        machine.go(ran_s=2.0, waited_s=9.0)
        watch.check()


def test_one_bad_moment_is_not_a_famine(machine: Machine, watch: Watch) -> None:
    machine.go(ran_s=0.0, waited_s=9.0)
    watch.check()
    machine.go(ran_s=5.0, waited_s=0.0)
    watch.check()


def test_sleeping_is_not_starving(machine: Machine, watch: Watch) -> None:
    machine.go(ran_s=0.001, waited_s=0.5, slept_s=60.0)
    watch.check()


def test_each_job_counts_for_itself(machine: Machine, watch: Watch) -> None:
    machine.go(ran_s=0.0, waited_s=30.0)
    watch.begin()
    machine.go(ran_s=3.0, waited_s=8.0)
    watch.check()


def test_a_kernel_that_does_not_tell_is_taken_for_a_kind_one() -> None:
    now = iter([0.0, 100.0, 100.0])
    Watch(lambda: next(now), lambda: None).check()


def test_this_kernel_tells() -> None:
    times = processor_times()
    assert times is None or times[0] > 0
