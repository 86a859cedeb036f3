"""The hash of a group's topics: Apache Kafka's number, and another one for every change."""

from dataclasses import replace

import pytest

from penstock.cluster.image.image import (
    BrokerImage,
    ClusterImage,
    PartitionImage,
    PartitionState,
    TopicImage,
)
from penstock.groups.consumer.topics import TopicHashes

STATE = PartitionState(leader=1, leader_epoch=0, isr=(1,), min_isr=1)


def broker(number: int, rack: str | None) -> BrokerImage:
    return BrokerImage(broker_id=number, epoch=1, endpoints=(), rack=rack, is_active=True)


def topic(name: str, topic_id: bytes, count: int, replicas: tuple[int, ...] = (1, 2)) -> TopicImage:
    partitions = {n: PartitionImage(replicas=replicas, state=STATE) for n in range(count)}
    return TopicImage(name=name, topic_id=topic_id, partitions=partitions)


def image(*topics: TopicImage) -> ClusterImage:
    return ClusterImage(
        cluster_id="c",
        brokers={1: broker(1, "rackB"), 2: broker(2, "rackA"), 3: broker(3, None)},
        topics={topic.name: topic for topic in topics},
    )


ONE = topic("topic-\u00e9", bytes.fromhex("01020304050607081112131415161718"), 3)
TWO = topic("two", bytes(16), 1)


def test_a_topic_has_the_number_that_kafka_gives_it() -> None:
    """Computed with Kafka's own library: id, name, and for each partition its racks, sorted."""
    assert TopicHashes().of_topic(ONE, image(ONE)) == 19010617319658187


def test_a_group_without_a_topic_that_exists_has_none() -> None:
    assert TopicHashes().of_group(["nowhere"], image(ONE)) == 0
    assert TopicHashes().of_group([], image(ONE)) == 0


def test_the_order_of_subscriptions_and_unknown_topics_make_no_difference() -> None:
    hashes, cluster = TopicHashes(), image(ONE, TWO)
    expected = hashes.of_group([ONE.name, TWO.name], cluster)
    assert hashes.of_group([TWO.name, "nowhere", ONE.name], cluster) == expected != 0


@pytest.mark.parametrize(
    "changed",
    [
        topic("two", b"\x01" * 16, 1),
        topic("two", bytes(16), 2),
        topic("two", bytes(16), 1, replicas=(1, 3)),
        topic("two", bytes(16), 1, replicas=(1,)),
    ],
)
def test_a_topic_made_anew_or_grown_or_moved_has_another(changed: TopicImage) -> None:
    hashes = TopicHashes()
    before = hashes.of_group(["two"], image(TWO))
    assert hashes.of_group(["two"], image(changed)) != before


def test_a_broker_that_moves_to_another_rack_changes_its_topics() -> None:
    hashes, cluster = TopicHashes(), image(TWO)
    before = hashes.of_group(["two"], cluster)
    moved = replace(cluster, brokers={**cluster.brokers, 1: broker(1, "rackC")})
    assert hashes.of_group(["two"], moved) != before


def test_an_election_changes_nothing() -> None:
    hashes = TopicHashes()
    before = hashes.of_group(["two"], image(TWO))
    elected = replace(
        TWO,
        partitions={0: PartitionImage(replicas=(1, 2), state=STATE._replace(leader=2, isr=(2,)))},
    )
    assert hashes.of_group(["two"], image(elected)) == before
