"""When a process in the idle class has to say that it gets no time."""

import pytest

from penstock.storage.cleaner_priority import Starved, Times, Watch, processor_times


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
