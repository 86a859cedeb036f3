"""ReplicaEnds, asked by the controller before an unclean election: how far logs here reach."""

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.errors import InconsistentTopicId, ProtocolError, ReplicaNotAvailable
from penstock.protocol.messages.replica_ends import (
    AskedTopic,
    ReplicaEndOfPartition,
    ReplicaEndsOfTopic,
    ReplicaEndsRequest,
    ReplicaEndsResponse,
)


def handle(request: ReplicaEndsRequest, context: RequestContext) -> ReplicaEndsResponse:
    return ReplicaEndsResponse(
        topics=[
            ReplicaEndsOfTopic(
                name=topic.name,
                partitions=[_end(topic, number, context) for number in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _end(topic: AskedTopic, number: int, context: RequestContext) -> ReplicaEndOfPartition:
    try:
        return _found(topic, number, context)
    except ProtocolError as error:
        return fail(ReplicaEndOfPartition(partition_index=number), error)


def _found(topic: AskedTopic, number: int, context: RequestContext) -> ReplicaEndOfPartition:
    partition = context.broker.partitions.get(topic.name, number)
    if partition is None:
        raise ReplicaNotAvailable(f"{topic.name}-{number} is not hosted here")
    if partition.topic_id != topic.topic_id:
        raise InconsistentTopicId(f"{topic.name}-{number} is of another topic of that name")
    log = partition.log
    return ReplicaEndOfPartition(
        partition_index=number,
        # Of the last record: an epoch that was begun and never written in says nothing.
        latest_epoch=log.epoch_of(log.log_end_offset - 1),
        log_end_offset=log.log_end_offset,
        log_start_offset=log.log_start_offset,
    )
