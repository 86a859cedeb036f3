"""CreatePartitions: more partitions for existing topics."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, int16, int32, string


class CreatePartitionsAssignment(Struct):
    """The brokers for one new partition."""

    broker_ids: list[int] = array(int32, "0+")


class CreatePartitionsTopic(Struct):
    """A topic and how many partitions it shall have in all."""

    name: str = string("0+")
    count: int = int32("0+")
    assignments: list[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment, "0+", nullable=True
    )


class CreatePartitionsRequest(Request, api=ApiKey.CREATE_PARTITIONS):
    """Topics to grow, or only to check."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic, "0+")
    timeout_ms: int = int32("0+")
    validate_only: bool = boolean("0+")


class CreatePartitionsTopicResult(Struct):
    """Whether one topic grew."""

    name: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)


class CreatePartitionsResponse(Response, api=ApiKey.CREATE_PARTITIONS):
    """One result per topic."""

    throttle_time_ms: int = int32("0+")
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult, "0+")
