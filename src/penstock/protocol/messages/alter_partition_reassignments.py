"""AlterPartitionReassignments: other replicas for partitions, or the end of a move."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, int16, int32, string


class ReassignablePartition(Struct):
    """The replicas a partition shall have; null cancels the move under way."""

    partition_index: int = int32("0+")
    replicas: list[int] | None = array(int32, "0+", nullable=True, default=None)


class ReassignableTopic(Struct):
    """A topic and its partitions."""

    name: str = string("0+")
    partitions: list[ReassignablePartition] = array(ReassignablePartition, "0+")


class AlterPartitionReassignmentsRequest(Request, api=ApiKey.ALTER_PARTITION_REASSIGNMENTS):
    """Moves to begin or cancel."""

    timeout_ms: int = int32("0+", default=60000)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic, "0+")


class ReassignablePartitionResponse(Struct):
    """Whether the move of one partition was taken up."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)


class ReassignableTopicResponse(Struct):
    """A topic and the results of its partitions."""

    name: str = string("0+")
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse, "0+")


class AlterPartitionReassignmentsResponse(Response, api=ApiKey.ALTER_PARTITION_REASSIGNMENTS):
    """One result per partition."""

    throttle_time_ms: int = int32("0+")
    allow_replication_factor_change: bool = boolean("1+", default=True, ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse, "0+")
