"""Admin: answers become values, error codes become exceptions, old brokers are understood."""

from typing import Any

import pytest

from penstock.client.admin import Admin
from penstock.client.errors import IllegalStateError
from penstock.client.operations.configs import (
    ConfigChange,
    ConfigResource,
    ConfigSource,
    Operation,
    ResourceType,
)
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.operations.topics import NewPartitions, NewTopic
from penstock.client.values import OffsetAndTimestamp, TopicPartition
from penstock.errors import (
    ConfigError,
    InvalidPartitions,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    TopicExists,
    UnknownTopicOrPartition,
)
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from penstock.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from penstock.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from penstock.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from penstock.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from penstock.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from penstock.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

TOPIC = ConfigResource(ResourceType.TOPIC, "t")


@pytest.fixture
def admin(stub: Any) -> Admin:
    return Admin(bootstrap_servers=stub.address, retry_backoff_ms=1)


def test_bootstrap_servers_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        Admin()


def test_a_created_topic_has_an_id(stub: Any, admin: Admin) -> None:
    seen = []

    def create(request: Any, version: int) -> CreateTopicsResponse:
        seen.append(request)
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", topic_id=b"i" * 16)])

    stub.answers[ApiKey.CREATE_TOPICS] = create
    new = NewTopic(name="t", partitions=3, configs={"retention.ms": "5"})
    assert admin.create_topics([new]) == {"t": b"i" * 16}
    (topic,) = seen[0].topics
    assert (topic.num_partitions, topic.replication_factor) == (3, -1)
    assert [(c.name, c.value) for c in topic.configs] == [("retention.ms", "5")]


def test_an_assignment_takes_the_place_of_counts(stub: Any, admin: Admin) -> None:
    seen = []

    def create(request: Any, version: int) -> CreateTopicsResponse:
        seen.append(request.topics[0])
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="t")])

    stub.answers[ApiKey.CREATE_TOPICS] = create
    admin.create_topics([NewTopic(name="t", partitions=9, assignments={0: [1, 2], 1: [2, 1]})])
    assert seen[0].num_partitions == -1
    assert [(a.partition_index, a.broker_ids) for a in seen[0].assignments] == [
        (0, [1, 2]),
        (1, [2, 1]),
    ]


def test_the_brokers_words_are_in_the_exception(stub: Any, admin: Admin) -> None:
    failed = CreatableTopicResult(name="t", error_code=36, error_message="Topic 't' exists.")
    stub.serve(ApiKey.CREATE_TOPICS, CreateTopicsResponse(topics=[failed]))
    with pytest.raises(TopicExists, match=r"Topic 't' exists\."):
        admin.create_topics([NewTopic(name="t")])


@pytest.mark.parametrize(("versions", "by_name"), [(range(6), True), (range(7), False)])
def test_topics_are_deleted_in_the_form_the_broker_knows(
    stub: Any, admin: Admin, versions: range, by_name: bool
) -> None:
    seen = []

    def delete(request: Any, version: int) -> DeleteTopicsResponse:
        seen.append(request)
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name="t")])

    stub.answers[ApiKey.DELETE_TOPICS] = delete
    stub.versions[ApiKey.DELETE_TOPICS] = versions
    admin.delete_topics(["t"])
    assert (seen[0].topic_names == ["t"]) is by_name
    assert [state.name for state in seen[0].topics] == ([] if by_name else ["t"])


def test_too_few_partitions_are_refused(stub: Any, admin: Admin) -> None:
    failed = CreatePartitionsTopicResult(name="t", error_code=37, error_message="no increase")
    stub.serve(ApiKey.CREATE_PARTITIONS, CreatePartitionsResponse(results=[failed]))
    with pytest.raises(InvalidPartitions, match="no increase"):
        admin.create_partitions({"t": NewPartitions(total_count=1)})


def page(*indexes: int, cursor: int | None) -> DescribeTopicPartitionsResponse:
    parts = [
        DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=0,
            replica_nodes=[0, 7],
            isr_nodes=[0],
            eligible_leader_replicas=[],
            last_known_elr=None,
        )
        for index in indexes
    ]
    following = None if cursor is None else Cursor(topic_name="t", partition_index=cursor)
    topic = DescribeTopicPartitionsResponseTopic(name="t", topic_id=b"i" * 16, partitions=parts)
    return DescribeTopicPartitionsResponse(topics=[topic], next_cursor=following)


def test_a_large_topic_is_described_page_by_page(stub: Any, admin: Admin) -> None:
    pages = {None: page(0, 1, cursor=2), 2: page(2, cursor=None)}
    stub.answers[ApiKey.DESCRIBE_TOPIC_PARTITIONS] = lambda request, _: pages[
        request.cursor.partition_index if request.cursor else None
    ]
    topic = admin.describe_topics(["t"], partitions_per_response=2)["t"]
    assert [p.partition for p in topic.partitions] == [0, 1, 2]
    first = topic.partitions[0]
    assert first.leader is not None
    assert (first.leader.id, [n.id for n in first.replicas], [n.id for n in first.isr]) == (
        0,
        [0, 7],
        [0],
    )
    assert (first.elr, first.last_known_elr) == ((), None)


def test_an_older_broker_describes_by_metadata(stub: Any, admin: Admin) -> None:
    parts = [
        MetadataResponsePartition(partition_index=i, leader_id=0, replica_nodes=[0]) for i in (1, 0)
    ]
    topics = [MetadataResponseTopic(name="t", topic_id=b"i" * 16, partitions=parts)]
    stub.answers[ApiKey.METADATA] = lambda *_: stub.metadata(topics=topics)
    topic = admin.describe_topics(["t"])["t"]
    assert [p.partition for p in topic.partitions] == [0, 1]
    assert topic.partitions[0].elr is None


def test_an_unknown_topic_is_named(stub: Any, admin: Admin) -> None:
    topics = [MetadataResponseTopic(name="t", error_code=3)]
    stub.answers[ApiKey.METADATA] = lambda *_: stub.metadata(topics=topics)
    with pytest.raises(UnknownTopicOrPartition, match="Topic 't' does not exist"):
        admin.describe_topics(["t"])


def test_internal_topics_may_be_left_out(stub: Any, admin: Admin) -> None:
    topics = [
        MetadataResponseTopic(name="b"),
        MetadataResponseTopic(name="__consumer_offsets", is_internal=True),
        MetadataResponseTopic(name="a"),
    ]
    stub.answers[ApiKey.METADATA] = lambda *_: stub.metadata(topics=topics)
    assert [t.name for t in admin.list_topics()] == ["__consumer_offsets", "a", "b"]
    assert [t.name for t in admin.list_topics(internal=False)] == ["a", "b"]


def led_by_stub(stub: Any) -> None:
    parts = [MetadataResponsePartition(partition_index=i, leader_id=0) for i in range(3)]
    topics = [MetadataResponseTopic(name="t", partitions=parts)]
    stub.answers[ApiKey.METADATA] = lambda *_: stub.metadata(topics=topics)


def test_an_offset_may_be_found_missing_or_refused(stub: Any, admin: Admin) -> None:
    led_by_stub(stub)
    parts = [
        ListOffsetsPartitionResponse(partition_index=0, offset=5, timestamp=9, leader_epoch=2),
        ListOffsetsPartitionResponse(partition_index=1, offset=-1),
        ListOffsetsPartitionResponse(partition_index=2, error_code=6),
    ]
    answer = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=parts)])
    stub.serve(ApiKey.LIST_OFFSETS, answer)
    at = [TopicPartition("t", index) for index in range(3)]
    found = admin.list_offsets(dict.fromkeys(at, OffsetSpec.LATEST))
    assert found[at[0]] == OffsetAndTimestamp(5, 9, 2)
    assert found[at[1]] is None
    assert isinstance(found[at[2]], NotLeaderOrFollower)


def test_deleting_too_many_records_is_told_with_the_offset(stub: Any, admin: Admin) -> None:
    led_by_stub(stub)
    parts = [
        DeleteRecordsPartitionResult(partition_index=0, low_watermark=4),
        DeleteRecordsPartitionResult(partition_index=1, error_code=1),
    ]
    answer = DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="t", partitions=parts)])
    stub.serve(ApiKey.DELETE_RECORDS, answer)
    at = [TopicPartition("t", index) for index in range(2)]
    done = admin.delete_records({at[0]: 4, at[1]: 99})
    assert done[at[0]] == 4
    failed = done[at[1]]
    assert isinstance(failed, OffsetOutOfRange)
    assert "99" in str(failed)


def described(version: int, **fields: Any) -> DescribeConfigsResponse:
    config = DescribeConfigsResourceResult(name="retention.ms", value="5", **fields)
    result = DescribeConfigsResult(resource_type=2, resource_name="t", configs=[config])
    return DescribeConfigsResponse(results=[result])


def test_a_source_of_the_future_is_unknown_and_no_error(stub: Any, admin: Admin) -> None:
    stub.serve(ApiKey.DESCRIBE_CONFIGS, described(4, config_source=99))
    (entry,) = admin.describe_configs([TOPIC])[TOPIC]
    assert entry.source is ConfigSource.UNKNOWN


@pytest.mark.parametrize(
    ("is_default", "source"),
    [(True, ConfigSource.DEFAULT_CONFIG), (False, ConfigSource.DYNAMIC_TOPIC_CONFIG)],
)
def test_the_oldest_form_only_tells_defaults_apart(
    stub: Any, admin: Admin, is_default: bool, source: ConfigSource
) -> None:
    stub.versions[ApiKey.DESCRIBE_CONFIGS] = range(1)
    stub.serve(ApiKey.DESCRIBE_CONFIGS, described(0, is_default=is_default))
    (entry,) = admin.describe_configs([TOPIC], synonyms=False)[TOPIC]
    assert entry.source is source


def test_a_brokers_settings_are_changed_at_that_broker(
    stub: Any, second_stub: Any, admin: Admin
) -> None:
    from penstock.protocol.messages.metadata import MetadataResponseBroker

    me, other = (
        MetadataResponseBroker(node_id=b.node_id, host="127.0.0.1", port=b.port)
        for b in (stub, second_stub)
    )
    both = stub.metadata()
    both.brokers = [me, other]
    stub.answers[ApiKey.METADATA] = lambda *_: both
    seen = []

    def alter(request: Any, version: int) -> IncrementalAlterConfigsResponse:
        seen.append(request)
        done = [
            AlterConfigsResourceResponse(resource_type=4, resource_name=r.resource_name)
            for r in request.resources
        ]
        return IncrementalAlterConfigsResponse(responses=done)

    stub.answers[ApiKey.INCREMENTAL_ALTER_CONFIGS] = alter
    second_stub.answers[ApiKey.INCREMENTAL_ALTER_CONFIGS] = alter
    change = ConfigChange(name="log.cleaner.threads", operation=Operation.DELETE)
    admin.alter_configs(
        {
            ConfigResource(ResourceType.BROKER, "1"): [change],
            ConfigResource(ResourceType.BROKER, ""): [change],
        }
    )
    assert [[r.resource_name for r in request.resources] for request in seen] == [["1"], [""]]
    assert ApiKey.INCREMENTAL_ALTER_CONFIGS in [api for api, _ in second_stub.asked]
    (config,) = seen[0].resources[0].configs
    assert (config.config_operation, config.value) == (Operation.DELETE, None)


def test_a_closed_admin_says_that_it_is_closed() -> None:
    admin = Admin(bootstrap_servers="127.0.0.1:1")
    admin.close()
    with pytest.raises(IllegalStateError, match="after the Admin has been closed"):
        admin.list_topics()
    admin.close()
