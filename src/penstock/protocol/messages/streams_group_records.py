"""What the group coordinator stores of streams groups (KIP-1071)."""

from penstock.protocol.schema import (
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uint16,
)
from penstock.protocol.stored import RecordKey, RecordValue


class StreamsGroupMetadataKey(RecordKey, record_type=17):
    """The group."""

    group_id: str = string("0+")


class LastAssignmentConfig(Struct):
    """A setting that the last assignment was made with."""

    key: str = string("0+")
    value: str = string("0+")


class StreamsGroupMetadataValue(RecordValue, record_type=17, versions="0", flexible="0+"):
    """The group's epoch and what its assignment rests on."""

    epoch: int = int32("0+")
    metadata_hash: int = int64("0+")
    validated_topology_epoch: int = int32("0+", default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = array(
        LastAssignmentConfig, "0+", nullable=True, tag=1
    )


class StreamsGroupMemberMetadataKey(RecordKey, record_type=19):
    """The group and the member."""

    group_id: str = string("0+")
    member_id: str = string("0+")


class Endpoint(Struct):
    """Where other members reach this one."""

    host: str = string("0+")
    port: int = uint16("0+")


class KeyValue(Struct):
    """A tag."""

    key: str = string("0+")
    value: str = string("0+")


class StreamsGroupMemberMetadataValue(RecordValue, record_type=19, versions="0", flexible="0+"):
    """A member and its process."""

    instance_id: str | None = string("0+", nullable=True)
    rack_id: str | None = string("0+", nullable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    rebalance_timeout_ms: int = int32("0+", default=-1)
    topology_epoch: int = int32("0+")
    process_id: str = string("0+")
    user_endpoint: Endpoint | None = struct(Endpoint, "0+", nullable=True, default=None)
    client_tags: list[KeyValue] = array(KeyValue, "0+")


class StreamsGroupTargetAssignmentMetadataKey(RecordKey, record_type=20):
    """The group."""

    group_id: str = string("0+")


class StreamsGroupTargetAssignmentMetadataValue(
    RecordValue, record_type=20, versions="0", flexible="0+"
):
    """The epoch of the target assignment."""

    assignment_epoch: int = int32("0+")
    assignment_timestamp: int = int64("0+", tag=0, ignorable=True)


class StreamsGroupTargetAssignmentMemberKey(RecordKey, record_type=21):
    """The group and the member."""

    group_id: str = string("0+")
    member_id: str = string("0+")


class TaskIds(Struct):
    """Tasks of one subtopology, named by partition."""

    subtopology_id: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class StreamsGroupTargetAssignmentMemberValue(
    RecordValue, record_type=21, versions="0", flexible="0+"
):
    """The tasks the member shall run."""

    active_tasks: list[TaskIds] = array(TaskIds, "0+")
    standby_tasks: list[TaskIds] = array(TaskIds, "0+")
    warmup_tasks: list[TaskIds] = array(TaskIds, "0+")


class StreamsGroupCurrentMemberAssignmentKey(RecordKey, record_type=22):
    """The group and the member."""

    group_id: str = string("0+")
    member_id: str = string("0+")


class CurrentTaskIds(Struct):
    """Tasks of one subtopology, with the epochs they were assigned in."""

    subtopology_id: str = string("0+")
    partitions: list[int] = array(int32, "0+")
    assignment_epochs: list[int] | None = array(int32, "0+", nullable=True, tag=0)


class StreamsGroupCurrentMemberAssignmentValue(
    RecordValue, record_type=22, versions="0", flexible="0+"
):
    """The tasks the member runs, and those it has yet to give up."""

    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    active_tasks: list[CurrentTaskIds] = array(CurrentTaskIds, "0+")
    standby_tasks: list[CurrentTaskIds] = array(CurrentTaskIds, "0+")
    warmup_tasks: list[CurrentTaskIds] = array(CurrentTaskIds, "0+")
    active_tasks_pending_revocation: list[CurrentTaskIds] = array(CurrentTaskIds, "0+")
    standby_tasks_pending_revocation: list[CurrentTaskIds] = array(CurrentTaskIds, "0+")
    warmup_tasks_pending_revocation: list[CurrentTaskIds] = array(CurrentTaskIds, "0+")


class StreamsGroupTopologyKey(RecordKey, record_type=23):
    """The group."""

    group_id: str = string("0+")


class TopicConfig(Struct):
    """A setting of an internal topic."""

    key: str = string("0+")
    value: str = string("0+")


class TopicInfo(Struct):
    """A topic that the application needs, and how it shall be made."""

    name: str = string("0+")
    partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    topic_configs: list[TopicConfig] = array(TopicConfig, "0+")


class CopartitionGroup(Struct):
    """Topics that must have equally many partitions, by their place in the lists."""

    source_topics: list[int] = array(int16, "0+")
    source_topic_regex: list[int] = array(int16, "0+")
    repartition_source_topics: list[int] = array(int16, "0+")


class Subtopology(Struct):
    """A connected part of the topology and the topics around it."""

    subtopology_id: str = string("0+")
    source_topics: list[str] = array(string, "0+")
    source_topic_regex: list[str] = array(string, "0+")
    state_changelog_topics: list[TopicInfo] = array(TopicInfo, "0+")
    repartition_sink_topics: list[str] = array(string, "0+")
    repartition_source_topics: list[TopicInfo] = array(TopicInfo, "0+")
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup, "0+")


class StreamsGroupTopologyValue(RecordValue, record_type=23, versions="0", flexible="0+"):
    """What the application computes, as far as assignment needs to know."""

    epoch: int = int32("0+")
    subtopologies: list[Subtopology] = array(Subtopology, "0+")
