"""DeleteRecords: move the start of a log forward; everything before it is forgotten.

The answer waits until every live replica has forgotten it too, or until the time is up: a record
that a later leader still had would not be deleted.
"""

import asyncio
from collections.abc import Awaitable

from penstock.broker.context import Broker, RequestContext
from penstock.cluster.topic_names import INTERNAL_TOPICS
from penstock.errors import (
    InvalidTopic,
    PolicyViolation,
    ProtocolError,
    RequestTimedOut,
)
from penstock.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from penstock.replica.partition import Partition

_NO_LOW_WATERMARK = -1

# An answer that must wait until all live replicas begin where the leader does.
_Wait = tuple[DeleteRecordsPartitionResult, Partition, int, "asyncio.Future[None]"]


def handle(
    request: DeleteRecordsRequest, context: RequestContext
) -> DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]:
    waits: list[_Wait] = []
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _answer(topic.name, it, context.broker, waits) for it in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
    if waits:
        return _when_deleted(response, waits, timeout_s=request.timeout_ms / 1000)
    return response


def error_response(request: DeleteRecordsRequest, error: ProtocolError) -> DeleteRecordsResponse:
    """The same error for every partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_failed(it.partition_index, error) for it in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _failed(index: int, error: ProtocolError) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=_NO_LOW_WATERMARK, error_code=int(error.code)
    )


def _answer(
    topic: str, wanted: DeleteRecordsPartition, broker: Broker, waits: list[_Wait]
) -> DeleteRecordsPartitionResult:
    try:
        partition, start_offset = _delete(topic, wanted, broker)
    except ProtocolError as error:
        return _failed(wanted.partition_index, error)
    answer = DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index, low_watermark=partition.low_watermark()
    )
    wait = partition.deleted_everywhere(start_offset)
    if wait is not None:
        waits.append((answer, partition, start_offset, wait))
    return answer


def _delete(topic: str, wanted: DeleteRecordsPartition, broker: Broker) -> tuple[Partition, int]:
    partition = broker.partitions.leader(topic, wanted.partition_index)
    if topic in INTERNAL_TOPICS:
        raise InvalidTopic(f"records of the internal topic {topic} are not for clients to delete")
    policy = partition.log.config.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        raise PolicyViolation(f"{topic} is compacted and keeps the last record of every key")
    return partition, partition.delete_records(wanted.offset)


async def _when_deleted(
    response: DeleteRecordsResponse, waits: list[_Wait], *, timeout_s: float
) -> DeleteRecordsResponse:
    await asyncio.wait([wait for *_, wait in waits], timeout=max(timeout_s, 0))
    for answer, partition, start_offset, wait in waits:
        error: BaseException | None = RequestTimedOut("not every replica has deleted them yet")
        if wait.done():
            error = wait.exception()
        else:
            wait.cancel()
        if isinstance(error, ProtocolError):
            answer.error_code = int(error.code)
            answer.low_watermark = _NO_LOW_WATERMARK
        else:
            # A replica that came back since has not told where it begins.
            answer.low_watermark = max(partition.low_watermark(), start_offset)
    return response
