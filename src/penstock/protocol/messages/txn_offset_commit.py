"""TxnOffsetCommit: a group's offsets that count only if the transaction commits."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string


class TxnOffsetCommitRequestPartition(Struct):
    """The offset to store for one partition."""

    partition_index: int = int32("0+")
    committed_offset: int = int64("0+")
    committed_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    committed_metadata: str | None = string("0+", nullable=True)


class TxnOffsetCommitRequestTopic(Struct):
    """A topic and its partitions."""

    name: str = string("0+")
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition, "0+")


class TxnOffsetCommitRequest(Request, api=ApiKey.TXN_OFFSET_COMMIT):
    """Offsets of one group within one transaction."""

    transactional_id: str = string("0+")
    group_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    generation_id: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable=True, default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic, "0+")


class TxnOffsetCommitResponsePartition(Struct):
    """Whether the offset of one partition was stored."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class TxnOffsetCommitResponseTopic(Struct):
    """A topic and the results of its partitions."""

    name: str = string("0+")
    partitions: list[TxnOffsetCommitResponsePartition] = array(
        TxnOffsetCommitResponsePartition, "0+"
    )


class TxnOffsetCommitResponse(Response, api=ApiKey.TXN_OFFSET_COMMIT):
    """One result per partition."""

    throttle_time_ms: int = int32("0+")
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic, "0+")
