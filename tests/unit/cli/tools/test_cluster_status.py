"""penstock cluster status: what is wrong with a cluster, and the screen that shows it."""

from typing import Any

import pytest
from rich.console import Console

from penstock.cli.tools import cluster_screen
from penstock.cli.tools.cluster_status import (
    BrokerState,
    ClusterState,
    PartitionState,
    problems,
)
from penstock.client.operations.reassignments import PartitionReassignment
from penstock.client.values import Node, TopicPartition

T = [TopicPartition("t", number) for number in range(9)]


def partition(number: int = 0, **more: Any) -> PartitionState:
    usual: dict[str, Any] = {
        "at": T[number],
        "leader": 0,
        "leader_epoch": 0,
        "replicas": (0, 1, 2),
        "isr": (0, 1, 2),
        "elr": (),
        "isr_min": 2,
    }
    return PartitionState(**{**usual, **more})


def broker(number: int, **more: Any) -> BrokerState:
    usual: dict[str, Any] = {
        "node": Node(number, "127.0.0.1", 9092 + number, f"rack-{number}"),
        "is_fenced": False,
        "ends": {},
        "size_bytes": 0,
    }
    return BrokerState(**{**usual, **more})


def cluster(*partitions: PartitionState, **more: Any) -> ClusterState:
    usual: dict[str, Any] = {
        "cluster_id": "an-id",
        "controller_id": 1,
        "brokers": (broker(0), broker(1), broker(2)),
        "topic_count": 1,
        "partitions": partitions or (partition(),),
    }
    return ClusterState(**{**usual, **more})


def screen(state: ClusterState) -> str:
    console = Console(width=120, highlight=False, force_terminal=False)
    with console.capture() as capture:
        cluster_screen.show(state, console)
    return capture.get()


def test_nothing_is_wrong_with_a_whole_cluster() -> None:
    assert problems(cluster()) == []
    shown = screen(cluster())
    assert "Nothing is wrong." in shown
    assert "controller broker 1" in shown
    assert "rack-2" in shown


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (cluster(partition(leader=None, isr=())), "1 partition with no leader"),
        (cluster(partition(isr=(0,))), "1 partition with fewer replicas in sync than min.insync"),
        (cluster(partition(isr=(0, 1))), "1 partition with just min.insync.replicas in sync"),
        (cluster(partition(isr=(0, 1), isr_min=1)), "1 partition with replicas that are not in"),
        (cluster(brokers=(broker(0), broker(1))), "broker 2 is gone; 1 partition had a replica"),
        (cluster(brokers=(broker(0), broker(1), broker(2, is_fenced=True))), "2 is fenced"),
        (
            cluster(brokers=(broker(0), broker(1), broker(2, failures=("no answer",)))),
            "broker 2: no answer",
        ),
        (cluster(controller_id=None), "there is no controller"),
    ],
)
def test_each_trouble_has_its_sentence(state: ClusterState, words: str) -> None:
    (told,) = problems(state)
    assert words in told
    assert "What is wrong:" in screen(state)


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


def test_moves_are_shown_with_their_ends() -> None:
    moves = {at: PartitionReassignment(replicas=(3, 0, 1), adding=(3,), removing=(0,)) for at in T}
    shown = screen(cluster(moves=moves))
    assert "9 reassignments under way" in shown
    assert "t-0: 0,1 -> 3,1" in shown


def test_a_broker_that_is_gone_has_its_row() -> None:
    state = cluster(partition(replicas=(0, 1, 7), isr=(0, 1), isr_min=1))
    (row,) = [line for line in screen(state).splitlines() if line.strip().startswith("7 ")]
    assert row.rstrip().endswith("gone")


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
    assert cluster_screen.bytes_text(size) == text
