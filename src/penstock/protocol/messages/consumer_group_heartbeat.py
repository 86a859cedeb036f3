"""ConsumerGroupHeartbeat: all of a member's life in a KIP-848 group."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, string, struct, uuid


class TopicPartitions(Struct):
    """A topic and its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class ConsumerGroupHeartbeatRequest(Request, api=ApiKey.CONSUMER_GROUP_HEARTBEAT):
    """Epoch 0 joins, -1 leaves; null says unchanged since the last one."""

    group_id: str = string("0+")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    instance_id: str | None = string("0+", nullable=True, default=None)
    rack_id: str | None = string("0+", nullable=True, default=None)
    rebalance_timeout_ms: int = int32("0+", default=-1)
    subscribed_topic_names: list[str] | None = array(string, "0+", nullable=True, default=None)
    subscribed_topic_regex: str | None = string("1+", nullable=True, default=None)
    server_assignor: str | None = string("0+", nullable=True, default=None)
    topic_partitions: list[TopicPartitions] | None = array(
        TopicPartitions, "0+", nullable=True, default=None
    )


class Assignment(Struct):
    """All partitions that the member shall own."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions, "0+")


class ConsumerGroupHeartbeatResponse(Response, api=ApiKey.CONSUMER_GROUP_HEARTBEAT):
    """The member's epoch, and its assignment where that changed."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)
    member_id: str | None = string("0+", nullable=True, default=None)
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: Assignment | None = struct(Assignment, "0+", nullable=True, default=None)
