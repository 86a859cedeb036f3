"""Other replicas for partitions: begin, cancel and list moves between brokers and directories.

The controller looks after moves between brokers; a move between the directories of one broker is
that broker's own business.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import ProtocolError, error_for
from penstock.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from penstock.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReassignment:
    """A partition on the move: all its replicas now, those that come and those that go."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas it will have when the move is over."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


class Replica(NamedTuple):
    """One broker's copy of a partition."""

    topic: str
    partition: int
    broker_id: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker_id}"


def alter_partition_reassignments(
    cluster: ClusterClient,
    wanted: Mapping[TopicPartition, Sequence[int] | None],
    *,
    timeout_ms: int,
    allow_replication_factor_change: bool = True,
) -> dict[TopicPartition, ProtocolError | None]:
    """Give partitions these replicas, or (None) stop moving them; what went wrong, by partition."""
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=allow_replication_factor_change,
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[
                    _reassignable(index, wanted[TopicPartition(topic, index)]) for index in indexes
                ],
            )
            for topic, indexes in by_topic(wanted).items()
        ],
    )
    answer = cluster.ask_controller(
        request, AlterPartitionReassignmentsResponse, code_of=lambda a: a.error_code
    )
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message or "")
    return {
        TopicPartition(topic.name, part.partition_index): _error(
            part.error_code, part.error_message
        )
        for topic in answer.responses
        for part in topic.partitions
    }


def list_partition_reassignments(
    cluster: ClusterClient,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    timeout_ms: int,
) -> dict[TopicPartition, PartitionReassignment]:
    """The moves under way, of these partitions or of all; those that rest are left out."""
    topics = None
    if partitions is not None:
        topics = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    request = ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics)
    answer = cluster.ask_controller(
        request, ListPartitionReassignmentsResponse, code_of=lambda a: a.error_code
    )
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message or "")
    return {
        TopicPartition(topic.name, part.partition_index): PartitionReassignment(
            replicas=tuple(part.replicas),
            adding=tuple(part.adding_replicas),
            removing=tuple(part.removing_replicas),
        )
        for topic in answer.topics
        for part in topic.partitions
    }


def alter_replica_log_dirs(
    cluster: ClusterClient, wanted: Mapping[Replica, str]
) -> dict[Replica, ProtocolError | None]:
    """Have replicas moved to other directories of their brokers; what went wrong, by replica."""
    done: dict[Replica, ProtocolError | None] = {}
    for broker_id in sorted({replica.broker_id for replica in wanted}):
        its = {replica: path for replica, path in wanted.items() if replica.broker_id == broker_id}
        request = AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(path=path, topics=_in_directory(its, path))
                for path in sorted(set(its.values()))
            ]
        )
        answer = cluster.ask_node(broker_id, request, AlterReplicaLogDirsResponse)
        for topic in answer.results:
            for part in topic.partitions:
                at = Replica(topic.topic_name, part.partition_index, broker_id)
                done[at] = _error(part.error_code, None)
    return done


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The partitions' numbers, by topic."""
    groups: dict[str, list[int]] = {}
    for partition in partitions:
        groups.setdefault(partition.topic, []).append(partition.partition)
    return groups


def _reassignable(index: int, replicas: Sequence[int] | None) -> ReassignablePartition:
    listed = None if replicas is None else list(replicas)
    return ReassignablePartition(partition_index=index, replicas=listed)


def _in_directory(wanted: Mapping[Replica, str], path: str) -> list[AlterReplicaLogDirTopic]:
    here = [TopicPartition(r.topic, r.partition) for r, chosen in wanted.items() if chosen == path]
    return [
        AlterReplicaLogDirTopic(name=topic, partitions=indexes)
        for topic, indexes in by_topic(here).items()
    ]


def _error(code: int, message: str | None) -> ProtocolError | None:
    return error_for(code, message or "") if code else None
