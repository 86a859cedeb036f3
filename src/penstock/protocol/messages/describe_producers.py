"""DescribeProducers: who is writing to a partition, for finding hanging transactions."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string


class TopicRequest(Struct):
    """A topic and the partitions asked about."""

    name: str = string("0+")
    partition_indexes: list[int] = array(int32, "0+")


class DescribeProducersRequest(Request, api=ApiKey.DESCRIBE_PRODUCERS):
    """Partitions to look at."""

    topics: list[TopicRequest] = array(TopicRequest, "0+")


class ProducerState(Struct):
    """What a partition knows of one producer."""

    producer_id: int = int64("0+")
    producer_epoch: int = int32("0+")
    last_sequence: int = int32("0+", default=-1)
    last_timestamp: int = int64("0+", default=-1)
    coordinator_epoch: int = int32("0+")
    current_txn_start_offset: int = int64("0+", default=-1)


class PartitionResponse(Struct):
    """The producers of one partition."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)
    active_producers: list[ProducerState] = array(ProducerState, "0+")


class TopicResponse(Struct):
    """A topic and the results of its partitions."""

    name: str = string("0+")
    partitions: list[PartitionResponse] = array(PartitionResponse, "0+")


class DescribeProducersResponse(Response, api=ApiKey.DESCRIBE_PRODUCERS):
    """One result per partition."""

    throttle_time_ms: int = int32("0+")
    topics: list[TopicResponse] = array(TopicResponse, "0+")
