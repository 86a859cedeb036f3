"""ShareAcknowledge: what became of records acquired through a share group."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import (
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uuid,
)


class AcknowledgementBatch(Struct):
    """What became of a run of acquired records."""

    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    acknowledge_types: list[int] = array(int8, "0+")


class AcknowledgePartition(Struct):
    """A partition and its acknowledgements."""

    partition_index: int = int32("0+")
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch, "0+")


class AcknowledgeTopic(Struct):
    """A topic and its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[AcknowledgePartition] = array(AcknowledgePartition, "0+")


class ShareAcknowledgeRequest(Request, api=ApiKey.SHARE_ACKNOWLEDGE):
    """Acknowledgements within a share session."""

    group_id: str | None = string("0+", nullable=True, default=None)
    member_id: str | None = string("0+", nullable=True)
    share_session_epoch: int = int32("0+")
    is_renew_ack: bool = boolean("2+")
    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic, "0+")


class LeaderIdAndEpoch(Struct):
    """Who leads the partition instead, where the asked broker does not."""

    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


class PartitionData(Struct):
    """Whether the acknowledgements of one partition were taken."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "0+")


class ShareAcknowledgeTopicResponse(Struct):
    """A topic and the results of its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[PartitionData] = array(PartitionData, "0+")


class NodeEndpoint(Struct):
    """Where to reach a leader named in the answer."""

    node_id: int = int32("0+")
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("0+", nullable=True, default=None)


class ShareAcknowledgeResponse(Response, api=ApiKey.SHARE_ACKNOWLEDGE):
    """One result per partition."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)
    acquisition_lock_timeout_ms: int = int32("2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse, "0+")
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "0+")
