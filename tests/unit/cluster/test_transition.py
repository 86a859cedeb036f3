"""What each event does to a partition's state, case by case and as properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster.image.image import NO_LEADER, PartitionState
from penstock.cluster.transition import (
    RECOVERED,
    RECOVERING,
    Elected,
    Event,
    Expanded,
    MinIsrChanged,
    Preferred,
    Reassigned,
    Removed,
    Shrunk,
    TransitionFacts,
    UncleanlyElected,
    initial_state,
    transition,
)

REPLICAS = (1, 2, 3)
ALL = frozenset(REPLICAS)


def state(
    leader: int = 1,
    isr: tuple[int, ...] = REPLICAS,
    *,
    min_isr: int = 2,
    elr: tuple[int, ...] = (),
    lke: tuple[int, ...] = (),
) -> PartitionState:
    return PartitionState(
        leader=leader,
        leader_epoch=5,
        isr=isr,
        min_isr=min_isr,
        elr=elr,
        lke=lke,
        partition_epoch=9,
    )


def after(
    before: PartitionState, event: Event, active: frozenset[int] = ALL
) -> tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    changed = transition(before, event, TransitionFacts(replicas=REPLICAS, active=active))
    return changed.leader, changed.leader_epoch, changed.isr, changed.elr, changed.lke


def unchanged(before: PartitionState, event: Event, active: frozenset[int] = ALL) -> bool:
    return transition(before, event, TransitionFacts(replicas=REPLICAS, active=active)) is before


# Removal by the controller


def test_a_follower_leaves_without_a_new_leader_epoch() -> None:
    assert after(state(), Removed(3)) == (1, 5, (1, 2), (), ())


def test_a_leader_that_goes_is_replaced_in_order_of_preference() -> None:
    assert after(state(), Removed(1)) == (2, 6, (2, 3), (), ())
    assert after(state(isr=(1, 3)), Removed(1)) == (3, 6, (3,), (1,), ())


def test_a_leader_is_replaced_by_an_active_broker_only() -> None:
    assert after(state(), Removed(1), frozenset((3,))) == (3, 6, (2, 3), (), ())


def test_below_the_minimum_who_leaves_stays_eligible() -> None:
    assert after(state(isr=(1, 2)), Removed(2)) == (1, 5, (1,), (2,), ())
    assert after(state(isr=(1,), elr=(2,)), Removed(1), frozenset((3,))) == (
        NO_LEADER, 6, (), (1, 2), (),
    )  # fmt: skip


def test_an_eligible_broker_takes_over_from_the_last_in_sync() -> None:
    assert after(state(isr=(1,), elr=(2,)), Removed(1)) == (2, 6, (2,), (1,), ())


def test_the_last_one_in_sync_leaves_nobody_but_itself_eligible() -> None:
    assert after(state(isr=(1,), min_isr=1), Removed(1)) == (NO_LEADER, 6, (), (1,), ())


def test_who_lost_records_is_only_last_known() -> None:
    assert after(state(isr=(1, 2)), Removed(2, lossy=True)) == (1, 5, (1,), (), (2,))
    assert after(state(isr=(1,), elr=(2,)), Removed(2, lossy=True)) == (1, 5, (1,), (), (2,))
    assert after(state(isr=(1,), min_isr=1), Removed(1, lossy=True)) == (
        NO_LEADER, 6, (), (), (1,),
    )  # fmt: skip


def test_who_lost_records_while_enough_are_in_sync_needs_no_note() -> None:
    assert after(state(), Removed(3, lossy=True)) == (1, 5, (1, 2), (), ())


def test_a_broker_the_partition_does_not_know_changes_nothing() -> None:
    assert unchanged(state(), Removed(7))
    assert unchanged(state(isr=(1, 2)), Removed(3))
    assert unchanged(state(isr=(1,), elr=(2,)), Removed(2))


def test_a_broker_that_returns_is_not_elected_by_its_own_removal() -> None:
    before = state(isr=(1,), min_isr=1)
    assert after(before, Removed(1), ALL)[0] == NO_LEADER


# Election


def test_a_vacant_partition_is_led_from_the_in_sync_set_first() -> None:
    before = state(NO_LEADER, isr=(3,), elr=(1,))
    assert after(before, Elected()) == (3, 6, (3,), (1,), ())


def test_else_from_the_eligible_who_then_are_in_sync() -> None:
    before = state(NO_LEADER, isr=(), elr=(2, 3), lke=(1,))
    assert after(before, Elected()) == (2, 6, (2,), (3,), (1,))
    assert after(before, Elected(), frozenset((3,))) == (3, 6, (3,), (2,), (1,))


def test_enough_in_sync_ends_eligibility() -> None:
    before = state(NO_LEADER, isr=(), elr=(2, 3), min_isr=1)
    assert after(before, Elected()) == (2, 6, (2,), (), ())


def test_the_one_last_known_leads_when_nobody_else_can_and_it_is_marked() -> None:
    before = state(NO_LEADER, isr=(), lke=(1,), min_isr=1)
    changed = transition(before, Elected(), TransitionFacts(replicas=REPLICAS, active=ALL))
    assert (changed.leader, changed.isr, changed.lke) == (1, (1,), ())
    assert changed.leader_recovery_state == RECOVERING


@pytest.mark.parametrize(
    "before",
    [
        state(NO_LEADER, isr=(), lke=(1, 2)),  # Which of the two has more is not known here.
        state(NO_LEADER, isr=(), elr=(3,), lke=(1,)),  # 3 has everything and may come back.
        state(NO_LEADER, isr=(), elr=(3,)),
    ],
)
def test_otherwise_the_partition_waits(before: PartitionState) -> None:
    assert unchanged(before, Elected(), frozenset((1, 2)))


def test_a_partition_with_a_leader_needs_no_election() -> None:
    assert unchanged(state(), Elected())


def test_a_regular_election_ends_recovery() -> None:
    before = state(NO_LEADER, isr=(1,))._replace(leader_recovery_state=RECOVERING)
    changed = transition(before, Elected(), TransitionFacts(replicas=REPLICAS, active=ALL))
    assert changed.leader_recovery_state == RECOVERED


def test_the_preferred_replica_takes_over_when_it_is_in_sync_and_active() -> None:
    assert after(state(2), Preferred()) == (1, 6, REPLICAS, (), ())
    assert unchanged(state(1), Preferred())
    assert unchanged(state(2, isr=(2, 3)), Preferred())
    assert unchanged(state(2), Preferred(), frozenset((2, 3)))
    assert unchanged(state(NO_LEADER, isr=(), elr=(1,)), Preferred())


def test_an_unclean_election_makes_one_broker_the_truth_and_is_marked() -> None:
    before = state(NO_LEADER, isr=(), elr=(1,), lke=(2,))
    changed = transition(
        before, UncleanlyElected(3), TransitionFacts(replicas=REPLICAS, active=frozenset((2, 3)))
    )
    assert (changed.leader, changed.leader_epoch, changed.isr) == (3, 6, (3,))
    assert (changed.elr, changed.lke, changed.leader_recovery_state) == ((), (), RECOVERING)


def test_an_unclean_election_turns_clean_when_it_can() -> None:
    before = state(NO_LEADER, isr=(), elr=(1,))
    assert after(before, UncleanlyElected(3)) == (1, 6, (1,), (), ())


def test_an_unclean_election_needs_a_vacancy_and_a_live_replica() -> None:
    assert unchanged(state(), UncleanlyElected(3))
    vacant = state(NO_LEADER, isr=(), elr=(1,))
    assert unchanged(vacant, UncleanlyElected(3), frozenset((2,)))
    assert unchanged(vacant, UncleanlyElected(7), frozenset((2, 7)))


# The leader's own changes


def test_the_leader_drops_followers() -> None:
    assert after(state(), Shrunk(1, frozenset((2,)))) == (1, 5, (1, 3), (), ())
    assert after(state(), Shrunk(1, frozenset((2, 3)))) == (1, 5, (1,), (2, 3), ())


def test_only_the_leader_drops_followers_and_never_itself() -> None:
    assert unchanged(state(), Shrunk(2, frozenset((3,))))
    assert unchanged(state(), Shrunk(1, frozenset((1, 3))))
    assert unchanged(state(isr=(1, 2)), Shrunk(1, frozenset((3,))))


def test_the_leader_adds_active_followers() -> None:
    before = state(isr=(1,), elr=(2,), lke=(3,))
    assert after(before, Expanded(1, frozenset((3,)))) == (1, 5, (1, 3), (), ())
    wanting = state(isr=(1,), elr=(2,), lke=(3,), min_isr=3)
    assert after(wanting, Expanded(1, frozenset((2,)))) == (1, 5, (1, 2), (), (3,))


def test_only_the_leader_adds_and_only_active_replicas() -> None:
    before = state(isr=(1,))
    assert unchanged(before, Expanded(2, frozenset((2,))))
    assert unchanged(before, Expanded(1, frozenset((2,))), frozenset((1, 3)))
    assert unchanged(before, Expanded(1, frozenset((7,))), frozenset((1, 7)))
    assert unchanged(before, Expanded(1, frozenset((1,))))


# The minimum


def test_a_lower_minimum_that_is_met_ends_eligibility() -> None:
    changed = transition(
        state(isr=(1,), elr=(2,), lke=(3,)),
        MinIsrChanged(1),
        TransitionFacts(replicas=REPLICAS, active=ALL),
    )
    assert (changed.min_isr, changed.elr, changed.lke) == (1, (), ())
    assert changed.leader_epoch == 5


def test_a_higher_minimum_keeps_what_is_eligible() -> None:
    changed = transition(
        state(isr=(1,), elr=(2,)), MinIsrChanged(3), TransitionFacts(replicas=REPLICAS, active=ALL)
    )
    assert (changed.min_isr, changed.elr) == (3, (2,))


def test_the_minimum_is_between_one_and_all_replicas() -> None:
    facts = TransitionFacts(replicas=REPLICAS, active=ALL)
    assert transition(state(), MinIsrChanged(9), facts).min_isr == 3
    assert transition(state(), MinIsrChanged(0), facts).min_isr == 1
    assert unchanged(state(min_isr=3), MinIsrChanged(9))


def test_a_new_partition_begins_with_all_that_are_there() -> None:
    begun = initial_state((3, 1, 2), active=frozenset((1, 2)), min_isr=5, controller_epoch=4)
    assert begun == PartitionState(
        leader=1, leader_epoch=0, isr=(1, 2), min_isr=3, controller_epoch=4
    )


# Reassignment


def reassigned(
    before: PartitionState,
    replicas: tuple[int, ...],
    *,
    min_isr: int = 2,
    active: frozenset[int] = frozenset(range(1, 7)),
) -> PartitionState:
    return transition(
        before, Reassigned(min_isr), TransitionFacts(replicas=replicas, active=active)
    )


def test_a_reassignment_begins_with_a_new_epoch_of_the_same_leader() -> None:
    begun = reassigned(state(2), (4, 5, 6, 1, 2, 3))
    assert begun == state(2)._replace(leader_epoch=6)


def test_at_its_end_only_the_new_replicas_are_in_sync_and_one_of_them_leads() -> None:
    ended = reassigned(state(2, isr=(1, 2, 3, 4, 5, 6)), (4, 5, 6))
    assert (ended.leader, ended.leader_epoch, ended.isr) == (4, 6, (4, 5, 6))
    assert reassigned(state(2, isr=(1, 2, 4)), (4, 2)).leader == 2
    away = reassigned(state(2, isr=(1, 2, 4, 5)), (4, 5), active=frozenset((1, 2, 5)))
    assert (away.leader, away.isr) == (5, (4, 5))


def test_a_reassignment_taken_back_leaves_those_that_came() -> None:
    back = reassigned(state(4, isr=(1, 4, 5)), (1, 2, 3))
    assert (back.leader, back.isr, back.elr) == (1, (1,), ())


def test_nobody_who_may_lead_is_left_and_so_nothing_happens() -> None:
    for before in (
        state(4, isr=(4,), elr=(5,)),
        state(NO_LEADER, isr=(), elr=(4,)),
        state(NO_LEADER, isr=(), lke=(4, 5)),
    ):
        assert reassigned(before, (1, 2, 3)) is before


def test_the_minimum_goes_with_the_number_of_replicas() -> None:
    assert reassigned(state(1, min_isr=2), (1,)).min_isr == 1
    fewer = reassigned(state(1, isr=(1,), elr=(2,), lke=(3,)), (1, 2, 3), min_isr=1)
    assert (fewer.min_isr, fewer.elr, fewer.lke) == (1, (), ())
    more = reassigned(state(1, isr=(1,), elr=(2,)), (1, 2, 3, 4), min_isr=3)
    assert (more.min_isr, more.elr) == (3, (2,))


# Properties over any state and event

brokers = st.integers(0, 4)
broker_sets = st.frozensets(brokers, max_size=5)
replica_lists = st.permutations(range(5)).flatmap(
    lambda order: st.integers(1, 5).map(lambda count: tuple(order[:count]))
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[PartitionState, TransitionFacts]:
    replicas = draw(replica_lists)
    place = {r: draw(st.sampled_from(("isr", "elr", "lke", "out"))) for r in replicas}
    isr = tuple(r for r in replicas if place[r] == "isr")
    min_isr = draw(st.integers(1, len(replicas)))
    is_short = len(isr) < min_isr
    made = PartitionState(
        leader=draw(st.sampled_from((*isr, NO_LEADER))),
        leader_epoch=draw(st.integers(0, 9)),
        isr=isr,
        min_isr=min_isr,
        elr=tuple(sorted(r for r in replicas if place[r] == "elr" and is_short)),
        lke=tuple(sorted(r for r in replicas if place[r] == "lke" and is_short)),
        partition_epoch=draw(st.integers(0, 9)),
    )
    return made, TransitionFacts(replicas=replicas, active=draw(broker_sets))


events = st.one_of(
    st.builds(Removed, brokers, st.booleans()),
    st.just(Elected()),
    st.just(Preferred()),
    st.builds(UncleanlyElected, brokers),
    st.builds(Shrunk, brokers, broker_sets),
    st.builds(Expanded, brokers, broker_sets),
    st.builds(MinIsrChanged, st.integers(-1, 7)),
    st.builds(Reassigned, st.integers(-1, 7)),
)


@given(cases(), events)
def test_every_state_that_follows_is_sound(
    case: tuple[PartitionState, TransitionFacts], event: Event
) -> None:
    before, facts = case
    changed = transition(before, event, facts)
    assert changed.leader in (*changed.isr, NO_LEADER)
    members = [*changed.isr, *changed.elr, *changed.lke]
    assert len(set(members)) == len(members)
    assert set(members) <= set(facts.replicas)
    if len(changed.isr) >= changed.min_isr:
        assert not changed.elr and not changed.lke
    assert changed.partition_epoch == before.partition_epoch
    assert (changed is before) == (changed == before)


@given(cases(), events)
def test_the_leader_epoch_rises_exactly_when_the_leader_changes(
    case: tuple[PartitionState, TransitionFacts], event: Event
) -> None:
    before, facts = case
    changed = transition(before, event, facts)
    moved = changed.leader != before.leader
    begun = moved or (isinstance(event, Reassigned) and changed is not before)
    assert changed.leader_epoch == before.leader_epoch + begun


@given(cases(), events)
def test_within_a_leader_epoch_only_the_leader_adds_to_the_in_sync_set(
    case: tuple[PartitionState, TransitionFacts], event: Event
) -> None:
    before, facts = case
    changed = transition(before, event, facts)
    if set(changed.isr) - set(before.isr) and changed.leader_epoch == before.leader_epoch:
        assert isinstance(event, Expanded) and event.leader == before.leader


@given(cases(), events)
def test_nobody_inactive_is_elected_or_added(
    case: tuple[PartitionState, TransitionFacts], event: Event
) -> None:
    before, facts = case
    changed = transition(before, event, facts)
    assert set(changed.isr) - set(before.isr) <= facts.active
    if changed.leader not in (before.leader, NO_LEADER):
        assert changed.leader in facts.active


@given(cases(), events)
def test_eligible_brokers_are_lost_only_to_power_cuts_or_when_enough_are_in_sync(
    case: tuple[PartitionState, TransitionFacts], event: Event
) -> None:
    before, facts = case
    changed = transition(before, event, facts)
    gone = set(before.elr) - set(changed.elr) - set(changed.isr)
    if gone and not isinstance(event, UncleanlyElected):
        is_power_cut = isinstance(event, Removed) and event.lossy
        assert is_power_cut or len(changed.isr) >= changed.min_isr


@given(cases(), brokers, st.booleans())
def test_a_removed_broker_leads_nothing_and_is_in_sync_with_nothing(
    case: tuple[PartitionState, TransitionFacts], broker: int, lossy: bool
) -> None:
    before, facts = case
    changed = transition(before, Removed(broker, lossy), facts)
    was_concerned = broker in before.isr or broker == before.leader
    if was_concerned:
        assert broker not in changed.isr and broker != changed.leader
    if lossy:
        assert broker not in changed.elr


@given(cases(), replica_lists, st.integers(-1, 7))
def test_a_reassignment_keeps_only_replicas_and_never_the_last_who_has_all(
    case: tuple[PartitionState, TransitionFacts], replicas: tuple[int, ...], min_isr: int
) -> None:
    before, facts = case
    changed = transition(before, Reassigned(min_isr), facts._replace(replicas=replicas))
    if changed is before:
        return
    members = {*changed.isr, *changed.elr, *changed.lke}
    assert members <= set(replicas)
    assert changed.leader in (*changed.isr, NO_LEADER)
    assert 1 <= changed.min_isr <= len(replicas)
    assert changed.leader_epoch == before.leader_epoch + 1
    if before.isr or before.elr:
        assert {*changed.isr, *changed.elr} <= {*before.isr, *before.elr}
        assert changed.isr or changed.elr
