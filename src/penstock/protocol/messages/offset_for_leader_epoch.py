"""OffsetForLeaderEpoch: where a leader's term ended, to find where two logs part."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string


class OffsetForLeaderPartition(Struct):
    """The term asked about, and the term the asker believes to be current."""

    partition: int = int32("0+")
    current_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    leader_epoch: int = int32("0+")


class OffsetForLeaderTopic(Struct):
    """A topic and the partitions asked about."""

    topic: str = string("0+")
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition, "0+")


class OffsetForLeaderEpochRequest(Request, api=ApiKey.OFFSET_FOR_LEADER_EPOCH):
    """Terms to look up, for a follower or a consumer."""

    replica_id: int = int32("3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic, "0+")


class EpochEndOffset(Struct):
    """The last term not above the one asked for, and the offset after its end."""

    error_code: int = int16("0+")
    partition: int = int32("0+")
    leader_epoch: int = int32("1+", default=-1, ignorable=True)
    end_offset: int = int64("0+", default=-1)


class OffsetForLeaderTopicResult(Struct):
    """A topic and the results of its partitions."""

    topic: str = string("0+")
    partitions: list[EpochEndOffset] = array(EpochEndOffset, "0+")


class OffsetForLeaderEpochResponse(Response, api=ApiKey.OFFSET_FOR_LEADER_EPOCH):
    """One result per partition."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult, "0+")
