"""The settings that slow a reassignment down, set before it begins and removed when it is done.

Brokers hold the rates; topics list the replicas they apply to, so that other replication runs
free. All brokers and all topics of a plan are cleared together: nobody remembers which were set.
"""

from collections.abc import Iterable, Mapping

from penstock.cli.tools.replicas.move_plan import (
    PlannedMove,
    brokers_of,
    throttled_followers,
    throttled_leaders,
)
from penstock.client.admin import Admin
from penstock.client.operations.configs import (
    ConfigChange,
    ConfigResource,
    Operation,
    ResourceType,
)
from penstock.client.values import TopicPartition

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
DIRECTORY_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


def limit_moves(
    admin: Admin, planned: Mapping[TopicPartition, PlannedMove], *, bytes_per_s: int
) -> None:
    """List the moving replicas with their topics, then limit every broker that takes part."""
    leaders, followers = throttled_leaders(planned), throttled_followers(planned)
    for topic in sorted({at.topic for at in planned}):
        words = {LEADER_REPLICAS: leaders.get(topic), FOLLOWER_REPLICAS: followers.get(topic)}
        changes = [ConfigChange(name=name, value=value) for name, value in words.items() if value]
        if changes:
            admin.alter_configs({ConfigResource(ResourceType.TOPIC, topic): changes})
    rates = {LEADER_RATE: bytes_per_s, FOLLOWER_RATE: bytes_per_s}
    _set_on_brokers(admin, brokers_of(planned), rates)


def limit_directories(admin: Admin, brokers: Iterable[int], *, bytes_per_s: int) -> None:
    """Limit the moves between directories of these brokers."""
    _set_on_brokers(admin, brokers, {DIRECTORY_RATE: bytes_per_s})


def clear(admin: Admin, topics: Iterable[str]) -> None:
    """Remove every throttle of the brokers and of these topics, as far as these exist."""
    brokers = [broker.node.id for broker in admin.describe_cluster().brokers]
    plural = "" if len(brokers) == 1 else "s"
    print(f"Clearing broker-level throttles on broker{plural} {','.join(map(str, brokers))}")
    rates = [
        ConfigChange(name=name, operation=Operation.DELETE)
        for name in (LEADER_RATE, FOLLOWER_RATE, DIRECTORY_RATE)
    ]
    for broker in brokers:
        admin.alter_configs({ConfigResource(ResourceType.BROKER, str(broker)): rates})
    names = sorted(topics)
    plural = "" if len(names) == 1 else "s"
    print(f"Clearing topic-level throttles on topic{plural} {','.join(names)}")
    lists = [
        ConfigChange(name=name, operation=Operation.DELETE)
        for name in (LEADER_REPLICAS, FOLLOWER_REPLICAS)
    ]
    existing = {listing.name for listing in admin.list_topics()}
    for topic in names:
        if topic in existing:  # A topic may have been deleted since it was moved.
            admin.alter_configs({ConfigResource(ResourceType.TOPIC, topic): lists})


def _set_on_brokers(admin: Admin, brokers: Iterable[int], rates: Mapping[str, int]) -> None:
    changes = [ConfigChange(name=name, value=str(value)) for name, value in rates.items()]
    for broker in sorted(brokers):
        admin.alter_configs({ConfigResource(ResourceType.BROKER, str(broker)): changes})
