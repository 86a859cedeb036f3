"""What can be made and what is refused, in Kafka's words."""

import pytest

from penstock.cluster.image.image import (
    BrokerImage,
    ClusterImage,
    PartitionImage,
    PartitionState,
    TopicImage,
)
from penstock.cluster.topics.plan import (
    PARTITIONS_PER_REQUEST_MAX,
    Assignment,
    Chance,
    PartitionsToAdd,
    TopicToCreate,
    plan_growth,
    plan_topic,
    refuse_too_many,
    requested_partitions,
)
from penstock.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    PolicyViolation,
    ProtocolError,
)

CHANCE = Chance(start=2, shift=0)


def image(active: tuple[int, ...] = (0, 1, 2), fenced: tuple[int, ...] = ()) -> ClusterImage:
    brokers = {
        n: BrokerImage(broker_id=n, epoch=1, endpoints=(), is_active=n in active)
        for n in (*active, *fenced)
    }
    return ClusterImage(cluster_id="c", brokers=brokers)


def topic(*assignment: tuple[int, ...]) -> TopicImage:
    state = PartitionState(leader=0, leader_epoch=0, isr=(0,), min_isr=1)
    partitions = {
        number: PartitionImage(replicas=replicas, state=state)
        for number, replicas in enumerate(assignment)
    }
    return TopicImage(name="t", topic_id=bytes(16), partitions=partitions)


def new_topic(
    partitions: int = -1, factor: int = -1, assignments: Assignment | None = None
) -> TopicToCreate:
    return TopicToCreate(
        name="t",
        partition_count=partitions,
        replication_factor=factor,
        configs={},
        assignments=assignments,
    )


def test_a_plain_request_is_placed_by_round_robin() -> None:
    planned = plan_topic(new_topic(3, 3), image(), CHANCE)
    assert planned == {0: (2, 0, 1), 1: (0, 1, 2), 2: (1, 2, 0)}


def test_only_active_brokers_get_replicas() -> None:
    planned = plan_topic(new_topic(4, 2), image((0, 1), fenced=(2,)), CHANCE)
    assert {broker for replicas in planned.values() for broker in replicas} == {0, 1}
    with pytest.raises(InvalidReplicationFactor, match=r"only 2 broker\(s\) are"):
        plan_topic(new_topic(1, 3), image((0, 1), fenced=(2,)), CHANCE)


def test_an_explicit_assignment_is_taken_as_it_is() -> None:
    wanted = {1: (2, 1), 0: (0, 2)}
    planned = plan_topic(new_topic(assignments=wanted), image(), CHANCE)
    assert list(planned.items()) == [(0, (0, 2)), (1, (2, 1))]
    assert plan_topic(new_topic(2, 2, wanted), image(), CHANCE) == wanted


@pytest.mark.parametrize(
    ("new", "error", "message"),
    [
        (
            new_topic(assignments={0: (0,), 2: (1,)}),
            InvalidReplicaAssignment,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            new_topic(assignments={1: (0,)}),
            InvalidReplicaAssignment,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            new_topic(assignments={0: (0, 1), 1: (1,)}),
            InvalidReplicaAssignment,
            "The manual partition assignment includes a partition with 1 replica(s), but this is "
            "not consistent with previous partitions, which have 2 replica(s).",
        ),
        (
            new_topic(assignments={0: (1, 1)}),
            InvalidReplicaAssignment,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            new_topic(assignments={0: (0, 7)}),
            InvalidReplicaAssignment,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
        (
            new_topic(assignments={0: ()}),
            InvalidReplicaAssignment,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            new_topic(assignments={}),
            InvalidPartitions,
            "Number of partitions must be larger than 0.",
        ),
        (
            new_topic(3, -1, {0: (0,)}),
            InvalidRequest,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            new_topic(-1, 2, {0: (0,)}),
            InvalidRequest,
            "A manual partition assignment was specified, but replication factor was not set to "
            "-1.",
        ),
        (
            new_topic(0, 1),
            InvalidPartitions,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            new_topic(1, 0),
            InvalidReplicationFactor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            new_topic(1, 4),
            InvalidReplicationFactor,
            "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot"
            " be reached because only 3 broker(s) are registered.",
        ),
    ],
)
def test_impossible_topics_are_refused(
    new: TopicToCreate, error: type[ProtocolError], message: str
) -> None:
    with pytest.raises(error) as caught:
        plan_topic(new, image(), CHANCE)
    assert str(caught.value) == message


def test_a_partition_on_sleeping_brokers_only_is_refused() -> None:
    with pytest.raises(InvalidReplicaAssignment, match="partition 1 are fenced"):
        plan_topic(
            new_topic(assignments={0: (0, 2), 1: (2, 3)}), image((0, 1), fenced=(2, 3)), CHANCE
        )


def test_growth_adds_the_partitions_that_are_missing() -> None:
    grown = plan_growth(PartitionsToAdd(name="t", total_count=4), topic((1, 2), (2, 0)), image())
    assert list(grown) == [2, 3]
    # Partition 0 is led by broker 1, so 2 and 3 go on with brokers 0 and 1.
    assert [replicas[0] for replicas in grown.values()] == [0, 1]
    assert all(len(set(replicas)) == 2 for replicas in grown.values())


def test_growth_may_be_told_where_to() -> None:
    new = PartitionsToAdd(name="t", total_count=3, assignments=[(2,), (1,)])
    assert plan_growth(new, topic((0,)), image()) == {1: (2,), 2: (1,)}


@pytest.mark.parametrize(
    ("count", "assignments", "error", "message"),
    [
        (
            1,
            None,
            InvalidPartitions,
            "The topic t currently has 2 partition(s); 1 would not be an increase.",
        ),
        (2, None, InvalidPartitions, "Topic already has 2 partition(s)."),
        (
            4,
            [(0, 1)],
            InvalidReplicaAssignment,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            3,
            [(0,)],
            InvalidReplicaAssignment,
            "The manual partition assignment includes a partition with 1 replica(s), but this is "
            "not consistent with previous partitions, which have 2 replica(s).",
        ),
        (
            3,
            [(0, 9)],
            InvalidReplicaAssignment,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
    ],
)
def test_impossible_growth_is_refused(
    count: int,
    assignments: list[tuple[int, ...]] | None,
    error: type[ProtocolError],
    message: str,
) -> None:
    new = PartitionsToAdd(name="t", total_count=count, assignments=assignments)
    with pytest.raises(error) as caught:
        plan_growth(new, topic((0, 1), (1, 2)), image())
    assert str(caught.value) == message


def test_growth_with_too_few_brokers_left_is_refused() -> None:
    with pytest.raises(InvalidReplicationFactor, match=r"only 1 broker\(s\) are"):
        plan_growth(PartitionsToAdd(name="t", total_count=2), topic((0, 1, 2)), image((1,)))


def test_more_partitions_than_can_be_held_are_refused_before_they_are_planned() -> None:
    refuse_too_many(PARTITIONS_PER_REQUEST_MAX)
    with pytest.raises(PolicyViolation, match="Excessively large number of partitions"):
        refuse_too_many(PARTITIONS_PER_REQUEST_MAX + 1)
    with pytest.raises(PolicyViolation):
        plan_growth(PartitionsToAdd(name="t", total_count=2**31 - 1), topic((0,)), image())
    assert requested_partitions(new_topic(5, 1)) == 5
    assert requested_partitions(new_topic(assignments={0: (0,), 1: (1,)})) == 2
