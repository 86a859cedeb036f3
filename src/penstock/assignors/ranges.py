"""`range`: each topic is cut into runs of neighbouring partitions, one per member.

With the same number of partitions in every topic a member gets the same numbers of each, which
is what joins of topics need.
"""

from collections.abc import Iterable, Mapping

from penstock.assignors.subscriber import (
    Assignment,
    Subscriber,
    Topic,
    in_order,
    subscribers_by_topic,
)


def assign_ranges(
    subscribers: Iterable[Subscriber[Topic]], partitions: Mapping[Topic, int]
) -> Assignment[Topic]:
    members = in_order(subscribers)
    assignment: Assignment[Topic] = {member.member_id: {} for member in members}
    for topic, wanting in subscribers_by_topic(members, partitions).items():
        size, longer = divmod(partitions[topic], len(wanting))
        start = 0
        for nth, member in enumerate(wanting):
            end = start + size + (nth < longer)
            if end > start:
                assignment[member.member_id][topic] = set(range(start, end))
            start = end
    return assignment
