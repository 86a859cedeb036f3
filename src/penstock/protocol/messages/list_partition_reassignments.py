"""ListPartitionReassignments: the moves under way."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, string


class ListPartitionReassignmentsTopics(Struct):
    """A topic and the partitions asked about."""

    name: str = string("0+")
    partition_indexes: list[int] = array(int32, "0+")


class ListPartitionReassignmentsRequest(Request, api=ApiKey.LIST_PARTITION_REASSIGNMENTS):
    """Partitions to tell of; null asks for all."""

    timeout_ms: int = int32("0+", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, "0+", nullable=True, default=None
    )


class OngoingPartitionReassignment(Struct):
    """A partition on the move: all replicas, those coming and those going."""

    partition_index: int = int32("0+")
    replicas: list[int] = array(int32, "0+")
    adding_replicas: list[int] = array(int32, "0+")
    removing_replicas: list[int] = array(int32, "0+")


class OngoingTopicReassignment(Struct):
    """A topic and its partitions on the move."""

    name: str = string("0+")
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment, "0+")


class ListPartitionReassignmentsResponse(Response, api=ApiKey.LIST_PARTITION_REASSIGNMENTS):
    """The moves under way."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment, "0+")
