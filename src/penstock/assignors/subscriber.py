"""What an assignor is told of each member, and what it answers."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Topic = TypeVar("Topic", str, bytes)

# Per member, per topic: partitions. Every member is in it, a topic only with partitions.
Assignment = dict[str, dict[Topic, set[int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber(Generic[Topic]):
    """A member and its wishes."""

    member_id: str
    topics: Set[Topic]
    owned: Mapping[Topic, Set[int]] = field(default_factory=dict)  # What it had until now.
    instance_id: str | None = None  # Static members keep it when their member id changes.
    generation: int = -1  # Since when it says to own that; only members that say so themselves.


def in_order(subscribers: Iterable[Subscriber[Topic]]) -> list[Subscriber[Topic]]:
    """Static members first, by their lasting ids, so that a restart does not reshuffle."""
    return sorted(subscribers, key=_place)


def _place(subscriber: Subscriber[Topic]) -> tuple[bool, str]:
    if subscriber.instance_id is not None:
        return False, subscriber.instance_id
    return True, subscriber.member_id


def subscribers_by_topic(
    subscribers: Iterable[Subscriber[Topic]], partitions: Mapping[Topic, int]
) -> dict[Topic, list[Subscriber[Topic]]]:
    """The topics that exist, in order, each with those who want it, in the order given."""
    found: dict[Topic, list[Subscriber[Topic]]] = {}
    for subscriber in subscribers:
        for topic in subscriber.topics:
            if topic in partitions:
                found.setdefault(topic, []).append(subscriber)
    return {topic: found[topic] for topic in sorted(found)}


def holdings(
    subscribers: Iterable[Subscriber[Topic]], partitions: Mapping[Topic, int]
) -> Assignment[Topic]:
    """What members may keep: what is still there, still wanted, and claimed by nobody before."""
    kept: Assignment[Topic] = {}
    claimed: dict[Topic, set[int]] = {}
    for subscriber in subscribers:
        mine = kept[subscriber.member_id] = {}
        for topic in sorted(subscriber.owned.keys() & subscriber.topics & partitions.keys()):
            taken = claimed.setdefault(topic, set())
            held = {p for p in subscriber.owned[topic] if p < partitions[topic]} - taken
            taken |= held
            if held:
                mine[topic] = held
    return kept
