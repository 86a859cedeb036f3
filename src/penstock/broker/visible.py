"""The cluster as the clients of one listener see it.

A client can only reach a broker through the listener it came in on, so a leader without that
listener is no leader to it. Everything here is a pure function of the image; what of it goes into
which response is for the handlers of Metadata, DescribeCluster and their kin.
"""

from collections.abc import Collection, Iterable, Mapping

from penstock.cluster.image.image import NO_LEADER, ClusterImage, Endpoint, PartitionImage

# Bit n stands for operation n of Kafka's access rules. Without an authorizer everybody may do all
# that can be done to a topic or to the cluster.
_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = range(3, 9)
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = range(9, 13)


def _bits(operations: Iterable[int]) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(
    (_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
)
GROUP_OPERATIONS = _bits((_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS))
CLUSTER_OPERATIONS = _bits(
    (
        _CREATE,
        _ALTER,
        _DESCRIBE,
        _CLUSTER_ACTION,
        _DESCRIBE_CONFIGS,
        _ALTER_CONFIGS,
        _IDEMPOTENT_WRITE,
    )
)


def reachable(
    image: ClusterImage, listener: str, *, include_inactive: bool = False
) -> dict[int, Endpoint]:
    """The brokers a client of this listener can talk to, and where."""
    return {
        broker.broker_id: endpoint
        for broker in image.brokers.values()
        if broker.is_active or include_inactive
        for endpoint in broker.endpoints
        if endpoint.listener == listener
    }


def leader_of(partition: PartitionImage, brokers: Collection[int]) -> int:
    """The leader, if these brokers include it."""
    leader = partition.state.leader
    return leader if leader in brokers else NO_LEADER


def offline_replicas(partition: PartitionImage, brokers: Collection[int]) -> list[int]:
    return [replica for replica in partition.replicas if replica not in brokers]


def leader_endpoint(
    image: ClusterImage, topic: str, partition: int, brokers: Mapping[int, Endpoint]
) -> tuple[int, Endpoint] | None:
    """Who leads a partition and where it is reached; None: nobody does."""
    found = image.partition(topic, partition)
    if found is None or found.state.leader not in brokers:
        return None
    return found.state.leader, brokers[found.state.leader]
