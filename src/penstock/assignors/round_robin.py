"""`roundrobin`: all partitions of all topics in one row, dealt out one by one."""

from collections.abc import Iterable, Mapping

from penstock.assignors.subscriber import Assignment, Subscriber, Topic, in_order


def assign_round_robin(
    subscribers: Iterable[Subscriber[Topic]], partitions: Mapping[Topic, int]
) -> Assignment[Topic]:
    members = in_order(subscribers)
    assignment: Assignment[Topic] = {member.member_id: {} for member in members}
    turn = 0
    for topic in sorted({topic for member in members for topic in member.topics}):
        for partition in range(partitions.get(topic, 0)):
            while topic not in members[turn % len(members)].topics:
                turn += 1  # Somebody wants the topic, so this ends.
            member_id = members[turn % len(members)].member_id
            assignment[member_id].setdefault(topic, set()).add(partition)
            turn += 1
    return assignment
