"""OffsetDelete: forget a group's offsets of partitions that no member reads (KIP-496)."""

from collections.abc import Coroutine
from typing import Any

from penstock.broker.context import RequestContext
from penstock.errors import ErrorCode
from penstock.groups.shard import GroupShard
from penstock.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(
    request: OffsetDeleteRequest, context: RequestContext
) -> OffsetDeleteResponse | Coroutine[Any, Any, OffsetDeleteResponse]:
    image = context.broker.image

    def delete(shard: GroupShard) -> OffsetDeleteResponse:
        asked = [
            (topic.name, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
            if image.partition(topic.name, partition.partition_index) is not None
        ]
        errors = dict(zip(asked, shard.commits.delete(request.group_id, asked), strict=True))
        return _response(request, errors)

    return context.broker.groups.run(request.group_id, delete)


def _response(
    request: OffsetDeleteRequest, errors: dict[tuple[str, int], ErrorCode]
) -> OffsetDeleteResponse:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=int(
                            errors.get((topic.name, partition.partition_index), unknown)
                        ),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
