"""What the group coordinator stores of share groups (KIP-932)."""

from penstock.protocol.schema import Struct, array, int8, int32, int64, string, uuid
from penstock.protocol.stored import RecordKey, RecordValue


class ShareGroupMemberMetadataKey(RecordKey, record_type=10):
    """The group and the member."""

    group_id: str = string("0+")
    member_id: str = string("0+")


class ShareGroupMemberMetadataValue(RecordValue, record_type=10, versions="0", flexible="0+"):
    """A member and its subscription."""

    rack_id: str | None = string("0+", nullable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(string, "0+")


class ShareGroupMetadataKey(RecordKey, record_type=11):
    """The group."""

    group_id: str = string("0+")


class ShareGroupMetadataValue(RecordValue, record_type=11, versions="0", flexible="0+"):
    """The group's epoch."""

    epoch: int = int32("0+")
    metadata_hash: int = int64("0+")


class ShareGroupTargetAssignmentMetadataKey(RecordKey, record_type=12):
    """The group."""

    group_id: str = string("0+")


class ShareGroupTargetAssignmentMetadataValue(
    RecordValue, record_type=12, versions="0", flexible="0+"
):
    """The epoch of the target assignment."""

    assignment_epoch: int = int32("0+")
    assignment_timestamp: int = int64("0+", tag=0, ignorable=True)


class ShareGroupTargetAssignmentMemberKey(RecordKey, record_type=13):
    """The group and the member."""

    group_id: str = string("0+")
    member_id: str = string("0+")


class TopicPartition(Struct):
    """A topic and its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class ShareGroupTargetAssignmentMemberValue(
    RecordValue, record_type=13, versions="0", flexible="0+"
):
    """What the member shall read."""

    topic_partitions: list[TopicPartition] = array(TopicPartition, "0+")


class ShareGroupCurrentMemberAssignmentKey(RecordKey, record_type=14):
    """The group and the member."""

    group_id: str = string("0+")
    member_id: str = string("0+")


class TopicPartitions(Struct):
    """A topic and its partitions."""

    topic_id: bytes = uuid("0+")
    partitions: list[int] = array(int32, "0+")


class ShareGroupCurrentMemberAssignmentValue(
    RecordValue, record_type=14, versions="0", flexible="0+"
):
    """What the member reads."""

    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions, "0+")


class ShareGroupStatePartitionMetadataKey(RecordKey, record_type=15):
    """The group."""

    group_id: str = string("0+")


class TopicPartitionsInfo(Struct):
    """A topic and its partitions."""

    topic_id: bytes = uuid("0+")
    topic_name: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class TopicInfo(Struct):
    """A topic."""

    topic_id: bytes = uuid("0+")
    topic_name: str = string("0+")


class ShareGroupStatePartitionMetadataValue(
    RecordValue, record_type=15, versions="0", flexible="0+"
):
    """Which partitions have share state, or are gaining or losing it."""

    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo, "0+")
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo, "0+")
    deleting_topics: list[TopicInfo] = array(TopicInfo, "0+")
