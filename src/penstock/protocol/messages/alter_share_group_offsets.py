"""AlterShareGroupOffsets: begin elsewhere with an empty share group."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string, uuid


class AlterShareGroupOffsetsRequestPartition(Struct):
    """The offset to begin at."""

    partition_index: int = int32("0+")
    start_offset: int = int64("0+")


class AlterShareGroupOffsetsRequestTopic(Struct):
    """A topic and its partitions."""

    topic_name: str = string("0+")
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array(
        AlterShareGroupOffsetsRequestPartition, "0+"
    )


class AlterShareGroupOffsetsRequest(Request, api=ApiKey.ALTER_SHARE_GROUP_OFFSETS):
    """The group and its new start offsets."""

    group_id: str = string("0+")
    topics: list[AlterShareGroupOffsetsRequestTopic] = array(
        AlterShareGroupOffsetsRequestTopic, "0+"
    )


class AlterShareGroupOffsetsResponsePartition(Struct):
    """Whether one partition was changed."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)


class AlterShareGroupOffsetsResponseTopic(Struct):
    """A topic and the results of its partitions."""

    topic_name: str = string("0+")
    topic_id: bytes = uuid("0+")
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array(
        AlterShareGroupOffsetsResponsePartition, "0+"
    )


class AlterShareGroupOffsetsResponse(Response, api=ApiKey.ALTER_SHARE_GROUP_OFFSETS):
    """One result per partition."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(
        AlterShareGroupOffsetsResponseTopic, "0+"
    )
