"""Leaders by order of an operator: the preferred one, or any at all where none is left in sync."""

from collections.abc import Iterable
from enum import IntEnum

from penstock.client.operations.reassignments import by_topic
from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import ErrorCode, ProtocolError, error_for
from penstock.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)


class ElectionType(IntEnum):
    """Which leader is wanted."""

    PREFERRED = 0
    UNCLEAN = 1  # May lose records that were acknowledged.


def elect_leaders(
    cluster: ClusterClient,
    election: ElectionType,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    timeout_ms: int,
) -> dict[TopicPartition, ProtocolError | None]:
    """Hold elections for partitions or (None) for all; None in the result: a new leader leads.

    ElectionNotNeeded stands for a partition that has the wanted leader. When all are asked for,
    brokers leave those out.
    """
    wanted = None
    if partitions is not None:
        wanted = [
            TopicPartitions(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    request = ElectLeadersRequest(
        election_type=int(election), topic_partitions=wanted, timeout_ms=timeout_ms
    )
    answer = cluster.ask_controller(request, ElectLeadersResponse, code_of=_code)
    if answer.error_code:
        raise error_for(answer.error_code)
    return {
        TopicPartition(topic.topic, part.partition_id): (
            error_for(part.error_code, part.error_message or "") if part.error_code else None
        )
        for topic in answer.replica_election_results
        for part in topic.partition_result
    }


def _code(answer: ElectLeadersResponse) -> int:
    """The first versions have no code of their own: they say it with every partition."""
    codes = [
        part.error_code
        for topic in answer.replica_election_results
        for part in topic.partition_result
    ]
    is_elsewhere = ErrorCode.NOT_CONTROLLER in codes
    return ErrorCode.NOT_CONTROLLER if is_elsewhere else answer.error_code
