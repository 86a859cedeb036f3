"""OffsetCommit: how far a group has read.

The busiest request of a group, so it is one pass over the partitions, one append, and an answer
without a detour through the event loop where nothing has to be waited for.
"""

from collections.abc import Coroutine
from typing import Any

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import code_of
from penstock.cluster.image.image import TopicImage
from penstock.errors import ErrorCode, ProtocolError
from penstock.groups.offsets.commits import OffsetToCommit
from penstock.groups.shard import GroupShard
from penstock.groups.surroundings import MemberClaim
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_BY_ID_FROM = 10


def handle(
    request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | Coroutine[Any, Any, OffsetCommitResponse]:
    offsets: list[OffsetToCommit] = []
    accepted: list[OffsetCommitResponsePartition] = []  # The results of `offsets`, in order.
    topics: list[OffsetCommitResponseTopic] = []
    for topic in request.topics:
        known, unknown = _known(topic, context)
        results: list[OffsetCommitResponsePartition] = []
        topics.append(
            OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=results)
        )
        for partition in topic.partitions:
            index = partition.partition_index
            result = OffsetCommitResponsePartition(partition_index=index)
            results.append(result)
            if known is None or index not in known.partitions:
                result.error_code = unknown
                continue
            accepted.append(result)
            offsets.append(
                OffsetToCommit(
                    known.name,
                    index,
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata,
                    partition.commit_timestamp,
                )
            )
    response = OffsetCommitResponse(topics=topics)
    if not offsets:
        return response

    def commit(shard: GroupShard) -> OffsetCommitResponse:
        for result, code in zip(
            accepted, _commit(shard, request, offsets, context.version), strict=True
        ):
            if code is not ErrorCode.NONE:
                result.error_code = int(code)
        return response

    return context.broker.groups.run(request.group_id, commit)


def error_response(request: OffsetCommitRequest, error: ProtocolError) -> OffsetCommitResponse:
    """The same error for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code_of(error)
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _known(
    topic: OffsetCommitRequestTopic, context: RequestContext
) -> tuple[TopicImage | None, int]:
    """The topic if it exists, and what is said of partitions that do not."""
    image = context.broker.image
    name: str | None = topic.name
    if context.version >= _BY_ID_FROM:
        name = image.topic_names_by_id.get(topic.topic_id)
        if name is None:
            return None, int(ErrorCode.UNKNOWN_TOPIC_ID)
    return image.topics.get(name or ""), int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _commit(
    shard: GroupShard, request: OffsetCommitRequest, offsets: list[OffsetToCommit], version: int
) -> list[ErrorCode]:
    claim = MemberClaim(
        request.member_id, request.generation_id_or_member_epoch, request.group_instance_id
    )
    try:
        return shard.commits.commit(
            request.group_id,
            claim,
            offsets,
            version=version,
            retention_ms=request.retention_time_ms,
        )
    except ProtocolError as error:
        return [error.code] * len(offsets)
