"""Moves and elections: what is asked of whom, and what the answers mean."""

from typing import Any

import pytest

from penstock.client.admin import Admin
from penstock.client.operations.elections import ElectionType
from penstock.client.operations.reassignments import PartitionReassignment, Replica
from penstock.client.operations.replica_records import ReplicaReads, read_replicas
from penstock.client.values import TopicPartition
from penstock.errors import (
    ClusterAuthorization,
    ElectionNotNeeded,
    InvalidReplicaAssignment,
    LogDirNotFound,
    NotLeaderOrFollower,
)
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from penstock.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from penstock.protocol.messages.elect_leaders import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from penstock.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from penstock.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from penstock.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def admin_of(*stubs: Any) -> Admin:
    return Admin(bootstrap_servers=stubs[0].address, retry_backoff_ms=1)


def as_one_cluster(controller: int, *stubs: Any) -> None:
    """The stubs know each other."""
    brokers = [
        MetadataResponseBroker(node_id=stub.node_id, host="127.0.0.1", port=stub.port)
        for stub in stubs
    ]
    for stub in stubs:
        stub.serve(
            ApiKey.METADATA,
            MetadataResponse(brokers=brokers, controller_id=controller, cluster_id="stub"),
        )


def test_moves_are_ordered_at_the_controller(stub: Any, second_stub: Any) -> None:
    as_one_cluster(1, stub, second_stub)
    seen: list[Any] = []

    def answer(request: Any, _: int) -> AlterPartitionReassignmentsResponse:
        seen.append(request)
        results = [
            ReassignablePartitionResponse(partition_index=0),
            ReassignablePartitionResponse(
                partition_index=1, error_code=39, error_message="no broker 9"
            ),
        ]
        topics = [ReassignableTopicResponse(name="t", partitions=results)]
        return AlterPartitionReassignmentsResponse(responses=topics)

    second_stub.answers[ApiKey.ALTER_PARTITION_REASSIGNMENTS] = answer
    with admin_of(stub) as admin:
        results = admin.alter_partition_reassignments({T0: None, T1: [1, 9]})
    assert results[T0] is None
    assert isinstance(results[T1], InvalidReplicaAssignment)
    assert str(results[T1]) == "no broker 9"
    (topic,) = seen[0].topics
    assert [part.replicas for part in topic.partitions] == [None, [1, 9]]


def test_the_next_controller_is_asked_when_the_old_one_steps_down(stub: Any) -> None:
    answers = [
        ListPartitionReassignmentsResponse(error_code=41),
        ListPartitionReassignmentsResponse(
            topics=[
                OngoingTopicReassignment(
                    name="t",
                    partitions=[
                        OngoingPartitionReassignment(
                            partition_index=1,
                            replicas=[2, 0, 1],
                            adding_replicas=[2],
                            removing_replicas=[1],
                        )
                    ],
                )
            ]
        ),
    ]
    stub.answers[ApiKey.LIST_PARTITION_REASSIGNMENTS] = lambda *_: answers.pop(0)
    with admin_of(stub) as admin:
        found = admin.list_partition_reassignments([T0, T1])
    assert found == {
        T1: PartitionReassignment(replicas=(2, 0, 1), adding=(2,), removing=(1,)),
    }
    assert found[T1].target == (2, 0)


def test_a_refusal_of_all_is_raised(stub: Any) -> None:
    stub.serve(
        ApiKey.LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsResponse(error_code=31)
    )
    with admin_of(stub) as admin, pytest.raises(ClusterAuthorization):
        admin.list_partition_reassignments()


@pytest.mark.parametrize("oldest", [True, False])
def test_elections_are_held(stub: Any, oldest: bool) -> None:
    if oldest:
        stub.versions[ApiKey.ELECT_LEADERS] = range(1)
    refused = ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic="t", partition_result=[PartitionResult(partition_id=0, error_code=41)]
            )
        ]
    )
    results = [
        PartitionResult(partition_id=0),
        PartitionResult(partition_id=1, error_code=84, error_message="it leads"),
    ]
    held = ElectLeadersResponse(
        replica_election_results=[ReplicaElectionResult(topic="t", partition_result=results)]
    )
    answers = [refused, held]
    stub.answers[ApiKey.ELECT_LEADERS] = lambda *_: answers.pop(0)
    with admin_of(stub) as admin:
        found = admin.elect_leaders(ElectionType.PREFERRED, None if not oldest else [T0, T1])
    assert found[T0] is None
    assert isinstance(found[T1], ElectionNotNeeded)


def test_directories_are_changed_on_the_broker_that_has_them(stub: Any, second_stub: Any) -> None:
    as_one_cluster(0, stub, second_stub)
    paths: list[str] = []

    def answer(request: Any, _: int) -> AlterReplicaLogDirsResponse:
        paths.extend(directory.path for directory in request.dirs)
        results = [AlterReplicaLogDirPartitionResult(partition_index=0, error_code=57)]
        return AlterReplicaLogDirsResponse(
            results=[AlterReplicaLogDirTopicResult(topic_name="t", partitions=results)]
        )

    second_stub.answers[ApiKey.ALTER_REPLICA_LOG_DIRS] = answer
    replica = Replica("t", 0, 1)
    with admin_of(stub) as admin:
        results = admin.alter_replica_log_dirs({replica: "/elsewhere"})
    assert paths == ["/elsewhere"]
    assert isinstance(results[replica], LogDirNotFound)


def test_replicas_are_read_where_they_are(stub: Any, second_stub: Any) -> None:
    as_one_cluster(0, stub, second_stub)
    askers: list[int] = []

    def answer_with(code: int) -> Any:
        def answer(request: Any, version: int) -> FetchResponse:
            assert version <= 12, "topics are named"
            askers.append(request.replica_id)
            part = PartitionData(partition_index=0, error_code=code, high_watermark=3)
            return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[part])])

        return answer

    stub.answers[ApiKey.FETCH] = answer_with(0)
    second_stub.answers[ApiKey.FETCH] = answer_with(6)
    with admin_of(stub) as admin:
        found = read_replicas(admin.cluster, {0: {T0: 0}, 1: {T0: 0}, 7: {T0: 0}}, ReplicaReads())
    assert set(found) == {0, 1}, "a broker that is not there is left out"
    assert found[0][T0].error is None
    assert found[0][T0].high_watermark == 3
    assert isinstance(found[1][T0].error, NotLeaderOrFollower)
    assert askers == [-2, -2]
