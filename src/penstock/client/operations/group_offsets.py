"""How far groups have read: fetch, set and delete their committed offsets, without being a member.

Partitions go by name: the newest versions of these requests name topics by id alone, which says
nothing about a topic that was deleted meanwhile.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from penstock.client.operations.coordinators import (
    CoordinatorKind,
    ask_coordinator,
    ask_within,
)
from penstock.client.values import Node, OffsetAndMetadata, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import ProtocolError, error_for
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from penstock.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)

_BY_NAME_MAX = 9  # The last version of OffsetFetch and OffsetCommit with names of topics.
_MANY_GROUPS_FROM = 8

_Part: TypeAlias = OffsetFetchResponsePartition | OffsetFetchResponsePartitions


def group_offsets(
    cluster: ClusterClient,
    group_id: str,
    *,
    with_notes: bool = False,
    require_stable: bool = False,
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Everything that a group has committed, by topic and partition.

    `with_notes`: also commits that have no offset (-1) but only metadata, which is no position.
    `require_stable`: UnstableOffsetCommit while a transaction may still change one (KIP-447).
    """

    def ask(node: Node) -> dict[TopicPartition, OffsetAndMetadata]:
        spoken = cluster.node_connection(node.id).versions(ApiKey.OFFSET_FETCH)
        if spoken and spoken[-1] < _MANY_GROUPS_FROM:
            request = OffsetFetchRequest(
                group_id=group_id, topics=None, require_stable=require_stable
            )
        else:
            wanted = OffsetFetchRequestGroup(group_id=group_id, topics=None)
            request = OffsetFetchRequest(groups=[wanted], require_stable=require_stable)
        answer = ask_within(
            cluster, node.id, request, OffsetFetchResponse, version_max=_BY_NAME_MAX
        )
        return _committed(answer, least=-1 if with_notes else 0)

    return ask_coordinator(cluster, group_id, CoordinatorKind.GROUP, ask)


def alter_group_offsets(
    cluster: ClusterClient, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> None:
    """Commit offsets for a group that has no members; the first that fails is raised."""
    if not offsets:
        return
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                _commit(partition, offsets[TopicPartition(topic, partition)])
                for partition in partitions
            ],
        )
        for topic, partitions in _by_topic(offsets).items()
    ]
    request = OffsetCommitRequest(group_id=group_id, topics=topics)

    def ask(node: Node) -> None:
        answer = ask_within(
            cluster, node.id, request, OffsetCommitResponse, version_max=_BY_NAME_MAX
        )
        for topic in answer.topics:
            for part in topic.partitions:
                if part.error_code:
                    raise error_for(part.error_code)

    ask_coordinator(cluster, group_id, CoordinatorKind.GROUP, ask)


def delete_group_offsets(
    cluster: ClusterClient, group_id: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ProtocolError | None]:
    """Forget offsets; what kept each one, or None. Raises what concerns the whole group."""
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[OffsetDeleteRequestPartition(partition_index=p) for p in indexes],
            )
            for topic, indexes in _by_topic(partitions).items()
        ],
    )

    def ask(node: Node) -> dict[TopicPartition, ProtocolError | None]:
        answer = cluster.ask_node(node.id, request, OffsetDeleteResponse)
        if answer.error_code:
            raise error_for(answer.error_code)
        return {
            TopicPartition(topic.name, part.partition_index): (
                error_for(part.error_code) if part.error_code else None
            )
            for topic in answer.topics
            for part in topic.partitions
        }

    return ask_coordinator(cluster, group_id, CoordinatorKind.GROUP, ask)


def _commit(partition: int, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset.offset,
        committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


def _committed(
    answer: OffsetFetchResponse, *, least: int
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Both shapes of the answer as one."""
    codes = [answer.error_code, *(group.error_code for group in answer.groups)]
    failed = next((code for code in codes if code), 0)
    if failed:
        raise error_for(failed)
    found: list[tuple[str, _Part]] = [
        *((topic.name, part) for topic in answer.topics for part in topic.partitions),
        *(
            (topic.name, part)
            for group in answer.groups
            for topic in group.topics
            for part in topic.partitions
        ),
    ]
    failed = next((part.error_code for _, part in found if part.error_code), 0)
    if failed:
        raise error_for(failed)
    offsets = {
        TopicPartition(name, part.partition_index): _offset(part)
        for name, part in found
        if part.committed_offset >= least
    }
    return dict(sorted(offsets.items()))


def _offset(part: _Part) -> OffsetAndMetadata:
    epoch = part.committed_leader_epoch
    return OffsetAndMetadata(
        part.committed_offset, part.metadata or "", epoch if epoch >= 0 else None
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        grouped.setdefault(partition.topic, []).append(partition.partition)
    return grouped
