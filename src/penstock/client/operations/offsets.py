"""Positions in logs: first, last and timed offsets, and cutting records off the beginning."""

from collections.abc import Iterable, Mapping
from enum import IntEnum

from penstock.client.values import OffsetAndTimestamp, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import OffsetOutOfRange, ProtocolError, error_for
from penstock.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_CONSUMER = -1  # replica_id of one who is no broker.


class OffsetSpec(IntEnum):
    """Times with a meaning of their own."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


def list_offsets(
    cluster: ClusterClient,
    wanted: Mapping[TopicPartition, int],
    *,
    timeout_ms: int,
    read_committed: bool = False,
) -> dict[TopicPartition, OffsetAndTimestamp | ProtocolError | None]:
    """Offsets by partition for a time in ms or an OffsetSpec.

    None: no record is that late. An error stands for a partition that could not be asked.
    """
    found: dict[TopicPartition, OffsetAndTimestamp | ProtocolError | None] = {}
    for node_id, partitions in _by_leader(cluster, wanted).items():
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=int(read_committed),
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=index,
                            timestamp=wanted[TopicPartition(topic, index)],
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in _by_topic(partitions).items()
            ],
            timeout_ms=timeout_ms,
        )
        answer = cluster.ask_node(node_id, request, ListOffsetsResponse)
        for topic in answer.topics:
            for part in topic.partitions:
                at = TopicPartition(topic.name, part.partition_index)
                if part.error_code:
                    found[at] = error_for(part.error_code)
                elif part.offset < 0:
                    found[at] = None
                else:
                    epoch = part.leader_epoch if part.leader_epoch >= 0 else None
                    found[at] = OffsetAndTimestamp(part.offset, part.timestamp, epoch)
    return found


def delete_records(
    cluster: ClusterClient, before: Mapping[TopicPartition, int], *, timeout_ms: int
) -> dict[TopicPartition, int | ProtocolError]:
    """Cut off the records before an offset (-1: all); the new first offset, or what went wrong."""
    done: dict[TopicPartition, int | ProtocolError] = {}
    by_leader: dict[int, list[TopicPartition]] = {}
    for at, leader in cluster.locate(list(before)).items():
        if isinstance(leader, ProtocolError):
            done[at] = leader  # What is wrong with one partition does not stop the others.
        else:
            by_leader.setdefault(leader, []).append(at)
    for node_id, partitions in by_leader.items():
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(
                            partition_index=index, offset=before[TopicPartition(topic, index)]
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in _by_topic(partitions).items()
            ],
            timeout_ms=timeout_ms,
        )
        answer = cluster.ask_node(node_id, request, DeleteRecordsResponse)
        for topic in answer.topics:
            for part in topic.partitions:
                at = TopicPartition(topic.name, part.partition_index)
                done[at] = part.low_watermark
                if part.error_code == OffsetOutOfRange.code:
                    done[at] = OffsetOutOfRange(f"The log does not reach to offset {before[at]}.")
                elif part.error_code:
                    done[at] = error_for(part.error_code)
    return {at: done[at] for at in before if at in done}


def _by_leader(
    cluster: ClusterClient, partitions: Iterable[TopicPartition]
) -> dict[int, list[TopicPartition]]:
    groups: dict[int, list[TopicPartition]] = {}
    for partition, node_id in cluster.leaders(list(partitions)).items():
        groups.setdefault(node_id, []).append(partition)
    return groups


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for partition in partitions:
        groups.setdefault(partition.topic, []).append(partition.partition)
    return groups
