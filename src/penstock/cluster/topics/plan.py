"""Whether a topic can be made or grown as asked, and where its replicas go.

Pure: the image says what exists, chance comes in as numbers. Values of topic settings have been
checked before; writing the plan down is the controller's part.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from penstock.cluster.image.image import ClusterImage, TopicImage
from penstock.cluster.topics.placement import place
from penstock.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    PolicyViolation,
    ReassignmentInProgress,
)

PARTITIONS_PER_REQUEST_MAX = 10_000  # Kafka's own bound on what one request may create.

PARTITIONS_PER_SLICE = 500  # To plan and write so many takes some ten milliseconds.

Assignment = Mapping[int, tuple[int, ...]]


class TopicToCreate(NamedTuple):
    name: str
    partition_count: int  # -1 only beside explicit assignments.
    replication_factor: int  # -1 only beside explicit assignments.
    configs: Mapping[str, str]
    assignments: Assignment | None = None  # None: the brokers are chosen by round robin.
    topic_id: bytes | None = None  # None: a new one; a topic found on disk brings its own.


class PartitionsToAdd(NamedTuple):
    name: str
    total_count: int
    assignments: Sequence[tuple[int, ...]] | None = None  # One for each partition that is new.


class Chance(NamedTuple):
    """Two random numbers below the number of brokers."""

    start: int
    shift: int


def requested_partitions(new: TopicToCreate) -> int:
    return len(new.assignments) if new.assignments is not None else new.partition_count


def refuse_too_many(partition_count: int) -> None:
    if partition_count > PARTITIONS_PER_REQUEST_MAX:
        raise PolicyViolation("Excessively large number of partitions per request.")


def in_slices(topics: Sequence[TopicToCreate]) -> Iterator[Sequence[TopicToCreate]]:
    """So many at a time that nobody has to wait long for them; a large topic comes alone."""
    begin = partition_count = 0
    for at, new in enumerate(topics):
        partition_count += max(1, requested_partitions(new))
        if partition_count > PARTITIONS_PER_SLICE and at > begin:
            yield topics[begin:at]
            begin, partition_count = at, max(1, requested_partitions(new))
    if begin < len(topics):
        yield topics[begin:]


def plan_topic(new: TopicToCreate, image: ClusterImage, chance: Chance) -> Assignment:
    if new.assignments is not None:
        return _explicit_topic(new, new.assignments, image)
    if new.partition_count <= 0:
        raise InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
    if new.replication_factor <= 0:
        raise InvalidReplicationFactor(
            "Replication factor must be larger than 0, or -1 to use the default value."
        )
    racks = _racks(image)
    _refuse_too_many_replicas(new.replication_factor, len(racks))
    return place(
        racks,
        partition_count=new.partition_count,
        replication_factor=new.replication_factor,
        start=chance.start,
        shift=chance.shift,
    )


def _refuse_too_many_replicas(replication_factor: int, broker_count: int) -> None:
    if replication_factor > broker_count:
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): The target "
            f"replication factor of {replication_factor} cannot be reached because only "
            f"{broker_count} broker(s) are registered."
        )


def _racks(image: ClusterImage) -> dict[int, str | None]:
    return {b.broker_id: b.rack for b in image.brokers.values() if b.is_active}


def _explicit_topic(new: TopicToCreate, assignments: Assignment, image: ClusterImage) -> Assignment:
    if new.partition_count not in (-1, len(assignments)):
        raise InvalidRequest(
            "A manual partition assignment was specified, but numPartitions was not set to -1."
        )
    if not assignments:
        raise InvalidPartitions("Number of partitions must be larger than 0.")
    if set(assignments) != set(range(len(assignments))):
        raise InvalidReplicaAssignment(
            "partitions should be a consecutive 0-based integer sequence"
        )
    replication_factor = len(assignments[0])
    if new.replication_factor not in (-1, replication_factor):
        raise InvalidRequest(
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
    for partition in range(len(assignments)):
        _check_replicas(partition, assignments[partition], replication_factor, image)
    return {partition: tuple(assignments[partition]) for partition in range(len(assignments))}


def _check_replicas(
    partition: int, replicas: Sequence[int], replication_factor: int, image: ClusterImage
) -> None:
    if not replicas:
        raise InvalidReplicaAssignment(
            "The manual partition assignment includes an empty replica list."
        )
    for broker in replicas:
        if broker not in image.brokers:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes broker {broker}, but no such broker is "
                "registered."
            )
        if replicas.count(broker) > 1:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes the broker {broker} more than once."
            )
    if len(replicas) != replication_factor:
        raise InvalidReplicaAssignment(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{replication_factor} replica(s)."
        )
    if image.active_brokers().isdisjoint(replicas):
        raise InvalidReplicaAssignment(
            "All brokers specified in the manual partition assignment for partition "
            f"{partition} are fenced or in controlled shutdown."
        )


def plan_growth(new: PartitionsToAdd, topic: TopicImage, image: ClusterImage) -> Assignment:
    """Replicas of the partitions to add; those that exist stay where they are."""
    have = len(topic.partitions)
    if new.total_count < have:
        raise InvalidPartitions(
            f"The topic {new.name} currently has {have} partition(s); {new.total_count} would "
            "not be an increase."
        )
    if new.total_count == have:
        raise InvalidPartitions(f"Topic already has {have} partition(s).")
    refuse_too_many(new.total_count - have)
    if any(partition.adding or partition.removing for partition in topic.partitions.values()):
        raise ReassignmentInProgress("A partition reassignment is in progress for the topic.")
    if new.assignments is not None:
        return _explicit_growth(new, new.assignments, topic, image)
    return _continued(new.total_count - have, topic, image)


def _explicit_growth(
    new: PartitionsToAdd,
    assignments: Sequence[tuple[int, ...]],
    topic: TopicImage,
    image: ClusterImage,
) -> Assignment:
    have = len(topic.partitions)
    if len(assignments) != new.total_count - have:
        raise InvalidReplicaAssignment(
            f"Attempted to add {new.total_count - have} additional partition(s), but only "
            f"{len(assignments)} assignment(s) were specified."
        )
    replication_factor = len(topic.partitions[0].replicas)
    for partition, replicas in enumerate(assignments, have):
        _check_replicas(partition, replicas, replication_factor, image)
    return {have + index: tuple(replicas) for index, replicas in enumerate(assignments)}


def _continued(count: int, topic: TopicImage, image: ClusterImage) -> Assignment:
    """Go on with the round robin where the topic began it, at partition 0's leader."""
    racks = _racks(image)
    first = topic.partitions[0].replicas
    _refuse_too_many_replicas(len(first), len(racks))
    start = sum(1 for broker in racks if broker < first[0]) % max(1, len(racks))
    return place(
        racks,
        partition_count=count,
        replication_factor=len(first),
        start=start,
        shift=start,
        first_partition=len(topic.partitions),
    )
