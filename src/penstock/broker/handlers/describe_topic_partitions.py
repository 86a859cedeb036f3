"""DescribeTopicPartitions: topics in the order of their names, a page at a time.

A page holds a limited number of partitions; the cursor says where the next one starts.
"""

from collections.abc import Mapping, Sequence

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.visible import TOPIC_OPERATIONS, leader_of, offline_replicas, reachable
from penstock.cluster.image.image import ClusterImage, Endpoint, PartitionImage, TopicImage
from penstock.cluster.topics.names import INTERNAL_TOPICS, check_topic_name
from penstock.errors import ErrorCode, InvalidRequest, InvalidTopic, ProtocolError
from penstock.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def handle(
    request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    return page_of(request, context, context.broker.image)


def page_of(
    request: DescribeTopicPartitionsRequest, context: RequestContext, image: ClusterImage
) -> DescribeTopicPartitionsResponse:
    """The next page of the image, or of as much of it as the client may see."""
    page_max = context.broker.config.max_request_partition_size_limit
    return one_page(
        request,
        image,
        reachable(image, context.session.listener),
        partitions_max=max(min(request.response_partition_limit, page_max), 1),
    )


def error_response(
    request: DescribeTopicPartitionsRequest, error: ProtocolError
) -> DescribeTopicPartitionsResponse:
    """The same error for every topic asked for; there is no place for it at the top."""
    return DescribeTopicPartitionsResponse(
        topics=[
            fail(DescribeTopicPartitionsResponseTopic(name=topic.name), error)
            for topic in request.topics
        ]
    )


def one_page(
    request: DescribeTopicPartitionsRequest,
    image: ClusterImage,
    brokers: Mapping[int, Endpoint],
    *,
    partitions_max: int,
) -> DescribeTopicPartitionsResponse:
    """From the cursor on, as many partitions as fit; the next cursor is None after the last."""
    response = DescribeTopicPartitionsResponse()
    left = partitions_max
    for name, first in _places_from_cursor(request, image):
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=first)
            break
        topic = image.topics.get(name)
        if topic is None:
            response.topics.append(_missing(name))
            continue
        numbers = sorted(topic.partitions)[first : first + left]
        response.topics.append(_described(topic, numbers, brokers))
        left -= len(numbers)
        following = first + len(numbers)
        if following < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=following)
            break
    return response


def _places_from_cursor(
    request: DescribeTopicPartitionsRequest, image: ClusterImage
) -> list[tuple[str, int]]:
    """Each topic still to tell of, in order, and its first partition on this page."""
    names = sorted({topic.name for topic in request.topics} or image.topics)
    cursor = request.cursor
    if cursor is None:
        return [(name, 0) for name in names]
    if cursor.partition_index < 0:
        raise InvalidRequest(f"the cursor stands at partition {cursor.partition_index}")
    if request.topics and cursor.topic_name not in names:
        raise InvalidRequest(
            f"the cursor stands at {cursor.topic_name}, which is not among the topics asked for"
        )
    return [
        (name, cursor.partition_index if name == cursor.topic_name else 0)
        for name in names
        if name >= cursor.topic_name
    ]


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except InvalidTopic:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code=int(error),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _described(
    topic: TopicImage, numbers: Sequence[int], brokers: Mapping[int, Endpoint]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(index, topic.partitions[index], brokers) for index in numbers],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(
    index: int, partition: PartitionImage, brokers: Mapping[int, Endpoint]
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=leader_of(partition, brokers),
        leader_epoch=partition.state.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.state.isr),
        eligible_leader_replicas=list(partition.state.elr),
        last_known_elr=list(partition.state.lke),
        offline_replicas=offline_replicas(partition, brokers),
    )
