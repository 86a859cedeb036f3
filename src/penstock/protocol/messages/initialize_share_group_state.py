"""InitializeShareGroupState: a share group begins to read partitions."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string, uuid


class PartitionData(Struct):
    """A partition and the offset to begin at."""

    partition: int = int32("0+")
    state_epoch: int = int32("0+")
    start_offset: int = int64("0+")


class InitializeStateData(Struct):
    """A topic and its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[PartitionData] = array(PartitionData, "0+")


class InitializeShareGroupStateRequest(Request, api=ApiKey.INITIALIZE_SHARE_GROUP_STATE):
    """From a group coordinator to the keeper of share state."""

    group_id: str = string("0+")
    topics: list[InitializeStateData] = array(InitializeStateData, "0+")


class PartitionResult(Struct):
    """Whether the state of one partition was set up."""

    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)


class InitializeStateResult(Struct):
    """A topic and the results of its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[PartitionResult] = array(PartitionResult, "0+")


class InitializeShareGroupStateResponse(Response, api=ApiKey.INITIALIZE_SHARE_GROUP_STATE):
    """One result per partition."""

    results: list[InitializeStateResult] = array(InitializeStateResult, "0+")
