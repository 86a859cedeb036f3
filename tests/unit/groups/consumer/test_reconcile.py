"""One step of a member towards its target: what it keeps, gives up, gets, and waits for."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import FencedMemberEpoch
from penstock.groups.consumer.member import (
    ConsumerMember,
    Holdings,
    MemberState,
    each_partition,
    without_epochs,
)
from penstock.groups.consumer.reconcile import Goal, reconcile

T, U = b"t" * 16, b"u" * 16
Numbers = Mapping[bytes, frozenset[int]]


def goal(
    target: Numbers, *, epoch: int = 5, taken: Numbers | None = None, wants: bytes = T + U
) -> Goal:
    """`taken`: what others have; `wants`: the ids of the topics that the member subscribes to."""
    others = taken or {}
    return Goal(
        epoch=epoch,
        target=target,
        is_subscribed=lambda topic_id: topic_id in wants,
        is_free=lambda topic_id, number: number not in others.get(topic_id, ()),
    )


def member(assigned: Holdings, **fields: object) -> ConsumerMember:
    return ConsumerMember(**{"member_id": "m", "epoch": 4, "assigned": assigned, **fields})  # type: ignore[arg-type]


def step(
    before: ConsumerMember, towards: Goal, owned: Numbers | None, **told: bool
) -> ConsumerMember:
    return reconcile(before, towards, owned, **{"has_new_subscription": False, **told})


def test_a_member_that_is_there_stays_as_it_is() -> None:
    before = member({T: {0: 3}}, epoch=5)
    assert step(before, goal({T: frozenset({0})}), None) is before


def test_what_is_free_is_given_with_the_epoch_it_is_given_in() -> None:
    after = step(member({T: {0: 3}}), goal({T: frozenset({0, 1}), U: frozenset({0})}), None)
    assert after.assigned == {T: {0: 3, 1: 5}, U: {0: 5}}
    assert (after.epoch, after.previous_epoch, after.state) == (5, 4, MemberState.STABLE)


def test_what_others_have_is_waited_for_in_the_new_epoch() -> None:
    towards = goal({T: frozenset({0, 1})}, taken={T: frozenset({1})})
    after = step(member({}), towards, None)
    assert (after.assigned, after.epoch) == ({T: {0: 5}}, 5)
    assert after.state is MemberState.UNRELEASED
    assert step(after, goal({T: frozenset({0, 1})}), None).state is MemberState.STABLE


@pytest.mark.parametrize("owned", [None, {T: frozenset({1})}])
def test_what_is_to_be_given_up_is_asked_back_in_the_old_epoch(owned: Numbers | None) -> None:
    after = step(member({T: {0: 3, 1: 4}}), goal({T: frozenset({0, 2})}), owned)
    assert (after.assigned, after.revoking) == ({T: {0: 3}}, {T: {1: 4}})
    assert (after.epoch, after.state) == (4, MemberState.UNREVOKED)
    assert step(after, goal({T: frozenset({0, 2})}), owned) is after, "it has not said so yet"


def test_what_it_says_not_to_own_needs_no_asking_back() -> None:
    after = step(member({T: {0: 3, 1: 4}}), goal({T: frozenset({0})}), {T: frozenset({0})})
    assert (after.assigned, after.revoking, after.epoch) == ({T: {0: 3}}, {}, 5)


def test_a_topic_it_does_not_want_is_neither_given_nor_kept_whatever_the_target_says() -> None:
    towards = goal({T: frozenset({0}), U: frozenset({0, 1})}, wants=T)
    after = step(member({U: {0: 3}}), towards, {U: frozenset({0})})
    assert (after.assigned, after.revoking) == ({}, {U: {0: 3}})
    assert step(after, towards, {}).assigned == {T: {0: 5}}


def test_a_new_subscription_takes_topics_away_before_there_is_a_new_target() -> None:
    before = member({T: {0: 3}, U: {1: 3}}, epoch=5)
    towards = goal({T: frozenset({0}), U: frozenset({1})}, wants=T)
    after = step(before, towards, None, has_new_subscription=True)
    assert (after.assigned, after.revoking) == ({T: {0: 3}}, {U: {1: 3}})
    assert (after.epoch, after.state) == (5, MemberState.UNREVOKED)
    gone = step(before, towards, {T: frozenset({0})}, has_new_subscription=True)
    assert (gone.assigned, gone.revoking, gone.state) == ({T: {0: 3}}, {}, MemberState.STABLE)


def test_more_may_have_to_be_given_up_while_something_already_is() -> None:
    before = member({T: {0: 3}}, revoking={T: {1: 3}}, state=MemberState.UNREVOKED)
    towards = goal({}, wants=U)
    after = step(before, towards, {T: frozenset({0, 1})}, has_new_subscription=True)
    assert (after.assigned, after.revoking) == ({}, {T: {0: 3, 1: 3}})


def test_a_member_in_a_state_of_a_later_release_starts_over() -> None:
    before = member({T: {0: 3}}, state=MemberState.UNKNOWN)
    for owned in (None, {T: frozenset({0})}):
        with pytest.raises(FencedMemberEpoch):
            step(before, goal({T: frozenset({1})}), owned)
    after = step(before, goal({T: frozenset({1})}), {})
    assert (after.assigned, after.state) == ({T: {1: 5}}, MemberState.STABLE)


numbers = st.frozensets(st.integers(0, 4))
partitions = st.dictionaries(st.sampled_from([T, U]), numbers)


@settings(max_examples=150)
@given(before=partitions, target=partitions, taken=partitions, owned=st.none() | partitions)
def test_a_step_never_takes_what_others_have_nor_loses_sight_of_what_the_member_has(
    before: Numbers, target: Numbers, taken: Numbers, owned: Numbers | None
) -> None:
    others = {t: taken.get(t, frozenset()) - before.get(t, frozenset()) for t in taken}
    start = member({t: dict.fromkeys(held, 3) for t, held in before.items()})
    after = step(start, goal(target, taken=others), owned)
    has = set(each_partition(without_epochs(after.assigned)))
    gives_up = set(each_partition(without_epochs(after.revoking)))
    assert not has & gives_up
    assert not (has | gives_up) & set(each_partition(others))
    assert has <= set(each_partition(target))
    if owned is None:
        assert set(each_partition(before)) <= has | gives_up, "it may still have it"
    if after.state is MemberState.STABLE:
        assert has == set(each_partition(target)) and not gives_up
