"""DescribeShareGroupOffsets: from where share groups deliver."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string, uuid


class DescribeShareGroupOffsetsRequestTopic(Struct):
    """A topic and the partitions asked about."""

    topic_name: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class DescribeShareGroupOffsetsRequestGroup(Struct):
    """A group; null topics ask for all it has."""

    group_id: str = string("0+")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array(
        DescribeShareGroupOffsetsRequestTopic, "0+", nullable=True
    )


class DescribeShareGroupOffsetsRequest(Request, api=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS):
    """Groups to look at."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(
        DescribeShareGroupOffsetsRequestGroup, "0+"
    )


class DescribeShareGroupOffsetsResponsePartition(Struct):
    """The start offset of one partition, and the lag behind its end."""

    partition_index: int = int32("0+")
    start_offset: int = int64("0+")
    leader_epoch: int = int32("0+")
    lag: int = int64("1+", default=-1, ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)


class DescribeShareGroupOffsetsResponseTopic(Struct):
    """A topic and the results of its partitions."""

    topic_name: str = string("0+")
    topic_id: bytes = uuid("0+")
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array(
        DescribeShareGroupOffsetsResponsePartition, "0+"
    )


class DescribeShareGroupOffsetsResponseGroup(Struct):
    """The offsets of one group."""

    group_id: str = string("0+")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array(
        DescribeShareGroupOffsetsResponseTopic, "0+"
    )
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)


class DescribeShareGroupOffsetsResponse(Response, api=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS):
    """One result per group."""

    throttle_time_ms: int = int32("0+")
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(
        DescribeShareGroupOffsetsResponseGroup, "0+"
    )
