"""DescribeQuorum: who votes in a metadata quorum, and how far each has come."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string, uint16, uuid


class PartitionDataRequest(Struct):
    """A partition of the metadata log."""

    partition_index: int = int32("0+")


class TopicDataRequest(Struct):
    """The metadata topic."""

    topic_name: str = string("0+")
    partitions: list[PartitionDataRequest] = array(PartitionDataRequest, "0+")


class DescribeQuorumRequest(Request, api=ApiKey.DESCRIBE_QUORUM):
    """Which quorum."""

    topics: list[TopicDataRequest] = array(TopicDataRequest, "0+")


class ReplicaState(Struct):
    """How far one replica has come."""

    replica_id: int = int32("0+")
    replica_directory_id: bytes = uuid("2+")
    log_end_offset: int = int64("0+")
    last_fetch_timestamp: int = int64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = int64("1+", default=-1, ignorable=True)


class PartitionDataResponse(Struct):
    """The leader, the voters and the observers."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("2+", nullable=True, ignorable=True)
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")
    high_watermark: int = int64("0+")
    current_voters: list[ReplicaState] = array(ReplicaState, "0+")
    observers: list[ReplicaState] = array(ReplicaState, "0+")


class TopicDataResponse(Struct):
    """The metadata topic."""

    topic_name: str = string("0+")
    partitions: list[PartitionDataResponse] = array(PartitionDataResponse, "0+")


class Listener(Struct):
    """An address of a node."""

    name: str = string("2+")
    host: str = string("2+")
    port: int = uint16("2+")


class Node(Struct):
    """A node of the quorum."""

    node_id: int = int32("2+")
    listeners: list[Listener] = array(Listener, "2+")


class DescribeQuorumResponse(Response, api=ApiKey.DESCRIBE_QUORUM):
    """The state of the quorum."""

    error_code: int = int16("0+")
    error_message: str | None = string("2+", nullable=True, ignorable=True)
    topics: list[TopicDataResponse] = array(TopicDataResponse, "0+")
    nodes: list[Node] = array(Node, "2+")
