"""A cluster as one partner: dead entries are skipped, the right broker is found."""

from typing import Any

import pytest

from penstock.client.errors import BrokerUnreachableError
from penstock.client.values import Node, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import LeaderNotAvailable, UnknownTopicOrPartition
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest
from penstock.protocol.messages.create_topics import CreateTopicsResponse as Created
from penstock.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def of_two(stub: Any, second_stub: Any, controller_id: int, **more: Any) -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=b.node_id, host="127.0.0.1", port=b.port)
            for b in (stub, second_stub)
        ],
        controller_id=controller_id,
        **more,
    )


def test_dead_entries_of_the_bootstrap_list_are_skipped(stub: Any, closed_port: int) -> None:
    with ClusterClient(f"127.0.0.1:{closed_port},{stub.address}") as cluster:
        assert cluster.metadata().cluster_id == "stub"
        assert cluster.nodes == {0: Node(0, "127.0.0.1", stub.port)}


def test_if_all_are_dead_the_first_is_named(closed_port: int) -> None:
    client = ClusterClient([f"127.0.0.1:{closed_port}"], retry_backoff_ms=1)
    with pytest.raises(BrokerUnreachableError, match=f"127.0.0.1:{closed_port}"):
        client.metadata()


def test_a_connection_that_was_closed_meanwhile_is_replaced(stub: Any) -> None:
    with ClusterClient(stub.address, retry_backoff_ms=1) as cluster:
        cluster.metadata()
        stub.drop_connections()
        assert cluster.metadata().cluster_id == "stub"


def test_the_next_controller_is_asked_when_one_says_it_is_none(stub: Any, second_stub: Any) -> None:
    controllers = iter([0, 1, 1])
    stub.answers[ApiKey.METADATA] = lambda *_: of_two(stub, second_stub, next(controllers))
    refusal = Created(topics=[CreatableTopicResult(name="t", error_code=41)])
    stub.serve(ApiKey.CREATE_TOPICS, refusal)
    second_stub.answers[ApiKey.METADATA] = lambda *_: of_two(stub, second_stub, 1)
    second_stub.serve(ApiKey.CREATE_TOPICS, Created(topics=[CreatableTopicResult(name="t")]))
    with ClusterClient(stub.address, retry_backoff_ms=1) as cluster:
        answer = cluster.ask_controller(
            CreateTopicsRequest(), Created, code_of=lambda a: a.topics[0].error_code
        )
    assert answer.topics[0].error_code == 0
    assert ApiKey.CREATE_TOPICS in [api for api, _ in second_stub.asked]


def with_leader(stub: Any, leader_id: int) -> MetadataResponse:
    parts = [MetadataResponsePartition(partition_index=0, leader_id=leader_id)]
    return stub.metadata(topics=[MetadataResponseTopic(name="t", partitions=parts)])  # type: ignore[no-any-return]


def test_an_election_is_waited_out(stub: Any) -> None:
    leaders = iter([-1, -1, 0])
    stub.answers[ApiKey.METADATA] = lambda *_: with_leader(stub, next(leaders))
    with ClusterClient(stub.address, retry_backoff_ms=1) as cluster:
        assert cluster.leaders([TopicPartition("t", 0)]) == {TopicPartition("t", 0): 0}


def test_a_partition_without_a_leader_is_told_at_last(stub: Any) -> None:
    stub.answers[ApiKey.METADATA] = lambda *_: with_leader(stub, -1)
    client = ClusterClient(stub.address, retry_backoff_ms=1, api_timeout_ms=20)
    with client as cluster, pytest.raises(LeaderNotAvailable, match="t-0"):
        cluster.leaders([TopicPartition("t", 0)])


def test_a_missing_partition_is_an_answer_and_not_waited_for(stub: Any) -> None:
    stub.answers[ApiKey.METADATA] = lambda *_: with_leader(stub, 0)
    with (
        ClusterClient(stub.address) as cluster,
        pytest.raises(UnknownTopicOrPartition, match="t-7 does not exist"),
    ):
        cluster.leaders([TopicPartition("t", 7)])


def test_a_broker_that_is_not_part_of_the_cluster_is_told(stub: Any) -> None:
    with (
        ClusterClient(stub.address) as cluster,
        pytest.raises(BrokerUnreachableError, match="Broker 9 is not part"),
    ):
        cluster.node_connection(9)
