"""What clients of a listener see of brokers and partitions."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.visible import (
    CLUSTER_OPERATIONS,
    TOPIC_OPERATIONS,
    leader_endpoint,
    leader_of,
    offline_replicas,
    reachable,
)
from penstock.cluster.image.image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    Endpoint,
    PartitionImage,
    PartitionState,
    TopicImage,
)

INSIDE = Endpoint("INSIDE", "10.0.0.1", 9092, "PLAINTEXT")
OUTSIDE = Endpoint("OUTSIDE", "example.org", 9093, "SSL")


def broker(broker_id: int, *endpoints: Endpoint, is_active: bool = True) -> BrokerImage:
    return BrokerImage(broker_id=broker_id, epoch=1, endpoints=endpoints, is_active=is_active)


def image(*brokers: BrokerImage, **topics: PartitionImage) -> ClusterImage:
    return ClusterImage(
        cluster_id="c",
        brokers={it.broker_id: it for it in brokers},
        topics={
            name: TopicImage(name=name, topic_id=bytes(16), partitions={0: partition})
            for name, partition in topics.items()
        },
    )


def led_by(leader: int, *replicas: int) -> PartitionImage:
    state = PartitionState(leader=leader, leader_epoch=3, isr=replicas, min_isr=1)
    return PartitionImage(replicas=replicas, state=state)


def test_a_broker_is_reached_at_its_address_on_the_listener_of_the_client() -> None:
    cluster = image(broker(1, INSIDE, OUTSIDE), broker(2, INSIDE))
    assert reachable(cluster, "OUTSIDE") == {1: OUTSIDE}
    assert reachable(cluster, "INSIDE") == {1: INSIDE, 2: INSIDE}


def test_a_broker_that_is_not_active_is_shown_only_when_asked_for() -> None:
    cluster = image(broker(1, INSIDE, is_active=False))
    assert reachable(cluster, "INSIDE") == {}
    assert reachable(cluster, "INSIDE", include_inactive=True) == {1: INSIDE}


@given(st.integers(0, 5), st.sets(st.integers(0, 5)))
def test_a_leader_nobody_can_reach_is_no_leader(leader: int, brokers: set[int]) -> None:
    seen = leader_of(led_by(leader, leader), brokers)
    assert seen == (leader if leader in brokers else NO_LEADER)


@given(st.lists(st.integers(0, 5), unique=True, min_size=1), st.sets(st.integers(0, 5)))
def test_replicas_are_reachable_or_offline(replicas: list[int], brokers: set[int]) -> None:
    offline = offline_replicas(led_by(replicas[0], *replicas), brokers)
    assert set(offline) == set(replicas) - brokers
    assert sorted(offline, key=replicas.index) == offline


def test_the_endpoint_of_a_leader_needs_topic_partition_and_leader() -> None:
    cluster = image(broker(1, INSIDE), orders=led_by(1, 1), orphan=led_by(2, 2))
    brokers = reachable(cluster, "INSIDE")
    assert leader_endpoint(cluster, "orders", 0, brokers) == (1, INSIDE)
    assert leader_endpoint(cluster, "orders", 1, brokers) is None
    assert leader_endpoint(cluster, "orphan", 0, brokers) is None
    assert leader_endpoint(cluster, "absent", 0, brokers) is None


def test_without_an_authorizer_every_operation_is_allowed_as_kafka_writes_it() -> None:
    assert TOPIC_OPERATIONS == 0b1101_1111_1000
    assert CLUSTER_OPERATIONS == 0b1_1111_1010_0000
