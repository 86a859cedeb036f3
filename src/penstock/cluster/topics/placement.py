"""Which brokers get which replicas: Kafka's round robin, aware of racks where all brokers have one.

Leaders go round the brokers from `start`; the followers of a partition begin `shift` further on,
and one further with every round, so that the followers of one broker's partitions are not all the
same two. Chance comes in as arguments. Whether the brokers are enough is checked here, whether
they are alive is for the caller to know.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from penstock.errors import InvalidPartitions, InvalidReplicationFactor


class Layout(NamedTuple):
    """The brokers in the order the round robin takes them."""

    brokers: Sequence[int]
    racks: Mapping[int, str]  # Empty: racks do not count.
    start: int
    shift: int


def place(
    racks_by_broker: Mapping[int, str | None],
    *,
    partition_count: int,
    replication_factor: int,
    start: int,
    shift: int,
    first_partition: int = 0,
) -> dict[int, tuple[int, ...]]:
    """Replicas for the partitions from `first_partition` on, the preferred leader first."""
    _refuse_impossible(partition_count, replication_factor, len(racks_by_broker))
    layout = _layout(racks_by_broker, start=start, shift=shift)
    return {
        partition: _replicas(layout, partition, replication_factor, first_partition)
        for partition in range(first_partition, first_partition + partition_count)
    }


def _refuse_impossible(partition_count: int, replication_factor: int, broker_count: int) -> None:
    if partition_count <= 0:
        raise InvalidPartitions("Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise InvalidReplicationFactor("Replication factor must be larger than 0.")
    if replication_factor > broker_count:
        raise InvalidReplicationFactor(
            f"Replication factor: {replication_factor} larger than available brokers: "
            f"{broker_count}."
        )


def _layout(racks_by_broker: Mapping[int, str | None], *, start: int, shift: int) -> Layout:
    racks = {broker: rack for broker, rack in racks_by_broker.items() if rack is not None}
    if len(racks) < len(racks_by_broker):  # One broker of unknown rack makes racks meaningless.
        return Layout(brokers=sorted(racks_by_broker), racks={}, start=start, shift=shift)
    return Layout(brokers=alternate_racks(racks), racks=racks, start=start, shift=shift)


def alternate_racks(racks: Mapping[int, str]) -> list[int]:
    """One broker of each rack in turn, so that neighbours in the round robin differ in rack."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for turn in rounds for broker in turn if broker is not None]


def _replicas(
    layout: Layout, partition: int, replication_factor: int, first_partition: int
) -> tuple[int, ...]:
    count = len(layout.brokers)
    leader_at = (partition + layout.start) % count
    # The shift grows at every multiple of the broker count that this call passes.
    rounds = partition // count - max(0, first_partition - 1) // count
    shift = (layout.shift + rounds) * _stride(layout)
    chosen = [layout.brokers[leader_at]]
    step = 0
    while len(chosen) < replication_factor:
        broker = layout.brokers[_follower_at(leader_at, shift, step, count)]
        if _is_welcome(layout, broker, chosen):
            chosen.append(broker)
        step += 1
    return tuple(chosen)


def _stride(layout: Layout) -> int:
    return len(set(layout.racks.values())) if layout.racks else 1


def _follower_at(leader_at: int, shift: int, step: int, count: int) -> int:
    """Goes through all places but the leader's own."""
    return (leader_at + 1 + (shift + step) % (count - 1)) % count


def _is_welcome(layout: Layout, broker: int, chosen: Sequence[int]) -> bool:
    """A second replica in a rack only when every rack has one, and never two on one broker."""
    if broker in chosen:
        return False
    if not layout.racks:
        return True
    used = {layout.racks[other] for other in chosen}
    return layout.racks[broker] not in used or len(used) == len(set(layout.racks.values()))
