"""DeleteRecords: move the start of a log forward; everything before it is forgotten."""

from penstock.broker.context import Broker, RequestContext
from penstock.cluster.topic_names import INTERNAL_TOPICS
from penstock.errors import InvalidTopic, PolicyViolation, ProtocolError
from penstock.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_NO_LOW_WATERMARK = -1


def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_answer(topic.name, it, context.broker) for it in topic.partitions],
            )
            for topic in request.topics
        ]
    )


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
    topic: str, wanted: DeleteRecordsPartition, broker: Broker
) -> DeleteRecordsPartitionResult:
    try:
        low_watermark = _delete(topic, wanted, broker)
    except ProtocolError as error:
        return _failed(wanted.partition_index, error)
    return DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index, low_watermark=low_watermark
    )


def _delete(topic: str, wanted: DeleteRecordsPartition, broker: Broker) -> int:
    partition = broker.partitions.leader(topic, wanted.partition_index)
    if topic in INTERNAL_TOPICS:
        raise InvalidTopic(f"records of the internal topic {topic} are not for clients to delete")
    policy = partition.log.config.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        raise PolicyViolation(f"{topic} is compacted and keeps the last record of every key")
    return partition.delete_records(wanted.offset)
