"""OffsetFetch: how far groups have read."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, int16, int32, int64, string, uuid


class OffsetFetchRequestTopic(Struct):
    """A topic and its partitions, in the requests for a single group."""

    name: str = string("0-7")
    partition_indexes: list[int] = array(int32, "0-7")


class OffsetFetchRequestTopics(Struct):
    """A topic and its partitions: by name until version 9, by id after."""

    name: str = string("8-9", ignorable=True)
    topic_id: bytes = uuid("10+", ignorable=True)
    partition_indexes: list[int] = array(int32, "8+")


class OffsetFetchRequestGroup(Struct):
    """A group of a request for several; null topics ask for all it has."""

    group_id: str = string("8+")
    member_id: str | None = string("9+", nullable=True, default=None, ignorable=True)
    member_epoch: int = int32("9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array(
        OffsetFetchRequestTopics, "8+", nullable=True
    )


class OffsetFetchRequest(Request, api=ApiKey.OFFSET_FETCH):
    """One group until version 7, any number after (KIP-709)."""

    group_id: str = string("0-7")
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, "0-7", nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = boolean("7+")


class OffsetFetchResponsePartition(Struct):
    """The offset of one partition, in the answer for a single group."""

    partition_index: int = int32("0-7")
    committed_offset: int = int64("0-7")
    committed_leader_epoch: int = int32("5-7", default=-1, ignorable=True)
    metadata: str | None = string("0-7", nullable=True)
    error_code: int = int16("0-7")


class OffsetFetchResponseTopic(Struct):
    """A topic, in the answer for a single group."""

    name: str = string("0-7")
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, "0-7")


class OffsetFetchResponsePartitions(Struct):
    """The offset of one partition, or -1 where none was committed."""

    partition_index: int = int32("8+")
    committed_offset: int = int64("8+")
    committed_leader_epoch: int = int32("8+", default=-1, ignorable=True)
    metadata: str | None = string("8+", nullable=True)
    error_code: int = int16("8+")


class OffsetFetchResponseTopics(Struct):
    """A topic: by name until version 9, by id after."""

    name: str = string("8-9", ignorable=True)
    topic_id: bytes = uuid("10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions, "8+")


class OffsetFetchResponseGroup(Struct):
    """The offsets of one group."""

    group_id: str = string("8+")
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics, "8+")
    error_code: int = int16("8+")


class OffsetFetchResponse(Response, api=ApiKey.OFFSET_FETCH):
    """The offsets of one group until version 7, of several after."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = int16("2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, "8+")
