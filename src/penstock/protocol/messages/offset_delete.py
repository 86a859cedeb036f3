"""OffsetDelete: forget a group's offsets of some partitions."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, string


class OffsetDeleteRequestPartition(Struct):
    """A partition whose offset to forget."""

    partition_index: int = int32("0+")


class OffsetDeleteRequestTopic(Struct):
    """A topic and its partitions."""

    name: str = string("0+")
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition, "0+")


class OffsetDeleteRequest(Request, api=ApiKey.OFFSET_DELETE):
    """The group and the partitions."""

    group_id: str = string("0+")
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic, "0+")


class OffsetDeleteResponsePartition(Struct):
    """Whether the offset of one partition is gone."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class OffsetDeleteResponseTopic(Struct):
    """A topic and the results of its partitions."""

    name: str = string("0+")
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition, "0+")


class OffsetDeleteResponse(Response, api=ApiKey.OFFSET_DELETE):
    """One result per partition."""

    error_code: int = int16("0+")
    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic, "0+")
