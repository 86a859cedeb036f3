"""DeleteShareGroupState: a share group will not read partitions again."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, string, uuid


class PartitionData(Struct):
    """A partition to forget."""

    partition: int = int32("0+")


class DeleteStateData(Struct):
    """A topic and its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[PartitionData] = array(PartitionData, "0+")


class DeleteShareGroupStateRequest(Request, api=ApiKey.DELETE_SHARE_GROUP_STATE):
    """From a group coordinator to the keeper of share state."""

    group_id: str = string("0+")
    topics: list[DeleteStateData] = array(DeleteStateData, "0+")


class PartitionResult(Struct):
    """Whether the state of one partition is gone."""

    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)


class DeleteStateResult(Struct):
    """A topic and the results of its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[PartitionResult] = array(PartitionResult, "0+")


class DeleteShareGroupStateResponse(Response, api=ApiKey.DELETE_SHARE_GROUP_STATE):
    """One result per partition."""

    results: list[DeleteStateResult] = array(DeleteStateResult, "0+")
