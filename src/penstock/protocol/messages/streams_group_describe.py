"""StreamsGroupDescribe: streams groups, their topology and their members."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import (
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
    struct,
    uint16,
)


class StreamsGroupDescribeRequest(Request, api=ApiKey.STREAMS_GROUP_DESCRIBE):
    """Groups to describe."""

    group_ids: list[str] = array(string, "0+")
    include_authorized_operations: bool = boolean("0+")


class KeyValue(Struct):
    """A setting or tag."""

    key: str = string("0+")
    value: str = string("0+")


class TopicInfo(Struct):
    """A topic that the application needs, and how it shall be made."""

    name: str = string("0+")
    partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    topic_configs: list[KeyValue] = array(KeyValue, "0+")


class Subtopology(Struct):
    """A connected part of the topology and the topics around it."""

    subtopology_id: str = string("0+")
    source_topics: list[str] = array(string, "0+")
    repartition_sink_topics: list[str] = array(string, "0+")
    state_changelog_topics: list[TopicInfo] = array(TopicInfo, "0+")
    repartition_source_topics: list[TopicInfo] = array(TopicInfo, "0+")


class Topology(Struct):
    """What the application computes, as far as assignment needs to know."""

    epoch: int = int32("0+")
    subtopologies: list[Subtopology] | None = array(Subtopology, "0+", nullable=True, default=None)


class Endpoint(Struct):
    """Where other members reach this one for interactive queries."""

    host: str = string("0+")
    port: int = uint16("0+")


class TaskOffset(Struct):
    """How far a task's state has been restored."""

    subtopology_id: str = string("0+")
    partition: int = int32("0+")
    offset: int = int64("0+")


class TaskIds(Struct):
    """Tasks of one subtopology, named by partition."""

    subtopology_id: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class Assignment(Struct):
    """The tasks of a member."""

    active_tasks: list[TaskIds] = array(TaskIds, "0+")
    standby_tasks: list[TaskIds] = array(TaskIds, "0+")
    warmup_tasks: list[TaskIds] = array(TaskIds, "0+")


class Member(Struct):
    """A member: the tasks it has now, and those it shall have."""

    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    instance_id: str | None = string("0+", nullable=True, default=None)
    rack_id: str | None = string("0+", nullable=True, default=None)
    client_id: str = string("0+")
    client_host: str = string("0+")
    topology_epoch: int = int32("0+")
    process_id: str = string("0+")
    user_endpoint: Endpoint | None = struct(Endpoint, "0+", nullable=True, default=None)
    client_tags: list[KeyValue] = array(KeyValue, "0+")
    task_offsets: list[TaskOffset] = array(TaskOffset, "0+")
    task_end_offsets: list[TaskOffset] = array(TaskOffset, "0+")
    assignment: Assignment = struct(Assignment, "0+")
    target_assignment: Assignment = struct(Assignment, "0+")
    is_classic: bool = boolean("0+")


class DescribedGroup(Struct):
    """A group, its epochs, its topology and its members."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)
    group_id: str = string("0+")
    group_state: str = string("0+")
    group_epoch: int = int32("0+")
    assignment_epoch: int = int32("0+")
    topology: Topology | None = struct(Topology, "0+", nullable=True, default=None)
    members: list[Member] = array(Member, "0+")
    authorized_operations: int = int32("0+", default=-2147483648)


class StreamsGroupDescribeResponse(Response, api=ApiKey.STREAMS_GROUP_DESCRIBE):
    """One description per group."""

    throttle_time_ms: int = int32("0+")
    groups: list[DescribedGroup] = array(DescribedGroup, "0+")
