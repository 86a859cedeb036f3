"""In which data directory a replica is, and to which it is being moved."""

from collections.abc import Iterable
from typing import NamedTuple

from penstock.client.operations.brokers import ReplicaSize, describe_log_dirs
from penstock.client.operations.reassignments import Replica
from penstock.client.wire.cluster import ClusterClient


class ReplicaLogDirs(NamedTuple):
    """The directories of a replica; None: it is in none, or it is not being moved."""

    current: str | None = None
    current_lag: int | None = None
    future: str | None = None
    future_lag: int | None = None  # How much the copy has still to catch up.


def describe_replica_log_dirs(
    cluster: ClusterClient, replicas: Iterable[Replica]
) -> dict[Replica, ReplicaLogDirs]:
    """Where replicas are; one that its broker lacks, or whose broker is gone, is in none."""
    wanted = list(dict.fromkeys(replicas))
    cluster.metadata([])
    asked = {replica.broker_id for replica in wanted} & set(cluster.nodes)
    places = dict.fromkeys(wanted, ReplicaLogDirs())
    for broker_id, directories in describe_log_dirs(cluster, asked).items():
        for directory in directories:
            for held in directory.replicas:
                replica = Replica(*held.partition, broker_id)
                if replica in places:
                    places[replica] = _placed(places[replica], directory.path, held)
    return places


def _placed(known: ReplicaLogDirs, path: str, held: ReplicaSize) -> ReplicaLogDirs:
    if held.is_future:
        return known._replace(future=path, future_lag=held.offset_lag)
    return known._replace(current=path, current_lag=held.offset_lag)
