"""DeleteRecords: move the start of partitions forward."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string


class DeleteRecordsPartition(Struct):
    """The first offset to keep; -1 stands for the high watermark."""

    partition_index: int = int32("0+")
    offset: int = int64("0+")


class DeleteRecordsTopic(Struct):
    """A topic and the partitions to shorten."""

    name: str = string("0+")
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition, "0+")


class DeleteRecordsRequest(Request, api=ApiKey.DELETE_RECORDS):
    """Partitions to shorten from the front."""

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic, "0+")
    timeout_ms: int = int32("0+")


class DeleteRecordsPartitionResult(Struct):
    """Where the partition begins now."""

    partition_index: int = int32("0+")
    low_watermark: int = int64("0+")
    error_code: int = int16("0+")


class DeleteRecordsTopicResult(Struct):
    """A topic and the results of its partitions."""

    name: str = string("0+")
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult, "0+")


class DeleteRecordsResponse(Response, api=ApiKey.DELETE_RECORDS):
    """One result per partition."""

    throttle_time_ms: int = int32("0+")
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult, "0+")
