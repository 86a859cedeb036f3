"""ElectLeaders: give partitions their preferred leader, or any leader at all."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int8, int16, int32, string


class TopicPartitions(Struct):
    """A topic and its partitions."""

    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class ElectLeadersRequest(Request, api=ApiKey.ELECT_LEADERS):
    """Partitions to hold an election for; null means every one."""

    election_type: int = int8("1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, "0+", nullable=True)
    timeout_ms: int = int32("0+", default=60000)


class PartitionResult(Struct):
    """How the election of one partition went."""

    partition_id: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)


class ReplicaElectionResult(Struct):
    """A topic and the results of its partitions."""

    topic: str = string("0+")
    partition_result: list[PartitionResult] = array(PartitionResult, "0+")


class ElectLeadersResponse(Response, api=ApiKey.ELECT_LEADERS):
    """One result per partition."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult, "0+")
