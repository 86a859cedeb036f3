"""WriteShareGroupState: what changed in a share group's deliveries."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int8, int16, int32, int64, string, uuid


class StateBatch(Struct):
    """A run of records and how far their delivery is."""

    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


class PartitionData(Struct):
    """The changes in one partition."""

    partition: int = int32("0+")
    state_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = array(StateBatch, "0+")


class WriteStateData(Struct):
    """A topic and its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[PartitionData] = array(PartitionData, "0+")


class WriteShareGroupStateRequest(Request, api=ApiKey.WRITE_SHARE_GROUP_STATE):
    """From a partition leader to the keeper of share state."""

    group_id: str = string("0+")
    topics: list[WriteStateData] = array(WriteStateData, "0+")


class PartitionResult(Struct):
    """Whether the changes of one partition were stored."""

    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)


class WriteStateResult(Struct):
    """A topic and the results of its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[PartitionResult] = array(PartitionResult, "0+")


class WriteShareGroupStateResponse(Response, api=ApiKey.WRITE_SHARE_GROUP_STATE):
    """One result per partition."""

    results: list[WriteStateResult] = array(WriteStateResult, "0+")
