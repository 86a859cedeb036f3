"""penstock cluster status: the screen that shows how a cluster is, and what is wrong with it."""

import pytest
from rich.console import Console
from tests.support.cluster_states import T, broker, cluster, directory, partition

from penstock.cli.tools.cluster import screen as cluster_screen
from penstock.client.operations.reassignments import PartitionReassignment
from penstock.status.judging import problems, warnings
from penstock.status.values import ClusterState, DirectoryState


def screen(state: ClusterState) -> str:
    console = Console(width=120, highlight=False, force_terminal=False)
    with console.capture() as capture:
        cluster_screen.show(state, console)
    return capture.get()


@pytest.mark.parametrize("usable_bytes", [0, 4096, (1 << 20) - 1])
def test_a_full_disk_is_named_with_its_broker_and_what_is_left(usable_bytes: int) -> None:
    brokers = (broker(0), broker(1, directories=[directory(usable_bytes), directory(50 << 30)]))
    state = cluster(brokers=(*brokers, broker(2)))
    (told,) = problems(state)
    assert told.startswith("broker 1: the disk under /data/a is full, so records are refused")
    assert f"({usable_bytes} bytes) of 107.4 GB are left" in told
    assert warnings(state) == []
    shown = screen(state)
    assert "disk full" in shown
    assert "Nothing is wrong" not in shown


@pytest.mark.parametrize(
    ("one", "is_nearly_full"),
    [
        (directory(4 << 30), True),
        (directory(6 << 30), False),
        (directory(20 << 30, total_bytes=1 << 40), False),
        (directory(9 << 30, total_bytes=1 << 40), True),
        (directory(2 << 20, total_bytes=48 << 20), True),
    ],
)
def test_a_disk_that_is_nearly_full_is_a_warning(one: DirectoryState, is_nearly_full: bool) -> None:
    state = cluster(brokers=(broker(0, directories=[one]), broker(1), broker(2)))
    assert problems(state) == []
    assert bool(warnings(state)) == is_nearly_full
    shown = screen(state)
    assert ("broker 0: the disk under /data/a is nearly full" in shown) == is_nearly_full
    assert "Nothing is wrong." in shown


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


def test_moves_are_shown_with_their_ends() -> None:
    moves = {at: PartitionReassignment(replicas=(3, 0, 1), adding=(3,), removing=(0,)) for at in T}
    shown = screen(cluster(moves=moves))
    assert "9 reassignments under way" in shown
    assert "t-0: 0,1 -> 3,1" in shown


def test_a_broker_that_is_gone_has_its_row() -> None:
    state = cluster(partition(replicas=(0, 1, 7), isr=(0, 1), isr_min=1))
    (row,) = [line for line in screen(state).splitlines() if line.strip().startswith("7 ")]
    assert row.rstrip().endswith("gone")
