"""A script of access rules and requests: the same for Apache Kafka and for Penstock.

Somebody with few rights asks for everything there is, in the oldest and the newest version of each
API that both serve. Answers are compared by their codes, names and counts; ids, addresses, times
and sentences differ between any two clusters.
"""

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.support.batches import batch
from tests.support.processes import HOST
from tests.support.waiting import eventually

from penstock.client.wire.connection import BrokerConnection
from penstock.client.wire.security import Security
from penstock.protocol.apis import Request
from penstock.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    consumer_group_describe,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from penstock.protocol.schema import Struct, default_of
from penstock.security.acls.rules import AclOperation as Op
from penstock.security.acls.rules import AclPermission, AclResourceType, PatternType

PASSWORD = "alice-secret"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
TOPICS = ("secret", "absent")
T, G, C, X, U, D = (
    AclResourceType.TOPIC,
    AclResourceType.GROUP,
    AclResourceType.CLUSTER,
    AclResourceType.TRANSACTIONAL_ID,
    AclResourceType.USER,
    AclResourceType.DELEGATION_TOKEN,
)
CLUSTER = "kafka-cluster"
Rule = tuple[Any, ...]

SITUATIONS: dict[str, Sequence[Rule]] = {
    "nothing": (),
    "describe": ((T, "secret", Op.DESCRIBE), (G, "g", Op.DESCRIBE), (X, "x", Op.DESCRIBE)),
    "read by prefix": (
        (T, "se", Op.READ, PatternType.PREFIXED),
        (G, "*", Op.READ),
    ),
    "write": ((T, "secret", Op.WRITE), (X, "x", Op.WRITE), (G, "g", Op.READ)),
    "see the cluster": ((C, CLUSTER, Op.DESCRIBE), (C, CLUSTER, Op.DESCRIBE_CONFIGS)),
    "denied": (
        (T, "*", Op.ALL),
        (G, "*", Op.ALL),
        (X, "*", Op.ALL),
        (T, "secret", Op.READ, PatternType.LITERAL, AclPermission.DENY),
        (T, "secret", Op.DELETE, PatternType.LITERAL, AclPermission.DENY),
        (T, "abs", Op.DESCRIBE, PatternType.PREFIXED, AclPermission.DENY),
        (G, "g", Op.DELETE, PatternType.LITERAL, AclPermission.DENY),
    ),
    "everybody reads": (
        (T, "secret", Op.READ, PatternType.LITERAL, AclPermission.ALLOW, "User:*"),
    ),
    "from elsewhere": (
        (T, "*", Op.ALL, PatternType.LITERAL, AclPermission.ALLOW, "User:alice", "10.1.1.1"),
    ),
    "groups and what is open": ((G, "*", Op.READ), (T, "open", Op.DESCRIBE)),
    "tokens of bob": (
        (U, "User:bob", Op.CREATE_TOKENS),
        (U, "User:bob", Op.DESCRIBE_TOKENS),
    ),
    "every token": ((D, "*", Op.DESCRIBE),),
    "settings": (
        (T, "secret", Op.DESCRIBE_CONFIGS),
        (T, "secret", Op.ALTER),
        (G, "g", Op.ALTER_CONFIGS),
        (T, "ab", Op.CREATE, PatternType.PREFIXED),
    ),
}

EVERY_RULE: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}

# What differs between any two clusters.
APART = {
    "active_producers",
    "base_offset",
    "base_timestamp",
    "brokers",
    "cluster_id",
    "controller_id",
    "coordinator_epoch",
    "documentation",
    "error_message",
    "host",
    "log_append_time_ms",
    "log_dir",
    "log_start_offset",
    "node_id",
    "port",
    "producer_epoch",
    "producer_id",
    "session_id",
    "throttle_time_ms",
    "timestamp",
    "token_id",
    "total_bytes",
    "usable_bytes",
}
# Of tokens: whether there is a time, or which number stands for none.
TIMES = {"expiry_timestamp", "expiry_timestamp_ms", "issue_timestamp", "issue_timestamp_ms"}
TIMES |= {"max_timestamp", "max_timestamp_ms"}
COUNTED = {"configs", "mechanisms", "results_of_dirs", "records"}


def settings_of(ports: dict[str, int]) -> dict[str, str]:
    """What a broker needs beside its listeners."""
    return {
        "super.users": "User:ANONYMOUS;User:admin",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{PLAIN_MODULE} required user_alice="{PASSWORD}" user_admin="admin-secret";'
        ),
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "auto.create.topics.enable": "true",
        "num.partitions": "1",
        "log.retention.ms": "-1",  # The records of this script are old.
    }


def as_user(port: int, user: str = "alice", password: str = PASSWORD) -> BrokerConnection:
    how = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    who = {"sasl.username": user, "sasl.password": password}
    security = Security.from_settings({**how, **who})
    return BrokerConnection(HOST, port, timeout_s=120, security=security)


# Requests, made of the names of things that are there and of things that are not


def requests() -> Iterator[tuple[str, Request]]:
    yield "metadata", _metadata(TOPICS)
    yield "metadata of all", metadata.MetadataRequest(topics=None, **_bits())
    yield (
        "describe cluster",
        describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True),
    )
    yield (
        "describe topic partitions",
        describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest(name=name) for name in TOPICS]
        ),
    )
    yield "page of all topics", describe_topic_partitions.DescribeTopicPartitionsRequest(topics=[])
    yield from _records()
    yield from _groups()
    yield from _transactions()
    yield from _administration()


def _bits() -> dict[str, bool]:
    return {
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": True,
        "allow_auto_topic_creation": False,
    }


def _metadata(names: Sequence[str]) -> Request:
    topics = [metadata.MetadataRequestTopic(name=name) for name in names]
    return metadata.MetadataRequest(topics=topics, **_bits())


def _records() -> Iterator[tuple[str, Request]]:
    yield (
        "produce",
        produce.ProduceRequest(
            acks=1,
            timeout_ms=5000,
            topic_data=[
                produce.TopicProduceData(
                    name=name,
                    partition_data=[produce.PartitionProduceData(index=0, records=_batch())],
                )
                for name in TOPICS
            ],
        ),
    )
    yield (
        "fetch",
        fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1000,
            topics=[
                fetch.FetchTopic(
                    topic=name,
                    partitions=[
                        fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
                    ],
                )
                for name in TOPICS
            ],
        ),
    )
    yield (
        "list offsets",
        list_offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=[
                list_offsets.ListOffsetsTopic(
                    name=name,
                    partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-2)],
                )
                for name in TOPICS
            ],
        ),
    )
    yield (
        "offset for leader epoch",
        offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    topic=name,
                    partitions=[
                        offset_for_leader_epoch.OffsetForLeaderPartition(
                            partition=0, leader_epoch=0
                        )
                    ],
                )
                for name in TOPICS
            ],
        ),
    )
    yield (
        "delete records",
        delete_records.DeleteRecordsRequest(
            timeout_ms=5000,
            topics=[
                delete_records.DeleteRecordsTopic(
                    name=name,
                    partitions=[delete_records.DeleteRecordsPartition(partition_index=0, offset=0)],
                )
                for name in TOPICS
            ],
        ),
    )
    yield (
        "describe producers",
        describe_producers.DescribeProducersRequest(
            topics=[
                describe_producers.TopicRequest(name=name, partition_indexes=[0]) for name in TOPICS
            ]
        ),
    )


def _batch() -> bytes:
    return batch([b"v"])


def _groups() -> Iterator[tuple[str, Request]]:
    for kind, key in ((0, "g"), (1, "x")):
        yield (
            f"find coordinator {kind}",
            find_coordinator.FindCoordinatorRequest(
                key=key, key_type=kind, coordinator_keys=[key, "other"]
            ),
        )
    yield (
        "join group",
        join_group.JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="nobody",
            protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"")],
        ),
    )
    yield (
        "sync group",
        sync_group.SyncGroupRequest(
            group_id="g",
            generation_id=1,
            member_id="nobody",
            protocol_type="consumer",
            protocol_name="range",
        ),
    )
    yield "heartbeat", heartbeat.HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    yield (
        "leave group",
        leave_group.LeaveGroupRequest(
            group_id="g",
            member_id="m",
            members=[leave_group.MemberIdentity(member_id="m", group_instance_id=None)],
        ),
    )
    yield (
        "offset commit",
        offset_commit.OffsetCommitRequest(
            group_id="g",
            topics=[
                offset_commit.OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        offset_commit.OffsetCommitRequestPartition(
                            partition_index=0, committed_offset=0, committed_metadata=""
                        )
                    ],
                )
                for name in TOPICS
            ],
        ),
    )
    for name, topics in (("named", TOPICS), ("all", None)):
        yield (
            f"offset fetch {name}",
            offset_fetch.OffsetFetchRequest(
                group_id="g",
                topics=topics
                and [
                    offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
                    for topic in topics
                ],
                groups=[
                    offset_fetch.OffsetFetchRequestGroup(
                        group_id=group,
                        topics=topics
                        and [
                            offset_fetch.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
                            for topic in topics
                        ],
                    )
                    for group in ("g", "other")
                ],
            ),
        )
    yield (
        "describe groups",
        describe_groups.DescribeGroupsRequest(
            groups=["g", "other"], include_authorized_operations=True
        ),
    )
    yield (
        "describe consumer groups",
        consumer_group_describe.ConsumerGroupDescribeRequest(
            group_ids=["g", "other"], include_authorized_operations=True
        ),
    )
    yield "list groups", list_groups.ListGroupsRequest()
    yield "delete groups", delete_groups.DeleteGroupsRequest(groups_names=["other"])
    yield (
        "offset delete",
        offset_delete.OffsetDeleteRequest(
            group_id="g",
            topics=[
                offset_delete.OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=1)],
                )
                for name in TOPICS
            ],
        ),
    )


def _transactions() -> Iterator[tuple[str, Request]]:
    who: dict[str, Any] = {"transactional_id": "x", "producer_id": 9, "producer_epoch": 0}
    yield "init idempotent", init_producer_id.InitProducerIdRequest(transactional_id=None)
    yield (
        "init transactional",
        init_producer_id.InitProducerIdRequest(transactional_id="y", transaction_timeout_ms=1000),
    )
    yield (
        "add partitions",
        add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=9,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[
                add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=[0])
                for name in TOPICS
            ],
            transactions=[
                add_partitions_to_txn.AddPartitionsToTxnTransaction(
                    transactional_id="x",
                    producer_id=9,
                    producer_epoch=0,
                    verify_only=True,
                    topics=[],
                )
            ],
        ),
    )
    yield "add offsets", add_offsets_to_txn.AddOffsetsToTxnRequest(**who, group_id="g")
    yield "end", end_txn.EndTxnRequest(**who, committed=True)
    yield (
        "commit in a transaction",
        txn_offset_commit.TxnOffsetCommitRequest(
            **who,
            group_id="g",
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    name="secret",
                    partitions=[
                        txn_offset_commit.TxnOffsetCommitRequestPartition(
                            partition_index=0, committed_offset=0, committed_metadata=""
                        )
                    ],
                )
            ],
        ),
    )
    yield "write markers", write_txn_markers.WriteTxnMarkersRequest(markers=[])
    yield (
        "describe transactions",
        describe_transactions.DescribeTransactionsRequest(transactional_ids=["x", "other"]),
    )
    yield "list transactions", list_transactions.ListTransactionsRequest()


def _administration() -> Iterator[tuple[str, Request]]:
    yield (
        "create topics",
        create_topics.CreateTopicsRequest(
            validate_only=True,
            timeout_ms=5000,
            topics=[
                create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                for name in ("absent", "other", "secret")
            ],
        ),
    )
    yield (
        "delete topics",
        delete_topics.DeleteTopicsRequest(
            timeout_ms=5000,
            topic_names=["absent", "secret"],
            topics=[delete_topics.DeleteTopicState(name=name) for name in ("absent", "secret")],
        ),
    )
    yield (
        "create partitions",
        create_partitions.CreatePartitionsRequest(
            validate_only=True,
            timeout_ms=5000,
            topics=[
                create_partitions.CreatePartitionsTopic(name=name, count=5, assignments=None)
                for name in TOPICS
            ],
        ),
    )
    wanted = [(2, "secret"), (2, "absent"), (4, "1"), (32, "g")]
    yield (
        "describe configs",
        describe_configs.DescribeConfigsRequest(
            resources=[
                describe_configs.DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=None
                )
                for kind, name in wanted
            ]
        ),
    )
    yield (
        "alter configs",
        alter_configs.AlterConfigsRequest(
            validate_only=True,
            resources=[
                alter_configs.AlterConfigsResource(
                    resource_type=2,
                    resource_name=name,
                    configs=[alter_configs.AlterableConfig(name="retention.ms", value="1")],
                )
                for name in TOPICS
            ],
        ),
    )
    yield (
        "incremental alter configs",
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            validate_only=True,
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=kind, resource_name=name, configs=[]
                )
                for kind, name in wanted
            ],
        ),
    )
    yield "describe log dirs", describe_log_dirs.DescribeLogDirsRequest(topics=[])
    yield (
        "elect leaders",
        elect_leaders.ElectLeadersRequest(
            topic_partitions=[elect_leaders.TopicPartitions(topic="secret", partitions=[0])]
        ),
    )
    yield (
        "alter reassignments",
        alter_partition_reassignments.AlterPartitionReassignmentsRequest(topics=[]),
    )
    yield (
        "list reassignments",
        list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None),
    )
    yield "describe quotas", describe_client_quotas.DescribeClientQuotasRequest(components=[])
    yield (
        "alter quotas",
        alter_client_quotas.AlterClientQuotasRequest(
            entries=[
                alter_client_quotas.EntryDataRequest(
                    entity=[alter_client_quotas.EntityData(entity_type="user", entity_name="u")],
                    ops=[],
                )
            ],
            validate_only=True,
        ),
    )
    yield (
        "describe scram",
        describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=[]),
    )
    yield (
        "alter scram",
        alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            deletions=[alter_user_scram_credentials.ScramCredentialDeletion(name="u", mechanism=1)]
        ),
    )
    yield "list config resources", list_config_resources.ListConfigResourcesRequest()
    yield "describe acls", describe_acls.DescribeAclsRequest(**EVERY_RULE)
    yield (
        "create acls",
        create_acls.CreateAclsRequest(
            creations=[rule_of((T, "a", Op.READ)), rule_of((C, "x", Op.READ))]
        ),
    )
    yield (
        "delete acls",
        delete_acls.DeleteAclsRequest(
            filters=[
                delete_acls.DeleteAclsFilter(
                    **{**EVERY_RULE, "resource_type_filter": 6, "pattern_type_filter": 3}
                )
            ]
        ),
    )


# Rules


def rule_of(rule: Rule) -> create_acls.AclCreation:
    """The rule as CreateAcls takes it."""
    usual = (PatternType.LITERAL, AclPermission.ALLOW, "User:alice", "*")
    kind, name, operation, pattern, permission, principal, host = rule + usual[len(rule) - 3 :]
    return create_acls.AclCreation(
        resource_type=int(kind),
        resource_name=name,
        resource_pattern_type=int(pattern),
        principal=principal,
        host=host,
        operation=int(operation),
        permission_type=int(permission),
    )


def set_rules(connection: BrokerConnection, rules: Sequence[Rule]) -> None:
    """Let exactly these rules hold, as somebody who may."""
    gone = delete_acls.DeleteAclsFilter(**EVERY_RULE)
    connection.request(delete_acls.DeleteAclsRequest(filters=[gone]), 3)
    asked = create_acls.CreateAclsRequest(creations=[rule_of(rule) for rule in rules])
    answer: Any = connection.request(asked, 3)
    assert [one.error_code for one in answer.results] == [0] * len(rules), answer
    eventually(functools.partial(_holds, connection, len(rules)))


def _holds(connection: BrokerConnection, count: int) -> bool:
    asked = describe_acls.DescribeAclsRequest(**EVERY_RULE)
    answer: Any = connection.request(asked, 3)
    return sum(len(resource.acls) for resource in answer.resources) == count


def prepare(connection: BrokerConnection) -> None:
    """A topic, a group with an offset, and what the coordinators need."""
    made = create_topics.CreatableTopic(name="secret", num_partitions=2, replication_factor=1)
    connection.request(create_topics.CreateTopicsRequest(topics=[made], timeout_ms=30_000), 7)
    for kind in (0, 1):
        asked = find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"])
        eventually(functools.partial(_is_found, connection, asked))
    commit = offset_commit.OffsetCommitRequest(
        group_id="g",
        topics=[
            offset_commit.OffsetCommitRequestTopic(
                name="secret",
                partitions=[
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=0, committed_metadata=""
                    )
                ],
            )
        ],
    )
    eventually(functools.partial(_is_committed, connection, commit))
    init = init_producer_id.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000)
    eventually(lambda: connection.request(init, 4).error_code == 0)  # type: ignore[attr-defined]


def _is_found(connection: BrokerConnection, asked: Request) -> bool:
    answer: Any = connection.request(asked, 4)
    return all(one.error_code == 0 for one in answer.coordinators)


def _is_committed(connection: BrokerConnection, asked: Request) -> bool:
    answer: Any = connection.request(asked, 8)
    return all(p.error_code == 0 for topic in answer.topics for p in topic.partitions)


# Playing it


Play = Callable[[BrokerConnection, int], Iterator[tuple[str, Any]]]


def answers(admin: BrokerConnection, port: int, play: Play) -> dict[str, Any]:
    """What alice is told in each situation; `play` asks what earlier answers make possible."""
    prepare(admin)
    found: dict[str, Any] = {}
    for situation, rules in SITUATIONS.items():
        set_rules(admin, rules)
        with as_user(port) as alice:
            for name, request in requests():
                for version in _versions(alice, request):
                    answer = alice.request(fitted(request, version), version)
                    found[f"{situation}: {name} v{version}"] = plain(answer, name)
        found |= {f"{situation}: {name}": answer for name, answer in play(admin, port)}
    return found


NEWEST = {"write_txn_markers": 1, "produce": 12, "fetch": 12, "offset_commit": 9, "offset_fetch": 9}


def _versions(connection: BrokerConnection, request: Request) -> list[int]:
    """The oldest and the newest that both sides speak, with names and not with ids."""
    spoken = connection.versions(request.api_key)
    if not spoken:  # An older Kafka, which has no such API yet.
        return []
    newest = min(spoken[-1], NEWEST.get(type(request).__module__.rpartition(".")[2], spoken[-1]))
    oldest = max(spoken[0], OLDEST.get(type(request).__module__.rpartition(".")[2], 0))
    return sorted({oldest, newest})


OLDEST = {"produce": 3, "fetch": 4, "list_offsets": 1, "create_topics": 2, "delete_topics": 1}
OLDEST |= {"describe_configs": 1, "offset_commit": 2, "offset_fetch": 2, "join_group": 2}
OLDEST |= {"offset_for_leader_epoch": 2, "create_acls": 1, "delete_acls": 1, "describe_acls": 1}
OLDEST |= {
    "write_txn_markers": 1,
    "delete_records": 0,
    "describe_log_dirs": 1,
    "alter_client_quotas": 1,
}
OLDEST |= {"add_partitions_to_txn": 3, "sync_group": 0, "leave_group": 0, "metadata": 8}


def fitted(value: Any, version: int) -> Any:
    """A request without what its version does not have."""
    if isinstance(value, list):
        return [fitted(item, version) for item in value]
    if not isinstance(value, Struct):
        return value
    part = copy.copy(value)
    for name, field in value.fields.items():
        given = getattr(value, name)
        there = field.exists_in(version)
        if given is not default_of(field):  # A default is shared, and cannot be changed.
            setattr(part, name, fitted(given, version) if there else default_of(field))
    return part


def plain(value: Any, name: str = "") -> Any:
    """An answer without what differs between any two clusters, and in one order."""
    if isinstance(value, Struct):
        # A topic that was only checked has an id in Kafka, though nothing was made.
        apart = APART | {"topic_id"} if name == "create topics" else APART
        return {
            field: _plain_field(field, found, name)
            for field in value.fields
            if field not in apart
            for found in [getattr(value, field)]
        }
    if isinstance(value, list):
        return sorted((plain(item, name) for item in value), key=str)
    if isinstance(value, (bytes, memoryview)):
        return "bytes" if any(bytes(value)) else "none"
    return value


def _plain_field(field: str, found: Any, name: str) -> Any:
    if field in COUNTED:
        return bool(found)
    if field in TIMES and isinstance(found, int):
        return "a time" if found > 0 else found
    return plain(found, name)
