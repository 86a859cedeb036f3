"""What the group coordinator stores of consumer groups (KIP-848)."""

from penstock.protocol.schema import Struct, array, blob, int8, int32, int64, string, struct, uuid
from penstock.protocol.stored import RecordKey, RecordValue


class ConsumerGroupMetadataKey(RecordKey, record_type=3):
    """The group."""

    group_id: str = string("0+")


class ConsumerGroupMetadataValue(RecordValue, record_type=3, versions="0", flexible="0+"):
    """The group's epoch."""

    epoch: int = int32("0+")
    metadata_hash: int = int64("0+", tag=0)


class ConsumerGroupPartitionMetadataKey(RecordKey, record_type=4):
    """The group."""

    group_id: str = string("0+")


class PartitionMetadata(Struct):
    """A partition and the racks of its replicas."""

    partition: int = int32("0+")
    racks: list[str] = array(string, "0+")


class TopicMetadata(Struct):
    """A subscribed topic as last seen."""

    topic_id: bytes = uuid("0+")
    topic_name: str = string("0+")
    num_partitions: int = int32("0+")
    partition_metadata: list[PartitionMetadata] = array(PartitionMetadata, "0+")


class ConsumerGroupPartitionMetadataValue(RecordValue, record_type=4, versions="0", flexible="0+"):
    """The subscribed topics; written before 4.1, replaced by a hash since."""

    topics: list[TopicMetadata] = array(TopicMetadata, "0+")


class ConsumerGroupMemberMetadataKey(RecordKey, record_type=5):
    """The group and the member."""

    group_id: str = string("0+")
    member_id: str = string("0+")


class ClassicProtocol(Struct):
    """An assignment strategy of a member that still speaks the classic protocol."""

    name: str = string("0+")
    metadata: bytes = blob("0+")


class ClassicMemberMetadata(Struct):
    """What only members that speak the classic protocol have."""

    session_timeout_ms: int = int32("0+")
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol, "0+")


class ConsumerGroupMemberMetadataValue(RecordValue, record_type=5, versions="0", flexible="0+"):
    """A member and its subscription."""

    instance_id: str | None = string("0+", nullable=True)
    rack_id: str | None = string("0+", nullable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(string, "0+")
    subscribed_topic_regex: str | None = string("0+", nullable=True)
    rebalance_timeout_ms: int = int32("0+", default=-1)
    server_assignor: str | None = string("0+", nullable=True)
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata, "0+", nullable=True, tag=0
    )


class ConsumerGroupTargetAssignmentMetadataKey(RecordKey, record_type=6):
    """The group."""

    group_id: str = string("0+")


class ConsumerGroupTargetAssignmentMetadataValue(
    RecordValue, record_type=6, versions="0", flexible="0+"
):
    """The epoch of the target assignment."""

    assignment_epoch: int = int32("0+")
    assignment_timestamp: int = int64("0+", tag=0, ignorable=True)


class ConsumerGroupTargetAssignmentMemberKey(RecordKey, record_type=7):
    """The group and the member."""

    group_id: str = string("0+")
    member_id: str = string("0+")


class TopicPartition(Struct):
    """A topic and its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class ConsumerGroupTargetAssignmentMemberValue(
    RecordValue, record_type=7, versions="0", flexible="0+"
):
    """What the member shall own."""

    topic_partitions: list[TopicPartition] = array(TopicPartition, "0+")


class ConsumerGroupCurrentMemberAssignmentKey(RecordKey, record_type=8):
    """The group and the member."""

    group_id: str = string("0+")
    member_id: str = string("0+")


class TopicPartitions(Struct):
    """A topic and its partitions, with the epochs they were assigned in."""

    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")
    assignment_epochs: list[int] | None = array(int32, "0+", nullable=True, tag=0)


class ConsumerGroupCurrentMemberAssignmentValue(
    RecordValue, record_type=8, versions="0", flexible="0+"
):
    """What the member owns, and what it has yet to give up."""

    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions, "0+")
    partitions_pending_revocation: list[TopicPartitions] = array(TopicPartitions, "0+")


class ConsumerGroupRegularExpressionKey(RecordKey, record_type=16):
    """The group and a subscription pattern."""

    group_id: str = string("0+")
    regular_expression: str = string("0+")


class ConsumerGroupRegularExpressionValue(RecordValue, record_type=16, versions="0", flexible="0+"):
    """The topics that matched the pattern, and when."""

    topics: list[str] = array(string, "0+")
    version: int = int64("0+")
    timestamp: int = int64("0+")
