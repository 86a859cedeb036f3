"""Moves of replicas between brokers: held back by a throttle, let go, and taken back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.integration.cluster.writing import QUIET
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.operations.configs import (
    ConfigChange,
    ConfigResource,
    Operation,
    ResourceType,
)
from penstock.client.operations.topics import NewTopic
from penstock.client.values import TopicPartition

RECORDS, RECORD_BYTES = 64, 64_000  # Four answers of the leader, at least.
FROM, TO = (0, 1), (0, 2)  # The new replica is on broker 2, the leader stays.
SLOW = "1000"  # Bytes a second: what is begun with is more than an hour's worth.


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin(bootstrap_servers=cluster.bootstrap) as made:
        yield made
        for broker in range(len(cluster.brokers)):
            resource = ConfigResource(ResourceType.BROKER, str(broker))
            keys = [f"{side}.replication.throttled.rate" for side in ("leader", "follower")]
            deleted = [ConfigChange(name=k, operation=Operation.DELETE) for k in keys]
            made.alter_configs({resource: deleted})


def filled(admin: Admin, cluster: Cluster, name: str) -> TopicPartition:
    """A topic of one partition on brokers 0 and 1, with some megabytes in it."""
    admin.create_topics(
        [
            NewTopic(
                name=name,
                partitions=1,
                replication_factor=2,
                assignments={0: FROM},
                configs={"file.delete.delay.ms": "0"},
            )
        ]
    )
    cluster.until_in_sync(name, 2)
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "batch.size": RECORD_BYTES, **QUIET}
    )
    for _ in range(RECORDS):
        producer.produce(name, b"x" * RECORD_BYTES, partition=0)
    assert producer.flush(120) == 0
    return TopicPartition(name, 0)


def set_rate(admin: Admin, side: str, rate: str) -> None:
    """Of the broker on that side of the move."""
    broker = TO[1] if side == "follower" else FROM[0]
    change = ConfigChange(name=f"{side}.replication.throttled.rate", value=rate)
    admin.alter_configs({ConfigResource(ResourceType.BROKER, str(broker)): [change]})


def throttle(admin: Admin, side: str, moved: TopicPartition) -> None:
    change = ConfigChange(name=f"{side}.replication.throttled.replicas", value="*")
    admin.alter_configs({ConfigResource(ResourceType.TOPIC, moved.topic): [change]})
    set_rate(admin, side, SLOW)


def copied_bytes(cluster: Cluster, moved: TopicPartition) -> int:
    return sum(f.stat().st_size for f in new_home(cluster).glob(f"data*/{moved.topic}-0/*.log"))


def new_home(cluster: Cluster) -> Path:
    """Of the broker that gets the copy; it may have several directories for logs in there."""
    return cluster.brokers[TO[1]].directory


def is_moving(admin: Admin, moved: TopicPartition) -> bool:
    return moved in admin.list_partition_reassignments([moved])


def until_moved(admin: Admin, cluster: Cluster, moved: TopicPartition) -> None:
    """The controller knows first; the broker that is asked for metadata hears of it afterwards."""
    eventually(lambda: not is_moving(admin, moved), timeout_s=120, what=f"the move of {moved}")
    eventually(
        lambda: tuple(cluster.partition(moved.topic).replica_nodes) == TO,
        timeout_s=120,
        what=f"{moved} shown on its new brokers",
    )
    assert copied_bytes(cluster, moved) >= RECORDS * RECORD_BYTES


def begun(admin: Admin, cluster: Cluster, side: str, name: str) -> TopicPartition:
    """A throttled move that has copied something and is held back."""
    moved = filled(admin, cluster, name)
    throttle(admin, side, moved)
    assert admin.alter_partition_reassignments({moved: TO}) == {moved: None}
    eventually(lambda: copied_bytes(cluster, moved) > 0, timeout_s=120, what="a first piece")
    return moved


@pytest.mark.parametrize("side", ["follower", "leader"])
def test_a_throttled_move_lets_others_pass_and_ends_when_it_may(
    cluster: Cluster, admin: Admin, side: str
) -> None:
    moved = begun(admin, cluster, side, f"slow-{side}")
    free = filled(admin, cluster, f"free-{side}")
    assert admin.alter_partition_reassignments({free: TO}) == {free: None}
    until_moved(admin, cluster, free)  # As much, on the same brokers, begun later.
    assert is_moving(admin, moved)
    assert 0 < copied_bytes(cluster, moved) < RECORDS * RECORD_BYTES
    set_rate(admin, side, str(1 << 40))
    until_moved(admin, cluster, moved)


def test_a_move_that_is_taken_back_leaves_the_old_replicas_and_no_half_copy(
    cluster: Cluster, admin: Admin
) -> None:
    moved = begun(admin, cluster, "follower", "taken-back")
    assert admin.alter_partition_reassignments({moved: None}) == {moved: None}
    eventually(lambda: not is_moving(admin, moved), timeout_s=120, what="the end of the move")
    eventually(
        lambda: tuple(cluster.partition(moved.topic).replica_nodes) == FROM,
        timeout_s=120,
        what="the old replicas",
    )
    eventually(
        lambda: not list(new_home(cluster).glob(f"data*/{moved.topic}-0*")),
        timeout_s=120,
        what="no half copy",
    )
    cluster.until_in_sync(moved.topic, 2)
