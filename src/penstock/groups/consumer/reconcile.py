"""The next step of a member towards its target: give up first, then be given.

    STABLE ──a new target──▶ UNREVOKED ──it owns none of them any more──▶ STABLE
                                  │                                         ▲
                                  └──others still have some──▶ UNRELEASED ──┘ they let go

A partition changes hands only when its owner has said that it gave it up, so at no time do two
members have it. What a member owns it says itself, in its heartbeats.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace

from penstock.errors import FencedMemberEpoch
from penstock.groups.consumer.member import ConsumerMember, Holdings, MemberState, Partitions

Owned = Mapping[bytes, Set[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Where a member is to go, and what stands in its way."""

    epoch: int
    target: Partitions
    is_subscribed: Callable[[bytes], bool]  # Whether the member wants the topic of that id.
    is_free: Callable[[bytes, int], bool]  # Whether nobody else has the partition.


def reconcile(
    member: ConsumerMember, goal: Goal, owned: Owned | None, *, has_new_subscription: bool
) -> ConsumerMember:
    """The member after one more step; `owned` is what it says to own, None if it says nothing."""
    if member.state is MemberState.UNKNOWN and (owned is None or owned):
        raise FencedMemberEpoch(
            "The consumer group member is in a unknown state. "
            "The member must abandon all its partitions and rejoin."
        )
    if member.state is MemberState.STABLE and member.epoch == goal.epoch:
        return _unsubscribe(member, goal, owned) if has_new_subscription else member
    if member.state is MemberState.UNREVOKED and _owns_any(owned, member.revoking):
        return _unsubscribe(member, goal, owned) if has_new_subscription else member
    return _advance(member, goal, owned)


def _owns_any(owned: Owned | None, held: Holdings) -> bool:
    """Whether the member has something of it; it may, as long as it says nothing."""
    if owned is None:
        return True
    return any(not owned[topic_id].isdisjoint(held[topic_id]) for topic_id in owned & held.keys())


def _unsubscribe(member: ConsumerMember, goal: Goal, owned: Owned | None) -> ConsumerMember:
    """Take away the topics that the member no longer wants; the epoch stays."""
    unwanted = {t: held for t, held in member.assigned.items() if not goal.is_subscribed(t)}
    if not unwanted:
        return member
    assigned = {t: held for t, held in member.assigned.items() if t not in unwanted}
    revoking = _merged(member.revoking, unwanted)
    if _owns_any(owned, revoking):
        return _stepped(member, member.epoch, MemberState.UNREVOKED, assigned, revoking)
    return _stepped(member, member.epoch, member.state, assigned, member.revoking)


def _merged(one: Holdings, other: Holdings) -> Holdings:
    return {t: {**one.get(t, {}), **other.get(t, {})} for t in {**one, **other}}


def _advance(member: ConsumerMember, goal: Goal, owned: Owned | None) -> ConsumerMember:
    kept: dict[bytes, dict[int, int]] = {}
    revoking: dict[bytes, dict[int, int]] = {}
    for topic_id, held in member.assigned.items():
        wanted = goal.target.get(topic_id, ()) if goal.is_subscribed(topic_id) else ()
        for number, epoch in held.items():
            side = kept if number in wanted else revoking
            side.setdefault(topic_id, {})[number] = epoch
    if revoking and _owns_any(owned, revoking):
        return _stepped(member, member.epoch, MemberState.UNREVOKED, kept, revoking)
    is_complete = _take_free(goal, kept)
    state = MemberState.STABLE if is_complete else MemberState.UNRELEASED
    return _stepped(member, goal.epoch, state, kept, {})


def _take_free(goal: Goal, assigned: dict[bytes, dict[int, int]]) -> bool:
    """Add what can be had of the target; whether that was all."""
    is_complete = True
    for topic_id, numbers in goal.target.items():
        if not goal.is_subscribed(topic_id):
            continue
        for number in numbers - assigned.get(topic_id, {}).keys():
            if goal.is_free(topic_id, number):
                assigned.setdefault(topic_id, {})[number] = goal.epoch
            else:
                is_complete = False
    return is_complete


def _stepped(
    member: ConsumerMember, epoch: int, state: MemberState, assigned: Holdings, revoking: Holdings
) -> ConsumerMember:
    return replace(
        member,
        epoch=epoch,
        previous_epoch=member.epoch,
        state=state,
        assigned=assigned,
        revoking=revoking,
    )
