"""Which replica a consumer should read from: the one in its own rack (KIP-392).

Only the leader answers this, and only where `replica.selector.class` asks for it. A follower may
be read from anyway by whoever finds it, as far as it knows what is committed.
"""

from collections.abc import Mapping
from typing import Final

from penstock.cluster.image.image import BrokerImage
from penstock.replica.partition import Partition

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER: Final = -1


def nearest_replica(
    partition: Partition, fetch_offset: int, client_rack: str, brokers: Mapping[int, BrokerImage]
) -> int:
    """An in-sync follower in the client's rack that has the offset; LEADER: stay where you are."""
    in_sync = partition.in_sync
    if not client_rack or in_sync is None or not partition.is_leader:
        return LEADER
    leader = brokers.get(partition.leader)
    if leader is not None and leader.rack == client_rack:
        return LEADER
    near = [
        follower
        for broker_id, follower in in_sync.followers.items()
        if broker_id in in_sync.state.isr
        and broker_id in brokers
        and brokers[broker_id].rack == client_rack
        and 0 <= follower.log_start_offset <= fetch_offset <= follower.fetch_offset
    ]
    if not near:
        return LEADER
    return max(near, key=lambda one: (one.fetch_offset, one.caught_up_ms, -one.broker_id)).broker_id
