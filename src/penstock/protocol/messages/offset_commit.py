"""OffsetCommit: how far a group has read."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string, uuid


class OffsetCommitRequestPartition(Struct):
    """The offset to store for one partition, with a note of the client's choosing."""

    partition_index: int = int32("0+")
    committed_offset: int = int64("0+")
    committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)
    commit_timestamp: int = int64("1", default=-1)
    committed_metadata: str | None = string("0+", nullable=True)


class OffsetCommitRequestTopic(Struct):
    """A topic of the request: by name until version 9, by id after."""

    name: str = string("0-9", ignorable=True)
    topic_id: bytes = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition, "0+")


class OffsetCommitRequest(Request, api=ApiKey.OFFSET_COMMIT):
    """Offsets of one group, and proof that the sender still belongs to it."""

    group_id: str = string("0+")
    generation_id_or_member_epoch: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("1+", ignorable=True)
    group_instance_id: str | None = string("7+", nullable=True, default=None)
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic, "0+")


class OffsetCommitResponsePartition(Struct):
    """Whether the offset of one partition was stored."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class OffsetCommitResponseTopic(Struct):
    """A topic of the answer: by name until version 9, by id after."""

    name: str = string("0-9", ignorable=True)
    topic_id: bytes = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition, "0+")


class OffsetCommitResponse(Response, api=ApiKey.OFFSET_COMMIT):
    """One result per partition."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic, "0+")
