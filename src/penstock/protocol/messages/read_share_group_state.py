"""ReadShareGroupState: what a share group has in flight."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int8, int16, int32, int64, string, uuid


class PartitionData(Struct):
    """A partition and the leader term of the asker."""

    partition: int = int32("0+")
    leader_epoch: int = int32("0+")


class ReadStateData(Struct):
    """A topic and its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[PartitionData] = array(PartitionData, "0+")


class ReadShareGroupStateRequest(Request, api=ApiKey.READ_SHARE_GROUP_STATE):
    """From a partition leader to the keeper of share state."""

    group_id: str = string("0+")
    topics: list[ReadStateData] = array(ReadStateData, "0+")


class StateBatch(Struct):
    """A run of records and how far their delivery is."""

    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


class PartitionResult(Struct):
    """The state of one partition."""

    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)
    state_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    state_batches: list[StateBatch] = array(StateBatch, "0+")


class ReadStateResult(Struct):
    """A topic and the results of its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[PartitionResult] = array(PartitionResult, "0+")


class ReadShareGroupStateResponse(Response, api=ApiKey.READ_SHARE_GROUP_STATE):
    """One result per partition."""

    results: list[ReadStateResult] = array(ReadStateResult, "0+")
