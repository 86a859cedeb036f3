"""ReadShareGroupStateSummary: where a share group stands, without the details."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string, uuid


class PartitionData(Struct):
    """A partition and the leader term of the asker."""

    partition: int = int32("0+")
    leader_epoch: int = int32("0+")


class ReadStateSummaryData(Struct):
    """A topic and its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[PartitionData] = array(PartitionData, "0+")


class ReadShareGroupStateSummaryRequest(Request, api=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY):
    """From a group coordinator to the keeper of share state."""

    group_id: str = string("0+")
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData, "0+")


class PartitionResult(Struct):
    """Where the group stands in one partition."""

    partition: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)
    state_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)


class ReadStateSummaryResult(Struct):
    """A topic and the results of its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[PartitionResult] = array(PartitionResult, "0+")


class ReadShareGroupStateSummaryResponse(Response, api=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY):
    """One result per partition."""

    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult, "0+")
