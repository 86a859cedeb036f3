"""DeleteRecords: move the start of a log forward; everything before it is forgotten.

The answer waits until every live replica has forgotten it too, or until the time is up: a record
that a later leader still had would not be deleted. Where many partitions are named, others have
their turn in between.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

from penstock.broker.context import Broker, RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.slices import TimeSlice
from penstock.cluster.topics.names import INTERNAL_TOPICS
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
_AT_ONCE: Final = 200  # So many partitions are done with in a few milliseconds.

# An answer that must wait until all live replicas begin where the leader does.
_Wait = tuple[DeleteRecordsPartitionResult, Partition, int, "asyncio.Future[None]"]


def handle(
    request: DeleteRecordsRequest, context: RequestContext
) -> DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]:
    if sum(max(1, len(topic.partitions)) for topic in request.topics) > _AT_ONCE:
        context.is_large = context.holds = True
        return _in_turns(request, context.broker)
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


async def _in_turns(request: DeleteRecordsRequest, broker: Broker) -> DeleteRecordsResponse:
    """First all deletions, then all waits, so that the time is that of the request."""
    pace = TimeSlice()
    waits: list[_Wait] = []
    response = DeleteRecordsResponse(topics=[])
    for topic in request.topics:
        result = DeleteRecordsTopicResult(name=topic.name, partitions=[])
        response.topics.append(result)
        for wanted in topic.partitions:
            result.partitions.append(_answer(topic.name, wanted, broker, waits))
            await pace.breathe()
        await pace.breathe()
    return await _when_deleted(response, waits, timeout_s=request.timeout_ms / 1000)


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
    answer = DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_LOW_WATERMARK)
    return fail(answer, error)


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
    loop, pace = asyncio.get_running_loop(), TimeSlice()
    until_s = loop.time() + max(timeout_s, 0)
    # One after the other, which for many takes no longer than all at once.
    for *_, wait in waits:
        left_s = until_s - loop.time()
        if left_s <= 0:
            break
        if not wait.done():
            await asyncio.wait([wait], timeout=left_s)
        await pace.breathe()
    for answer, partition, start_offset, wait in waits:
        _take_outcome(answer, partition, start_offset, wait)
        await pace.breathe()
    return response


def _take_outcome(
    answer: DeleteRecordsPartitionResult,
    partition: Partition,
    start_offset: int,
    wait: "asyncio.Future[None]",
) -> None:
    error: BaseException | None = RequestTimedOut("not every replica has deleted them yet")
    if wait.done():
        error = wait.exception()
    else:
        wait.cancel()
    if isinstance(error, ProtocolError):
        fail(answer, error)
        answer.low_watermark = _NO_LOW_WATERMARK
    else:
        # A replica that came back since has not told where it begins.
        answer.low_watermark = max(partition.low_watermark(), start_offset)
