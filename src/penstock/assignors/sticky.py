"""`sticky` and `cooperative-sticky`: as even as can be, with as little moved as can be.

Members say themselves what they own, so two may claim the same partition: one of them slept
through a rebalance. The claim of the younger generation counts.
"""

from collections.abc import Iterable, Mapping

from penstock.assignors.subscriber import Assignment, Subscriber, Topic
from penstock.assignors.uniform import assign_in_order


def assign_sticky(
    subscribers: Iterable[Subscriber[Topic]], partitions: Mapping[Topic, int]
) -> Assignment[Topic]:
    by_claim = sorted(subscribers, key=lambda member: (-member.generation, member.member_id))
    return assign_in_order(by_claim, partitions)


def still_held_by_others(
    target: Assignment[Topic], subscribers: Iterable[Subscriber[Topic]]
) -> Assignment[Topic]:
    """The part of the target that is not yet free: what a cooperative member must wait for.

    A cooperative rebalance hands out the rest at once; when the holders have let go, the next
    one hands out these.
    """
    owners = {
        (topic, partition): member.member_id
        for member in sorted(subscribers, key=lambda member: member.generation)
        for topic, owned in member.owned.items()
        for partition in owned
    }
    waiting: Assignment[Topic] = {}
    for member_id, topics in target.items():
        waiting[member_id] = {}
        for topic, partitions in topics.items():
            held = {p for p in partitions if owners.get((topic, p), member_id) != member_id}
            if held:
                waiting[member_id][topic] = held
    return waiting
