"""The even assignment of members who want different topics.

This is the semi-matching problem: the loads are as even as they can be when no chain of moves
leads from a member to another with two partitions less. A chain may pass through others: the
first gives a partition to the second, which gives one of its own to the third. Chains are
looked for shortest first, because each link moves a partition.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Generic

from penstock.assignors.subscriber import Assignment, Topic

_WORTH_A_MOVE = 2  # With a smaller difference, the two would only change places.


class Evening(Generic[Topic]):
    """An assignment on its way to being even."""

    def __init__(
        self,
        assignment: Assignment[Topic],
        partitions: Mapping[Topic, int],
        wanting: Mapping[Topic, Sequence[str]],
    ) -> None:
        self._assignment: Assignment[Topic] = assignment
        self._partitions: Mapping[Topic, int] = partitions
        self._wanting: Mapping[Topic, Sequence[str]] = wanting  # Who wants a topic.
        self._before: Mapping[str, Mapping[Topic, frozenset[int]]] = {
            member_id: {topic: frozenset(held) for topic, held in topics.items()}
            for member_id, topics in assignment.items()
        }
        self._loads = {
            member_id: sum(map(len, topics.values())) for member_id, topics in assignment.items()
        }

    def hand_out(self) -> None:
        """Give each partition that nobody owns to whoever has least of those who want it.

        Topics with much to read per member go first, because they decide who is busy; the others
        fill the gaps.
        """
        wanting, partitions = self._wanting, self._partitions
        for topic in sorted(wanting, key=lambda t: (-partitions[t] / len(wanting[t]), t)):
            owned = {p for topics in self._assignment.values() for p in topics.get(topic, ())}
            queue = [(self._loads[member_id], member_id) for member_id in wanting[topic]]
            heapify(queue)
            for partition in range(partitions[topic]):
                if partition in owned:
                    continue
                load, member_id = queue[0]
                self._assignment[member_id].setdefault(topic, set()).add(partition)
                self._loads[member_id] = load + 1
                heapreplace(queue, (load + 1, member_id))

    def even_out(self) -> None:
        """Move partitions until no chain of moves makes the loads more even."""
        # Moves within a topic are the most, and need no search; those in one open others.
        while any(list(map(self._even_out_topic, self._wanting))):
            pass
        while (chain := self._chain_from_anybody()) is not None:
            for giver, topic, taker in chain:
                self._move(topic, giver, taker)

    def _even_out_topic(self, topic: Topic) -> bool:
        """Direct moves within one topic, the busiest giving to the idlest."""
        assignment, loads, members = self._assignment, self._loads, self._wanting[topic]
        givers = [(-loads[m], m) for m in members if topic in assignment[m]]
        takers = [(loads[m], m) for m in members]
        heapify(givers)
        heapify(takers)
        moved = False
        while givers:
            busiest, giver = -givers[0][0], givers[0][1]
            idlest, taker = takers[0]
            if busiest != loads[giver]:  # Both queues are put right only where it matters.
                heapreplace(givers, (-loads[giver], giver))
            elif idlest != loads[taker]:
                heapreplace(takers, (loads[taker], taker))
            elif topic not in assignment[giver]:
                heappop(givers)
            elif busiest - idlest < _WORTH_A_MOVE:
                break
            else:
                if topic not in assignment[taker]:
                    heappush(givers, (-idlest - 1, taker))
                self._move(topic, giver, taker)
                moved = True
        return moved

    def _move(self, topic: Topic, giver: str, taker: str) -> None:
        """Rather one that is new to the giver, or that the taker had before."""
        held = self._assignment[giver][topic]
        giver_had = self._before[giver].get(topic, ())
        taker_had = self._before[taker].get(topic, ())
        partition = max(held, key=lambda p: (p in taker_had, p not in giver_had, p))
        held.remove(partition)
        if not held:
            del self._assignment[giver][topic]
        self._assignment[taker].setdefault(topic, set()).add(partition)
        self._loads[giver] -= 1
        self._loads[taker] += 1

    def _chain_from_anybody(self) -> list[tuple[str, Topic, str]] | None:
        """A chain that helps. Whom a busier member reached in vain needs no search of its own."""
        reached: set[str] = set()
        for member_id in sorted(self._loads, key=lambda m: (-self._loads[m], m)):
            if member_id not in reached:
                chain = self._find_chain(member_id, reached)
                if chain is not None:
                    return chain
        return None

    def _find_chain(self, start: str, reached: set[str]) -> list[tuple[str, Topic, str]] | None:
        """The shortest chain of (giver, topic, taker) to somebody with two partitions less."""
        enough = self._loads[start] - _WORTH_A_MOVE
        came_by: dict[str, tuple[str, Topic]] = {}
        seen_topics: set[Topic] = set()
        queue = deque([start])
        while queue:
            giver = queue.popleft()
            reached.add(giver)
            for topic in sorted(self._assignment[giver].keys() - seen_topics):
                seen_topics.add(topic)
                for taker in self._wanting[topic]:
                    if taker == start or taker in came_by:
                        continue
                    came_by[taker] = (giver, topic)
                    if self._loads[taker] <= enough:
                        return _walk_back(taker, start, came_by)
                    queue.append(taker)
        return None


def _walk_back(
    end: str, start: str, came_by: Mapping[str, tuple[str, Topic]]
) -> list[tuple[str, Topic, str]]:
    chain: list[tuple[str, Topic, str]] = []
    while end != start:
        giver, topic = came_by[end]
        chain.append((giver, topic, end))
        end = giver
    return chain[::-1]
