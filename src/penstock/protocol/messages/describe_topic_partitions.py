"""DescribeTopicPartitions: topics in pages, with eligible leaders (KIP-966)."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, int16, int32, string, struct, uuid


class TopicRequest(Struct):
    """A topic by name."""

    name: str = string("0+")


class Cursor(Struct):
    """The first partition of the next page."""

    topic_name: str = string("0+")
    partition_index: int = int32("0+")


class DescribeTopicPartitionsRequest(Request, api=ApiKey.DESCRIBE_TOPIC_PARTITIONS):
    """Topics, where to begin and how many partitions to tell of."""

    topics: list[TopicRequest] = array(TopicRequest, "0+")
    response_partition_limit: int = int32("0+", default=2000)
    cursor: Cursor | None = struct(Cursor, "0+", nullable=True, default=None)


class DescribeTopicPartitionsResponsePartition(Struct):
    """A partition, its replicas and who could lead it."""

    error_code: int = int16("0+")
    partition_index: int = int32("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32, "0+")
    isr_nodes: list[int] = array(int32, "0+")
    eligible_leader_replicas: list[int] | None = array(int32, "0+", nullable=True, default=None)
    last_known_elr: list[int] | None = array(int32, "0+", nullable=True, default=None)
    offline_replicas: list[int] = array(int32, "0+", ignorable=True)


class DescribeTopicPartitionsResponseTopic(Struct):
    """A topic and its partitions on this page."""

    error_code: int = int16("0+")
    name: str | None = string("0+", nullable=True)
    topic_id: bytes = uuid("0+", ignorable=True)
    is_internal: bool = boolean("0+", ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(
        DescribeTopicPartitionsResponsePartition, "0+"
    )
    topic_authorized_operations: int = int32("0+", default=-2147483648)


class DescribeTopicPartitionsResponse(Response, api=ApiKey.DESCRIBE_TOPIC_PARTITIONS):
    """A page; a null cursor says it is the last."""

    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(
        DescribeTopicPartitionsResponseTopic, "0+"
    )
    next_cursor: Cursor | None = struct(Cursor, "0+", nullable=True, default=None)
