"""Produce: record batches for partitions that the receiving broker leads."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import (
    RecordSet,
    Struct,
    array,
    int16,
    int32,
    int64,
    record_set,
    string,
    struct,
    uuid,
)


class PartitionProduceData(Struct):
    """The batches for one partition."""

    index: int = int32("0+")
    records: RecordSet = record_set("0+", nullable=True)


class TopicProduceData(Struct):
    """A topic of the request: by name until version 12, by id after."""

    name: str = string("0-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData, "0+")


class ProduceRequest(Request, api=ApiKey.PRODUCE):
    """Batches for any number of partitions of one leader."""

    elements_max = 50_000  # It is read while others wait: its records are not looked at.

    transactional_id: str | None = string("3+", nullable=True, default=None)
    acks: int = int16("0+")
    timeout_ms: int = int32("0+")
    topic_data: list[TopicProduceData] = array(TopicProduceData, "0+")


class BatchIndexAndErrorMessage(Struct):
    """A record that made the broker refuse its batch."""

    batch_index: int = int32("8+")
    batch_index_error_message: str | None = string("8+", nullable=True, default=None)


class LeaderIdAndEpoch(Struct):
    """Who leads the partition instead, where the asked broker does not."""

    leader_id: int = int32("10+", default=-1)
    leader_epoch: int = int32("10+", default=-1)


class PartitionProduceResponse(Struct):
    """Where the batches of one partition went, or why they went nowhere."""

    index: int = int32("0+")
    error_code: int = int16("0+")
    base_offset: int = int64("0+")
    log_append_time_ms: int = int64("2+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(
        BatchIndexAndErrorMessage, "8+", ignorable=True
    )
    error_message: str | None = string("8+", nullable=True, default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "10+", tag=0)


class TopicProduceResponse(Struct):
    """A topic of the answer: by name until version 12, by id after."""

    name: str = string("0-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse, "0+")


class NodeEndpoint(Struct):
    """Where to reach a leader named in the answer (KIP-951)."""

    node_id: int = int32("10+")
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = string("10+", nullable=True, default=None)


class ProduceResponse(Response, api=ApiKey.PRODUCE):
    """One result per partition; not sent at all when the producer wants no acks."""

    responses: list[TopicProduceResponse] = array(TopicProduceResponse, "0+")
    throttle_time_ms: int = int32("1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0)
