"""What is wrong with a cluster, and what its numbers say."""

import pytest
from tests.support.cluster_states import T, broker, cluster, partition

from penstock.status.judging import bytes_text, problems


def test_a_topic_that_wants_no_more_replicas_is_not_at_its_minimum() -> None:
    alone = partition(replicas=(0,), isr=(0,), isr_min=1)
    assert problems(cluster(alone)) == []


def test_the_worst_comes_first_and_is_told_once() -> None:
    partitions = [partition(n, leader=None, isr=()) for n in range(7)]
    offline, *others = problems(cluster(*partitions, partition(7, isr=(0, 1))))
    assert offline == (
        "7 partitions with no leader, so nobody can read or write them: "
        "t-0, t-1, t-2, t-3, t-4 and 2 more"
    )
    assert len(others) == 1


def test_lag_is_what_followers_lack() -> None:
    brokers = (
        broker(0, ends={T[0]: 100, T[1]: 7}),
        broker(1, ends={T[0]: 90, T[1]: 9}),
        broker(2, ends={}, size_bytes=None, failures=("silent",)),
    )
    state = cluster(partition(0), partition(1, leader=1), brokers=brokers)
    assert [state.lag(one) for one in state.brokers] == [2, 10, None]


def test_leaders_are_counted_beside_preferred_ones() -> None:
    state = cluster(partition(0, leader=1), partition(1, replicas=(1, 2, 0), leader=1))
    assert (state.leaders()[1], state.preferred()[1], state.replicas()[1]) == (2, 1, 2)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1500, "1.5 KB"),
        (2_000_000_000, "2.0 GB"),
        (10**16, "10000.0 TB"),
    ],
)
def test_sizes_are_short(size: int, text: str) -> None:
    assert bytes_text(size) == text
