"""The same requests to Penstock and to Apache Kafka, good and bad: both give the same answers.

Each case is one request in one version. Both servers get all of them in the same order, because
later ones see what earlier ones made. Sentences are compared too, unless ours tells more than
Kafka's. Addresses and ids are not. Where we differ on purpose there is no case here.
"""

import gzip
import re
from collections.abc import Iterator, Set
from typing import Any

import pytest
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.batches import batch, record
from tests.support.broker import BrokerProcess
from tests.support.outside import needs
from tests.support.processes import HOST, ServerProcess
from tests.support.waiting import eventually

from penstock.client.wire.connection import BrokerConnection
from penstock.protocol.apis import Request
from penstock.protocol.messages import (
    alter_configs,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_producers,
    describe_topic_partitions,
    describe_user_scram_credentials,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from penstock.protocol.schema import Struct

pytestmark = pytest.mark.kafka

Case = tuple[str, Request, int]
BROKER_ID = 1
NO_ID = bytes(16)
NOBODYS_ID = b"\x05" * 16
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
# Not compared: our own words, and who and where the server is.
OURS = {"cluster_id", "documentation", "host", "port"}
# A topic of ours has one setting that Kafka 4 dropped, and those that check schemas.
SETTINGS_APART = re.compile(r"message\.downconversion\.enable|(confluent|penstock)\..*")
# Where Kafka says nothing, something for all errors alike, or what is true of Kafka alone.
IN_OUR_WORDS = re.compile(
    r"create a topic with too many replicas"
    r"|grow what is not there|producers.*|coordinator.*"
    r"|describe (topic 'absent'|[03] 'x')"
    r"|produce (what|a|an) .*"
)
FIRST_MS = 1_700_000_000_000


# The requests


def topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> Any:
    return create_topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            create_topics.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def placed(*assignments: tuple[int, list[int]], partitions: int = -1, replicas: int = -1) -> Any:
    asked = topic("a", partitions, replicas)
    asked.assignments = [
        create_topics.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in assignments
    ]
    return asked


def creation(*topics: Any, **request: Any) -> Request:
    return create_topics.CreateTopicsRequest(topics=list(topics), **request)


def of_names(*names: str | None, **request: Any) -> Request:
    topics = [metadata.MetadataRequestTopic(name=name) for name in names]
    return metadata.MetadataRequest(topics=topics, **request)


def growth(name: str, count: int, assignments: list[list[int]] | None = None) -> Any:
    given = assignments and [
        create_partitions.CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments
    ]
    wanted = create_partitions.CreatePartitionsTopic(
        name=name, count=count, assignments=None if assignments is None else given or []
    )
    return create_partitions.CreatePartitionsRequest(topics=[wanted], timeout_ms=5000)


def offsets(*wanted: tuple[int, int], name: str = "filled", epoch: int = -1, **request: Any) -> Any:
    partitions = [
        list_offsets.ListOffsetsPartition(
            partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
        )
        for index, timestamp in wanted
    ]
    topics = [list_offsets.ListOffsetsTopic(name=name, partitions=partitions)]
    request.setdefault("replica_id", -1)
    return list_offsets.ListOffsetsRequest(topics=topics, **request)


def epoch_end(epoch: int, *, index: int = 0, current: int = -1) -> Request:
    wanted = offset_for_leader_epoch.OffsetForLeaderPartition(
        partition=index, leader_epoch=epoch, current_leader_epoch=current
    )
    asked = offset_for_leader_epoch.OffsetForLeaderTopic(topic="filled", partitions=[wanted])
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=[asked], replica_id=-1)


def deletion_before(offset: int, *, name: str = "filled", index: int = 0) -> Request:
    wanted = delete_records.DeleteRecordsPartition(partition_index=index, offset=offset)
    asked = delete_records.DeleteRecordsTopic(name=name, partitions=[wanted])
    return delete_records.DeleteRecordsRequest(topics=[asked], timeout_ms=5000)


def description(kind: int, name: str, keys: list[str] | None = None) -> Request:
    wanted = describe_configs.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    return describe_configs.DescribeConfigsRequest(resources=[wanted], include_synonyms=True)


def change(kind: int, name: str, *changes: tuple[str, int, str | None]) -> Request:
    messages = incremental_alter_configs
    configs = [
        messages.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    wanted = messages.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return messages.IncrementalAlterConfigsRequest(resources=[wanted])


def replacement(kind: int, name: str, **configs: str | None) -> Request:
    entries = [
        alter_configs.AlterableConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    wanted = alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=entries
    )
    return alter_configs.AlterConfigsRequest(resources=[wanted])


def page(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Request:
    messages = describe_topic_partitions
    place = cursor and messages.Cursor(topic_name=cursor[0], partition_index=cursor[1])
    return messages.DescribeTopicPartitionsRequest(
        topics=[messages.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=place,
    )


def producers(name: str, *indexes: int) -> Request:
    asked = describe_producers.TopicRequest(name=name, partition_indexes=list(indexes))
    return describe_producers.DescribeProducersRequest(topics=[asked])


def deletion(*entries: tuple[str | None, bytes]) -> Request:
    topics = [delete_topics.DeleteTopicState(name=name, topic_id=at) for name, at in entries]
    return delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=5000)


def production(name: str, data: bytes) -> Request:
    partition = produce.PartitionProduceData(index=0, records=data)
    asked = produce.TopicProduceData(name=name, partition_data=[partition])
    return produce.ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[asked])


def records(*values: bytes, at_ms: int, producer: int = -1) -> Request:
    """One batch for filled-0, idempotent if a producer is named."""
    identity = (producer, 0) if producer >= 0 else (-1, -1)
    data = batch(values, timestamp=at_ms, producer=identity, sequence=0 if producer >= 0 else -1)
    return production("filled", data)


# The cases, in the order in which they are asked


def creating() -> Iterator[Case]:
    fine = creation(topic("orders", 3, retention_ms="1000", cleanup_policy="delete"))
    yield "create a topic", fine, 7
    yield "create an old-style topic", creation(topic("old", 2)), 2
    yield "create with defaults", creation(topic("defaulted", -1, -1)), 5
    yield "create what will be filled", creation(topic("filled")), 7
    yield "create a compacted topic", creation(topic("compacted", cleanup_policy="compact")), 7
    yield "create with dots", creation(topic("c.c")), 7
    bad = {
        "existing": topic("orders", retention_ms="x"),
        "nameless": topic(""),
        "with a slash": topic("a/b"),
        "named by dots": topic(".."),
        "with too long a name": topic("x" * 250),
        "that collides": topic("c_c"),
        "without partitions": topic("a", 0),
        "with -2 partitions": topic("a", -2),
        "with two billion partitions": topic("a", 2**31 - 1),
        "without replicas": topic("a", 1, 0),
        "with -3 replicas": topic("a", 1, -3),
        "with too many replicas": topic("a", 1, 2),
        "with a bad value": topic("a", retention_ms="soon"),
        "with an unknown setting": topic("a", no_such="1"),
        "with a null": topic("a", retention_ms=None),
        "with tiny segments": topic("a", segment_bytes="1"),
        "with lags that cross": topic("a", min_compaction_lag_ms="10", max_compaction_lag_ms="5"),
        "on remote storage": topic("a", remote_storage_enable="true"),
        "placed and counted": placed((0, [1]), partitions=1),
        "placed and replicated": placed((0, [1]), replicas=1),
        "placed with a gap": placed((0, [1]), (2, [1])),
        "placed nowhere": placed((0, [])),
        "placed twice on one broker": placed((0, [1, 1])),
        "placed on nobody": placed((0, [8])),
    }
    for what, wish in bad.items():
        yield f"create a topic {what}", creation(wish), 7
    yield "create a topic twice", creation(topic("t2"), topic("t2", 2), topic("a/b")), 7


def growing() -> Iterator[Case]:
    yield "grow", growth("orders", 4), 3
    yield "grow by hand", growth("orders", 5, [[BROKER_ID]]), 2
    wishes = {
        "to what it is": growth("orders", 5),
        "backwards": growth("orders", 1),
        "to nothing": growth("orders", 0),
        "to less than nothing": growth("orders", -1),
        "what is not there": growth("absent", 4),
        "with too few places": growth("orders", 8, [[BROKER_ID]]),
        "with no places": growth("orders", 6, []),
        "onto nobody": growth("orders", 6, [[8]]),
        "onto one broker twice": growth("orders", 6, [[BROKER_ID, BROKER_ID]]),
        "onto an empty list": growth("orders", 6, [[]]),
    }
    for what, wish in wishes.items():
        yield f"grow {what}", wish, 3


def filling() -> Iterator[Case]:
    yield "produce", records(b"a", b"b", at_ms=FIRST_MS), 9
    yield "produce the newest", records(b"c", at_ms=FIRST_MS + 2000, producer=4711), 9
    yield "produce later but older", records(b"d", at_ms=FIRST_MS + 1000), 9


def bad_records() -> Iterator[Case]:
    """Records that are refused one by one (KIP-467); the time bounds are in the answer, so not."""
    yield "create for old records", creation(topic("kept", cleanup_policy="compact")), 7
    keyed = [record(0, b"v", key=b"k"), record(1, b"v"), record(2, b"v", key=b"k")]
    wishes = {
        "without a key": b"".join(keyed),
        "all without a key": b"".join(record(i, b"v") for i in range(5)),
    }
    for what, payload in wishes.items():
        count = 5 if what.startswith("all") else 3
        data = batch([b"v"] * count, timestamp=FIRST_MS, records=payload)
        for version in (7, 8, 12):
            yield f"write records {what} {version}", production("kept", data), version
        packed = batch(
            [b"v"] * count, timestamp=FIRST_MS, records=gzip.compress(payload), attributes=1
        )
        yield f"write packed records {what}", production("kept", packed), 9


def asking_without_security() -> Iterator[Case]:
    wanted = describe_acls.DescribeAclsRequest(
        resource_type_filter=2, pattern_type_filter=3, operation=1, permission_type=1
    )
    rule = create_acls.AclCreation(
        resource_type=2,
        resource_name="t",
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    removed = delete_acls.DeleteAclsFilter(
        resource_type_filter=2, pattern_type_filter=3, operation=1, permission_type=1
    )
    for version in (1, 3):
        yield f"list rules {version}", wanted, version
        made = create_acls.CreateAclsRequest(creations=[rule, rule])
        yield f"make rules {version}", made, version
        yield f"remove rules {version}", delete_acls.DeleteAclsRequest(filters=[removed]), version
    messages = describe_user_scram_credentials
    for names in (None, [], ["a", "b"], ["a", "a"]):
        users = None if names is None else [messages.UserName(name=name) for name in names]
        yield f"passwords of {names}", messages.DescribeUserScramCredentialsRequest(users=users), 0


def asking_for_metadata() -> Iterator[Case]:
    for version in (0, 1, 3, 4, 5, 7, 8, 9, 10, 12, 13):
        quiet = {"allow_auto_topic_creation": False} if version >= 4 else {}
        yield f"metadata {version}", of_names("orders", **quiet), version
    missing = of_names("absent", "a/b", "", allow_auto_topic_creation=False)
    yield "metadata of what is not there", missing, 12
    allowed = of_names(
        "orders",
        "absent",
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    yield "metadata with operations", allowed, 8
    twice = of_names("orders", "orders", allow_auto_topic_creation=False)
    yield "metadata of one topic twice", twice, 12
    by_id = metadata.MetadataRequestTopic(name=None, topic_id=NOBODYS_ID)
    yield "metadata by id", metadata.MetadataRequest(topics=[by_id]), 12
    yield "metadata by id too early", metadata.MetadataRequest(topics=[by_id]), 11
    yield "metadata of nothing", of_names(), 1
    for version in (0, 2):
        request = describe_cluster.DescribeClusterRequest(
            include_cluster_authorized_operations=version == 0
        )
        yield f"cluster {version}", request, version
    for kind in (2, 9):
        yield (
            f"cluster of kind {kind}",
            describe_cluster.DescribeClusterRequest(endpoint_type=kind),
            1,
        )


def paging() -> Iterator[Case]:
    yield "page", page("orders", "absent", "a/b"), 0
    yield "page with a limit", page("orders", "old", limit=2), 0
    yield "page up to the end of a topic", page("old", "orders", limit=2), 0
    yield "page with a cursor", page("orders", "old", limit=3, cursor=("old", 1)), 0
    yield "page with a cursor beyond", page("orders", "old", cursor=("old", 50)), 0
    yield "page with a cursor elsewhere", page("orders", cursor=("zzz", 0)), 0
    yield "page with a negative cursor", page("orders", cursor=("orders", -1)), 0
    for limit in (0, -1):
        yield f"page of {limit}", page("orders", "old", limit=limit), 0


def asking_for_offsets() -> Iterator[Case]:
    times = (-1, -2, -3, -4, -5, -6, -7, 0, FIRST_MS + 500, FIRST_MS + 2000, 10**15)
    for version in (1, 3, 5, 7, 8, 9, 11):
        for timestamp in times:
            yield f"offset {version} at {timestamp}", offsets((0, timestamp)), version
    yield "offset of committed records", offsets((0, -1), isolation_level=1), 5
    yield "offset of no partition", offsets((99, -1)), 5
    yield "offset of no topic", offsets((0, -1), name="absent"), 5
    yield "offset for a later epoch", offsets((0, -1), epoch=7), 5
    yield "offset for a debugger", offsets((0, -1), replica_id=-2), 5
    for epoch in (-1, 0, 1, 5):
        yield f"end of epoch {epoch}", epoch_end(epoch), 4
    yield "end of an epoch for a later one", epoch_end(0, current=9), 3
    yield "end of an epoch of no partition", epoch_end(0, index=44), 2
    yield "producers", producers("filled", 0, 88), 0
    yield "producers of no topic", producers("absent", 0), 0
    yield "producers of a bad name", producers("a/b", 0), 0
    for offset in (99, -2, 0, 1, -1):
        yield f"delete before {offset}", deletion_before(offset), 2
    yield "delete records of no partition", deletion_before(0, index=77), 2
    yield "delete records of no topic", deletion_before(0, name="absent"), 1
    yield "delete records of a compacted topic", deletion_before(0, name="compacted"), 2


def describing() -> Iterator[Case]:
    keys = ["retention.ms", "cleanup.policy", "segment.ms", "segment.bytes", "no.such.key"]
    for version in (1, 3, 4):
        yield f"describe some {version}", description(TOPIC, "orders", keys), version
    yield "describe all", description(TOPIC, "orders"), 4
    yield "describe no keys", description(TOPIC, "orders", []), 4
    for name in ("absent", "a/b", ""):
        yield f"describe topic {name!r}", description(TOPIC, name), 4
    keys = ["num.partitions", "message.max.bytes", "log.retention.ms", "log.retention.hours"]
    keys += ["log.cleaner.threads", "ssl.key.password", "broker.rack", "log.segment.bytes"]
    yield "describe the broker", description(BROKER, "1", keys), 4
    for kind, name in ((BROKER, ""), (BROKER, "9"), (BROKER, "x"), (LOGGER, ""), (LOGGER, "9")):
        yield f"describe {kind} {name!r}", description(kind, name), 4
    yield "describe a group", description(GROUP, "g", ["consumer.session.timeout.ms"]), 4
    for kind, name in ((GROUP, ""), (METRICS, ""), (3, "x"), (0, "x")):
        yield f"describe {kind} {name!r}", description(kind, name), 4


def altering() -> Iterator[Case]:
    topics: list[tuple[str, int, str | None]] = [
        ("retention.ms", SET, "77"),
        ("retention.ms", DELETE, None),
        ("cleanup.policy", APPEND, "compact"),
        ("cleanup.policy", SUBTRACT, "delete"),
        ("cleanup.policy", DELETE, None),
        ("retention.ms", SET, "x"),
        ("retention.ms", SET, None),
        ("retention.ms", APPEND, "1"),
        ("no.such", SET, "x"),
        ("no.such", DELETE, None),
        ("no.such", APPEND, "x"),
    ]
    for one in topics:
        yield f"alter {one}", change(TOPIC, "orders", one), 1
        yield f"see {one}", description(TOPIC, "orders", ["retention.ms", "cleanup.policy"]), 4
    both = [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]
    yield "alter a key twice", change(TOPIC, "orders", *both), 1
    for name in ("absent", "", "a b"):
        yield f"alter topic {name!r}", change(TOPIC, name, ("retention.ms", SET, "1")), 1
    for name in ("1", "", "9", "x"):
        yield f"alter broker {name!r}", change(BROKER, name, ("log.cleaner.threads", SET, "2")), 1
        yield f"see broker {name!r}", description(BROKER, name, ["log.cleaner.threads"]), 4
    for key, value in (("log.dirs", "/x"), ("message.max.bytes", "-1"), ("message.max.bytes", "z")):
        yield f"alter {key} of the broker to {value}", change(BROKER, "1", (key, SET, value)), 1
    minimum, unknown = "min.insync.replicas", "no.such"
    for name in ("", "1"):
        for one in ((minimum, DELETE, None), (minimum, SET, "2"), (minimum, SET, "0")):
            yield f"alter {one} of broker {name!r}", change(BROKER, name, one), 1
        for one in ((unknown, SET, "5"), (unknown, APPEND, "5")):
            yield f"alter {one} of broker {name!r}", change(BROKER, name, one), 1
        keys = [minimum, unknown]
        yield f"see the unknown of broker {name!r}", description(BROKER, name, keys), 4
    several = [("log.dirs", SET, "/x"), ("broker.id", SET, "2"), (unknown, SET, "5")]
    yield "alter fixed settings of the broker", change(BROKER, "1", *several), 1
    bad = {
        "segment.bytes": "1048575",
        "compression.gzip.level": "0",
        "min.cleanable.dirty.ratio": "2",
        "leader.replication.throttled.replicas": "a:b",
        "cleanup.policy": "eat",
    }
    for key, value in bad.items():
        yield f"alter {key} to {value}", change(TOPIC, "orders", (key, SET, value)), 1
    both = [("retention.ms", SET, "x"), ("no.such", SET, "1")]
    yield "alter two bad settings", change(TOPIC, "orders", *both), 1
    loggers: list[tuple[str, str, int, str | None]] = [
        ("1", "root", SET, "INFO"),
        ("1", "root", SET, "LOUD"),
        ("1", "no.such", SET, "INFO"),
        ("1", "root", DELETE, None),
        ("1", "root", APPEND, "INFO"),
        ("9", "root", SET, "INFO"),
        ("", "root", SET, "INFO"),
    ]
    for name, logger, operation, level in loggers:
        what = f"alter logger {logger} {operation} {level} of {name!r}"
        yield what, change(LOGGER, name, (logger, operation, level)), 1
    for kind in (0, 3):
        yield f"alter kind {kind}", change(kind, "x", ("a", SET, "b")), 1


def replacing() -> Iterator[Case]:
    yield "replace", replacement(TOPIC, "orders", segment_ms="12345"), 2
    yield "see it replaced", description(TOPIC, "orders", ["segment.ms", "retention.ms"]), 4
    wishes = {
        "a bad value": replacement(TOPIC, "orders", retention_ms="z"),
        "a null": replacement(TOPIC, "orders", retention_ms=None),
        "an absent topic": replacement(TOPIC, "absent", retention_ms="1"),
        "no topic": replacement(TOPIC, "", retention_ms="1"),
        "a fixed setting": replacement(BROKER, "1", log_dirs="/x"),
        "no broker": replacement(BROKER, "x", message_max_bytes="1"),
        "a logger": replacement(LOGGER, "1", root="INFO"),
        "nothing known": replacement(0, "1", root="INFO"),
    }
    for what, wish in wishes.items():
        yield f"replace {what}", wish, 2


def coordinating() -> Iterator[Case]:
    for key_type in (0, 1):
        request = find_coordinator.FindCoordinatorRequest(key="k", key_type=key_type)
        yield f"coordinator {key_type}", request, 3
        many = find_coordinator.FindCoordinatorRequest(
            coordinator_keys=["k", "l"], key_type=key_type
        )
        yield f"coordinators {key_type}", many, 6
    for key_type in (3, -1):
        request = find_coordinator.FindCoordinatorRequest(key="k", key_type=key_type)
        yield f"coordinator {key_type}", request, 3
    share = find_coordinator.FindCoordinatorRequest(coordinator_keys=["k"], key_type=2)
    yield "coordinator of shares too early", share, 4
    yield "coordinator in version 0", find_coordinator.FindCoordinatorRequest(key="k"), 0
    for producer_id, epoch in ((5, -1), (-1, 5)):
        half = init_producer_id.InitProducerIdRequest(
            transactional_id=None, producer_id=producer_id, producer_epoch=epoch
        )
        yield f"half a producer {producer_id} {epoch}", half, 4
    nameless = init_producer_id.InitProducerIdRequest(transactional_id="")
    yield "a transaction without a name", nameless, 4
    internal = deletion_before(0, name="__consumer_offsets")
    yield "delete records of an internal topic", internal, 2


def deleting() -> Iterator[Case]:
    for version in (1, 3, 5):
        names = delete_topics.DeleteTopicsRequest(topic_names=["absent"], timeout_ms=5000)
        yield f"delete {version}", names, version
    yield "delete nothing", deletion((None, NO_ID)), 6
    yield "delete by name and id", deletion(("orders", NOBODYS_ID)), 6
    yield "delete an unknown id", deletion((None, NOBODYS_ID)), 6
    yield "delete twice", deletion(("old", NO_ID), ("old", NO_ID)), 6
    yield "delete an id twice", deletion((None, NOBODYS_ID), (None, NOBODYS_ID)), 6
    yield "delete a bad name", deletion(("a/b", NO_ID)), 6
    yield "delete", deletion(("orders", NO_ID)), 6


FAMILIES = (
    creating,
    growing,
    filling,
    bad_records,
    asking_without_security,
    asking_for_metadata,
    paging,
    asking_for_offsets,
    describing,
    altering,
    replacing,
    coordinating,
    deleting,
)
CASES = [case for family in FAMILIES for case in family()]
# These change something each time they are sent, so they are sent once.
ONCE = (
    create_topics.CreateTopicsRequest,
    create_partitions.CreatePartitionsRequest,
    delete_topics.DeleteTopicsRequest,
)


# Asking and comparing


def plain(value: Any, left_out: Set[str] = frozenset()) -> Any:
    """An answer without what may differ; results whose order means nothing are in one order."""
    if isinstance(value, Struct):
        names = [name for name in value.fields if name not in OURS and name not in left_out]
        return {name: plain(getattr(value, name), left_out) for name in names}
    if isinstance(value, list):
        items = [plain(item, left_out) for item in value]
        if items and isinstance(items[0], dict) and "name" in items[0]:
            items = [item for item in items if not SETTINGS_APART.fullmatch(item["name"] or "")]
            items.sort(key=lambda item: (item["name"] or "", str(item)))
        return items
    if isinstance(value, bytes):
        return "an id" if any(value) else "no id"
    return value


def left_out_of(name: str) -> Set[str]:
    return {"error_message"} if IN_OUR_WORDS.fullmatch(name) else frozenset()


def answers(server: ServerProcess) -> Iterator[Any]:
    """What a server says to each case, one connection for all."""
    with BrokerConnection(HOST, server.port, timeout_s=120) as connection:
        for name, request, version in CASES:
            yield plain(connection.request(request, version), left_out_of(name))


def kafka_answers(server: ServerProcess, expected: list[Any]) -> Iterator[Any]:
    """Kafka tells its broker of a change a moment after it has answered, so ask until it has."""
    with BrokerConnection(HOST, server.port, timeout_s=120) as connection:
        for case, ours in zip(CASES, expected, strict=True):
            name, request, version = case
            if isinstance(request, ONCE):
                yield plain(connection.request(request, version), left_out_of(name))
                continue
            yield settled_answer(connection, case, ours)


def settled_answer(connection: BrokerConnection, case: Case, ours: Any) -> Any:
    name, request, version = case
    theirs: Any = None

    def agrees() -> bool:
        nonlocal theirs
        theirs = plain(connection.request(request, version), left_out_of(name))
        return bool(theirs == ours)

    try:
        eventually(agrees, timeout_s=30)
    except AssertionError:
        return theirs
    return theirs


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Any]]:
    """For each case what we said and what Kafka said."""
    settings = {
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.num.partitions": "5",
    }
    jars = needs(CURRENT)
    with BrokerProcess(tmp_path_factory.mktemp("ours"), settings, broker_id=BROKER_ID) as penstock:
        penstock.start()
        ours = list(answers(penstock))
        assert "Traceback" not in penstock.log, penstock.log_end
        penstock.stop()
    with KafkaProcess(jars, tmp_path_factory.mktemp("theirs"), settings) as kafka:
        kafka.start()
        theirs = list(kafka_answers(kafka, ours))
        kafka.stop()
    names = [name for name, _, _ in CASES]
    return dict(zip(names, zip(ours, theirs, strict=True), strict=True))


def test_no_two_cases_share_a_name() -> None:
    names = [name for name, _, _ in CASES]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_the_answers_are_those_of_apache_kafka(
    asked: dict[str, tuple[Any, Any]], family: Any
) -> None:
    different = {
        name: {"ours": asked[name][0], "theirs": asked[name][1]}
        for name, _, _ in family()
        if asked[name][0] != asked[name][1]
    }
    assert different == {}
