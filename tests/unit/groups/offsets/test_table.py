"""Committed offsets, and what open transactions may yet make of them."""

from penstock.groups.offsets.table import GroupOffsets
from penstock.groups.record_formats import CommittedOffset


def at(offset: int, record_offset: int = 0) -> CommittedOffset:
    return CommittedOffset(offset, -1, "", 0, record_offset=record_offset)


def test_a_pending_offset_counts_only_once_its_transaction_commits() -> None:
    offsets = GroupOffsets()
    offsets.put_pending(7, "g", "t", 0, at(5))
    assert offsets.get("g", "t", 0) is None
    assert offsets.is_pending("g", "t", 0)
    offsets.complete(7, is_committed=True, marker_offset=9)
    found = offsets.get("g", "t", 0)
    assert found is not None and found.offset == 5
    assert not offsets.is_pending("g", "t", 0)
    assert not offsets.has_pending("g")


def test_an_aborted_offset_never_was() -> None:
    offsets = GroupOffsets()
    offsets.put("g", "t", 0, at(1))
    offsets.put_pending(7, "g", "t", 0, at(5, record_offset=1))
    offsets.complete(7, is_committed=False, marker_offset=9)
    found = offsets.get("g", "t", 0)
    assert found is not None and found.offset == 1


def test_the_later_record_wins_over_the_later_decision() -> None:
    offsets = GroupOffsets()
    offsets.put_pending(7, "g", "t", 0, at(5, record_offset=1))
    offsets.put("g", "t", 0, at(9, record_offset=2))
    offsets.complete(7, is_committed=True, marker_offset=9)
    found = offsets.get("g", "t", 0)
    assert found is not None and found.offset == 9


def test_a_marker_decides_only_over_what_lies_before_it() -> None:
    offsets = GroupOffsets()
    offsets.put_pending(7, "g", "t", 0, at(5, record_offset=1))
    offsets.put_pending(7, "g", "t", 1, at(6, record_offset=4))
    offsets.complete(7, is_committed=True, marker_offset=3)
    assert offsets.get("g", "t", 0) == at(5, record_offset=1)
    assert offsets.get("g", "t", 1) is None
    assert offsets.is_pending("g", "t", 1)
    assert not offsets.is_pending("g", "t", 0)
    offsets.complete(7, is_committed=False, marker_offset=8)
    assert offsets.get("g", "t", 1) is None
    assert not offsets.has_pending("g")


def test_ending_a_transaction_nobody_began_changes_nothing() -> None:
    offsets = GroupOffsets()
    offsets.complete(7, is_committed=True, marker_offset=9)
    assert len(offsets) == 0


def test_removing_an_offset_takes_what_is_pending_with_it() -> None:
    offsets = GroupOffsets()
    offsets.put("g", "t", 0, at(1))
    offsets.put_pending(7, "g", "t", 0, at(5))
    offsets.remove("g", "t", 0)
    offsets.complete(7, is_committed=True, marker_offset=9)
    assert offsets.get("g", "t", 0) is None
    assert set(offsets.groups()) == set()


def test_partitions_names_decided_and_undecided_ones_once() -> None:
    offsets = GroupOffsets()
    offsets.put("g", "t", 0, at(1))
    offsets.put_pending(7, "g", "t", 0, at(5))
    offsets.put_pending(7, "g", "t", 1, at(5))
    assert sorted(offsets.partitions("g")) == [("t", 0), ("t", 1)]


def test_the_groups_of_a_topic_are_those_with_an_offset_in_it() -> None:
    offsets = GroupOffsets()
    offsets.put("g", "t", 0, at(1))
    offsets.put("g", "t", 1, at(1))
    offsets.put("h", "u", 0, at(1))
    offsets.put_pending(7, "p", "t", 0, at(5))
    assert offsets.groups_of_topic("t") == {"g", "p"}
    offsets.remove("g", "t", 0)
    assert offsets.groups_of_topic("t") == {"g", "p"}
    offsets.remove("g", "t", 1)
    offsets.complete(7, is_committed=True, marker_offset=9)
    assert offsets.groups_of_topic("t") == {"p"}
    assert offsets.groups_of_topic("u") == {"h"}
