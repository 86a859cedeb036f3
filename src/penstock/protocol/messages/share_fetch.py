"""ShareFetch: acquire records for a member of a share group, and acknowledge others."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import (
    RecordSet,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    record_set,
    string,
    struct,
    uuid,
)


class AcknowledgementBatch(Struct):
    """What became of a run of acquired records."""

    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    acknowledge_types: list[int] = array(int8, "0+")


class FetchPartition(Struct):
    """A partition to read, and acknowledgements for it."""

    partition_index: int = int32("0+")
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch, "0+")


class FetchTopic(Struct):
    """A topic and its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[FetchPartition] = array(FetchPartition, "0+")


class ForgottenTopic(Struct):
    """Partitions to drop from the share session."""

    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class ShareFetchRequest(Request, api=ApiKey.SHARE_FETCH):
    """Partitions to acquire from, or what changed in the session."""

    group_id: str | None = string("0+", nullable=True, default=None)
    member_id: str | None = string("0+", nullable=True)
    share_session_epoch: int = int32("0+")
    max_wait_ms: int = int32("0+")
    min_bytes: int = int32("0+")
    max_bytes: int = int32("0+", default=0x7FFFFFFF)
    max_records: int = int32("1+")
    batch_size: int = int32("1+")
    share_acquire_mode: int = int8("2+", ignorable=True)
    is_renew_ack: bool = boolean("2+")
    topics: list[FetchTopic] = array(FetchTopic, "0+")
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, "0+")


class LeaderIdAndEpoch(Struct):
    """Who leads the partition instead, where the asked broker does not."""

    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")


class AcquiredRecords(Struct):
    """A run of records now held by the member, and how often it was delivered."""

    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_count: int = int16("0+")


class PartitionData(Struct):
    """Batches of one partition, with the runs in them that the member holds."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)
    acknowledge_error_code: int = int16("0+")
    acknowledge_error_message: str | None = string("0+", nullable=True, default=None)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "0+")
    records: RecordSet = record_set("0+")
    acquired_records: list[AcquiredRecords] = array(AcquiredRecords, "0+")


class ShareFetchableTopicResponse(Struct):
    """A topic and its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[PartitionData] = array(PartitionData, "0+")


class NodeEndpoint(Struct):
    """Where to reach a leader named in the answer."""

    node_id: int = int32("0+")
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("0+", nullable=True, default=None)


class ShareFetchResponse(Response, api=ApiKey.SHARE_FETCH):
    """Batches per partition, and for how long they are held."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)
    acquisition_lock_timeout_ms: int = int32("1+")
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse, "0+")
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "0+")
