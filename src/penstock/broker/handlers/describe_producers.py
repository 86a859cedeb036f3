"""DescribeProducers: the idempotent and transactional producers a partition remembers."""

from penstock.broker.context import Broker, RequestContext
from penstock.broker.error_answers import fail
from penstock.cluster.topics.names import check_topic_name
from penstock.errors import ProtocolError
from penstock.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from penstock.replica.partition import Partition

_NONE = -1


def handle(request: DescribeProducersRequest, context: RequestContext) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _answer(topic.name, index, context.broker) for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def error_response(
    request: DescribeProducersRequest, error: ProtocolError
) -> DescribeProducersResponse:
    """The same error for every partition."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_failed(index, error) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _failed(index: int, error: ProtocolError) -> PartitionResponse:
    return fail(PartitionResponse(partition_index=index), error)


def _answer(topic: str, index: int, broker: Broker) -> PartitionResponse:
    try:
        check_topic_name(topic)
        # Any replica may tell; a broker without one says who leads.
        partition = broker.partitions.get(topic, index) or broker.partitions.leader(topic, index)
        return PartitionResponse(partition_index=index, active_producers=_producers(partition))
    except ProtocolError as error:
        return _failed(index, error)


def _producers(partition: Partition) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=_or_none(producer.open_since),
        )
        for producer in partition.log.producers()
    ]


def _or_none(offset: int | None) -> int:
    return _NONE if offset is None else offset
