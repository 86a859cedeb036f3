"""A consumer group read back from its records: all kinds, old ones, and compacted logs."""

from itertools import permutations

from penstock.groups.consumer import records
from penstock.groups.consumer.member import ConsumerMember, MemberState
from penstock.groups.consumer.records import Change, Resolved
from penstock.groups.consumer.state import GroupState
from penstock.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    TopicPartitions,
)

TOPIC = bytes(15) + b"\x01"
A = ConsumerMember(
    member_id="a",
    epoch=5,
    previous_epoch=4,
    instance_id="one",
    topic_names=frozenset({"t"}),
    assigned={TOPIC: {0: 3}},
    revoking={TOPIC: {1: 4}},
    state=MemberState.UNREVOKED,
)
B = ConsumerMember(member_id="b", epoch=5, previous_epoch=5, assigned={TOPIC: {2: 5}})


def state_of(*changes: Change) -> GroupState:
    state = GroupState("g")
    for change in changes:
        state.apply(*change)
    return state


def all_of(member: ConsumerMember) -> list[Change]:
    return [
        records.member("g", member),
        records.target("g", member.member_id, {TOPIC: frozenset({0})}),
        records.current("g", member),
    ]


def facts(state: GroupState) -> dict[str, object]:
    return {name: getattr(state, name) for name in GroupState.__slots__}


def full() -> GroupState:
    resolved = Resolved(frozenset({"x"}), 1, 2)
    return state_of(
        *all_of(A),
        *all_of(B),
        records.pattern("g", "x.*", resolved),
        records.group_epoch("g", 6, 7),
        records.target_epoch("g", 6, 8),
    )


def test_compaction_may_leave_the_records_of_a_member_in_any_order() -> None:
    expected = facts(state_of(*all_of(A)))
    for order in permutations(all_of(A)):
        assert facts(state_of(*order)) == expected


def test_tombstones_leave_nothing_behind() -> None:
    state = full()
    for change in state.tombstones():
        state.apply(*change)
    assert state.is_deleted
    left = (state.members, state.target, state.patterns, state.owners, state.static_ids)
    assert left == ({}, {}, {}, {}, {})


def test_a_copy_changes_by_itself() -> None:
    state = full()
    before = facts(state.copy())
    copy = state.copy()
    for change in copy.tombstones():
        copy.apply(*change)
    assert facts(state) == before


def test_what_a_member_gives_up_is_not_free_for_others() -> None:
    state = full()
    assert [state.is_free(TOPIC, number, "b") for number in range(4)] == [False, False, True, True]
    assert [state.is_free(TOPIC, number, "a") for number in range(4)] == [True, True, False, True]


def test_a_member_that_is_gone_owns_nothing_even_if_the_log_lost_the_record_that_said_so() -> None:
    state = full()
    state.apply(*records.no_member("g", "a"))
    assert state.owners == {(TOPIC, 2): "b"}
    assert state.static_member("one") is None


def test_an_instance_id_belongs_to_the_member_that_came_last() -> None:
    state = state_of(
        *all_of(A), records.member("g", ConsumerMember(member_id="c", instance_id="one"))
    )
    state.apply(*records.no_member("g", "a"))
    assert state.static_ids == {"one": "c"}


def test_releases_that_kept_no_epochs_of_partitions_are_read() -> None:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a")
    partitions = [TopicPartitions(topic_id=TOPIC, partitions=[0, 1])]
    for epoch, assumed in ((4, 4), (-2, 0)):
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=epoch, previous_member_epoch=3, assigned_partitions=partitions
        )
        read = state_of((key, value)).members["a"].assigned
        assert read == {TOPIC: {0: assumed, 1: assumed}}


def test_a_state_of_a_later_release_is_kept_as_unknown() -> None:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a")
    value = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=4, state=9)
    assert state_of((key, value)).members["a"].state is MemberState.UNKNOWN


def test_what_releases_before_4_1_kept_of_topics_is_remembered_to_be_removed() -> None:
    key = ConsumerGroupPartitionMetadataKey(group_id="g")
    state = state_of((key, ConsumerGroupPartitionMetadataValue()))
    assert state.has_partition_metadata
    state.apply(*records.no_partition_metadata("g"))
    assert not state.has_partition_metadata


def test_the_assignor_that_most_members_ask_for_is_preferred() -> None:
    def prefer(*names: str | None) -> str | None:
        members = [ConsumerMember(member_id=str(n), assignor=name) for n, name in enumerate(names)]
        return state_of(*(records.member("g", m) for m in members)).preferred_assignor()

    assert prefer() is None
    assert prefer(None, None) is None
    assert prefer(None, "range", None) == "range"
    assert prefer("range", "uniform", "uniform") == "uniform"
    assert prefer("uniform", "range") == "range"  # Of equals the first by name.
