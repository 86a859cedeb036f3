"""`uniform`: every member gets as many partitions as any other, and keeps what it had.

First comes balance: where all want the same topics, no member has two more than another; where
they want different ones, no exchange could make it more even. Within that, as few partitions as
possible change hands.
"""

from collections.abc import Iterable, Mapping, Sequence

from penstock.assignors.evening import Evening
from penstock.assignors.subscriber import (
    Assignment,
    Subscriber,
    Topic,
    holdings,
    in_order,
    subscribers_by_topic,
)


def assign_uniform(
    subscribers: Iterable[Subscriber[Topic]], partitions: Mapping[Topic, int]
) -> Assignment[Topic]:
    return assign_in_order(in_order(subscribers), partitions)


def assign_in_order(
    members: Sequence[Subscriber[Topic]], partitions: Mapping[Topic, int]
) -> Assignment[Topic]:
    """Where two claim a partition, the earlier one in `members` had it."""
    assignment = holdings(members, partitions)
    wanting = subscribers_by_topic(members, partitions)
    if all(len(group) == len(members) for group in wanting.values()):
        _share_equally(assignment, {topic: partitions[topic] for topic in wanting})
    else:
        ids = {topic: [member.member_id for member in group] for topic, group in wanting.items()}
        evening = Evening(assignment, partitions, ids)
        evening.hand_out()
        evening.even_out()
    return assignment


def _share_equally(assignment: Assignment[Topic], partitions: Mapping[Topic, int]) -> None:
    """All want the same: each gets its quota, and some one more, best those who have it already."""
    if not assignment:
        return
    quota, extra = divmod(sum(partitions.values()), len(assignment))
    free = _unowned(assignment, partitions)
    for topics in assignment.values():
        owned = sum(map(len, topics.values()))
        if owned > quota and extra:
            extra -= 1
            free += _trim(topics, owned, quota + 1)
        else:
            free += _trim(topics, owned, quota)
    supply = iter(free)
    lighter = []
    for member_id, topics in assignment.items():
        owned = sum(map(len, topics.values()))
        _give(topics, supply, quota - owned)
        if owned <= quota:
            lighter.append(member_id)
    for member_id in lighter[:extra]:
        _give(assignment[member_id], supply, 1)


def _unowned(
    assignment: Assignment[Topic], partitions: Mapping[Topic, int]
) -> list[tuple[Topic, int]]:
    owned: dict[Topic, set[int]] = {}
    for topics in assignment.values():
        for topic, held in topics.items():
            owned.setdefault(topic, set()).update(held)
    return [
        (topic, partition)
        for topic, count in partitions.items()
        for partition in range(count)
        if partition not in owned.get(topic, ())
    ]


def _trim(topics: dict[Topic, set[int]], owned: int, limit: int) -> list[tuple[Topic, int]]:
    """Take away what is above the limit: of the last topic first, and there the last ones."""
    taken: list[tuple[Topic, int]] = []
    for topic in sorted(topics, reverse=True):
        surplus = owned - len(taken) - limit
        if surplus <= 0:
            break
        last = sorted(topics[topic])[-surplus:]
        topics[topic].difference_update(last)
        if not topics[topic]:
            del topics[topic]
        taken += [(topic, partition) for partition in last]
    return taken


def _give(topics: dict[Topic, set[int]], supply: Iterable[tuple[Topic, int]], count: int) -> None:
    for _, (topic, partition) in zip(range(count), supply, strict=False):
        topics.setdefault(topic, set()).add(partition)
