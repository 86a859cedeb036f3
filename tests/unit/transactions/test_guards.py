"""What a marker may end: the rule by itself, for every version and epoch."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.transactions.guards import Guards
from penstock.transactions.markers import TransactionMarker
from penstock.transactions.transaction import TV1, TV2

KEY = ("orders", 0, 7)

epochs = st.integers(0, 6)
versions = st.sampled_from([TV1, 1, TV2])


def put_up(guards: Guards, epoch: int, *, sequence: int = 0, leader_epoch: int = 0) -> object:
    return guards.put_up(KEY, epoch, sequence, leader_epoch=leader_epoch, now_ms=0)


@given(st.sets(epochs), epochs, versions)
def test_a_marker_ends_older_epochs_and_its_own_only_in_version_1(
    standing: set[int], marker_epoch: int, version: int
) -> None:
    guards = Guards()
    put = {
        epoch: guards.put_up(KEY, epoch, 0, leader_epoch=0, now_ms=0) for epoch in sorted(standing)
    }
    marker = TransactionMarker(7, marker_epoch, True, 0, version)
    guards.end(KEY, marker.last_epoch_ended)
    for epoch, guard in put.items():
        is_ended = epoch < marker_epoch or (epoch == marker_epoch and version < TV2)
        assert guard.is_over is is_ended
        assert guards.stands(KEY, epoch, guard) is not is_ended


@given(epochs, st.lists(epochs, max_size=5))
def test_markers_of_version_2_that_come_again_or_late_leave_a_transaction_alone(
    epoch: int, late: list[int]
) -> None:
    """The end of a transaction of epoch e carries e + 1; all before it carry e or less."""
    guards = Guards()
    guard = guards.put_up(KEY, epoch, 0, leader_epoch=0, now_ms=0)
    for behind in late:
        guards.end(KEY, TransactionMarker(7, max(epoch - behind, 0), True, 0, TV2).last_epoch_ended)
    assert not guard.is_over
    guards.end(KEY, TransactionMarker(7, epoch + 1, True, 0, TV2).last_epoch_ended)
    assert guard.is_over


def test_a_marker_ends_nothing_of_other_producers_and_partitions() -> None:
    guards = Guards()
    others = [("orders", 0, 8), ("orders", 1, 7), ("bills", 0, 7)]
    for key in others:
        guards.put_up(key, 0, 0, leader_epoch=0, now_ms=0)
    guards.end(KEY, 5)
    assert len(guards) == len(others)


def test_another_leadership_puts_up_a_guard_of_its_own() -> None:
    guards = Guards()
    first = put_up(guards, 0)
    assert put_up(guards, 0) is first
    assert put_up(guards, 0, leader_epoch=2) is not first
    assert len(guards) == 1
