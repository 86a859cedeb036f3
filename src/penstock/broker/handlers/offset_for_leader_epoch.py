"""OffsetForLeaderEpoch: where the records of a leader's epoch end.

A consumer that comes back after a change of leaders asks this to learn whether the log was cut
behind its back (KIP-320).
"""

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.errors import ProtocolError
from penstock.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_answer(topic.topic, wanted, context) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def error_response(
    request: OffsetForLeaderEpochRequest, error: ProtocolError
) -> OffsetForLeaderEpochResponse:
    """The same error for every partition."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_failed(wanted.partition, error) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _failed(index: int, error: ProtocolError) -> EpochEndOffset:
    return fail(EpochEndOffset(partition=index), error)


def _answer(
    topic: str, wanted: OffsetForLeaderPartition, context: RequestContext
) -> EpochEndOffset:
    try:
        partition = context.broker.partitions.leader(topic, wanted.partition)
        partition.check_leader_epoch(wanted.current_leader_epoch)
        epoch, end_offset = partition.log.epoch_end_offset(wanted.leader_epoch)
    except ProtocolError as error:
        return _failed(wanted.partition, error)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
