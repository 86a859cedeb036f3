"""Metadata: brokers and topics as each version of the API tells them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from penstock.broker.handlers import metadata
from penstock.broker.visible import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from penstock.cluster.image.image import (
    BrokerImage,
    ClusterImage,
    Endpoint,
    PartitionImage,
    PartitionState,
)
from penstock.cluster.znodes import CONTROLLER_EPOCH
from penstock.errors import ErrorCode, KafkaStorage
from penstock.meta.store import Set
from penstock.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.protocol.primitives import ZERO_UUID

ALL_VERSIONS = range(14)
NOT_ASKED = -(2**31)


def names(*wanted: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in wanted]


def ids(*wanted: bytes) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in wanted]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_every_version_tells_a_topic_and_where_it_is_led(served: Any, version: int) -> None:
    served.create("orders", partitions=3)
    response = served.ask(MetadataRequest(topics=names("orders")), version)
    (broker,) = response.brokers
    (topic,) = response.topics
    assert (broker.node_id, broker.host) == (7, "127.0.0.1")
    assert broker.port == served.broker.image.brokers[7].endpoints[0].port
    assert (topic.name, topic.error_code, topic.is_internal) == ("orders", 0, False)
    assert [partition.partition_index for partition in topic.partitions] == [0, 1, 2]
    assert {partition.leader_id for partition in topic.partitions} == {7}
    assert all(it.replica_nodes == it.isr_nodes == [7] for it in topic.partitions)


def test_fields_appear_with_their_versions(served: Any) -> None:
    served.create("orders")
    ask = MetadataRequest(topics=names("orders"))
    assert served.ask(ask, 0).controller_id == -1
    assert served.ask(ask, 1).controller_id == 7
    assert served.ask(ask, 1).cluster_id is None
    assert served.ask(ask, 2).cluster_id == served.broker.image.cluster_id
    assert served.ask(ask, 6).topics[0].partitions[0].leader_epoch == -1
    assert served.ask(ask, 7).topics[0].partitions[0].leader_epoch == 0
    assert served.ask(ask, 9).topics[0].topic_id == ZERO_UUID
    assert served.ask(ask, 10).topics[0].topic_id == served.partition("orders").topic_id


def test_the_rack_of_a_broker_is_told(serve: Callable[..., Any]) -> None:
    served = serve({"broker.rack": "north"})
    assert served.ask(MetadataRequest(topics=[]), 1).brokers[0].rack == "north"


def test_an_empty_list_is_everything_to_the_oldest_clients_and_nothing_to_others(
    served: Any,
) -> None:
    served.create("a")
    served.create("b")
    nothing = MetadataRequest(topics=[])
    assert {topic.name for topic in served.ask(nothing, 0).topics} == {"a", "b"}
    assert served.ask(nothing, 1).topics == []


@pytest.mark.parametrize("version", [1, 8, 9, 12, 13])
def test_null_asks_for_every_topic(served: Any, version: int) -> None:
    served.create("a")
    served.create("b")
    response = served.ask(MetadataRequest(topics=None), version)
    assert {topic.name for topic in response.topics} == {"a", "b"}


@pytest.mark.parametrize("version", [0, 3, 4, 12])
def test_a_topic_comes_to_life_when_it_is_asked_for(
    serve: Callable[..., Any], version: int
) -> None:
    served = serve({"num.partitions": "2"})
    (topic,) = served.ask(MetadataRequest(topics=names("fresh")), version).topics
    assert topic.error_code == ErrorCode.NONE
    assert [partition.leader_id for partition in topic.partitions] == [7, 7]
    assert len(served.broker.image.topics["fresh"].partitions) == 2


def test_two_clients_that_ask_for_the_same_new_topic_both_get_it(served: Any) -> None:
    async def both() -> list[Any]:
        ask = MetadataRequest(topics=names("fresh"))
        return await asyncio.gather(served.answer(ask, 12), served.answer(ask, 4))

    first, second = served.run(both())
    assert [topic.error_code for topic in (*first.topics, *second.topics)] == [0, 0]


def test_a_client_that_must_not_create_learns_that_there_is_nothing(served: Any) -> None:
    ask = MetadataRequest(topics=names("fresh"), allow_auto_topic_creation=False)
    (topic,) = served.ask(ask, 4).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "fresh" not in served.broker.image.topics


def test_a_broker_that_must_not_create_says_that_there_is_nothing(
    serve: Callable[..., Any],
) -> None:
    served = serve({"auto.create.topics.enable": "false"})
    (topic,) = served.ask(MetadataRequest(topics=names("fresh")), 12).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "fresh" not in served.broker.image.topics


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 250])
def test_a_name_no_topic_can_have_is_not_created(served: Any, name: str) -> None:
    (topic,) = served.ask(MetadataRequest(topics=names(name)), 12).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert not served.broker.image.topics


def test_a_topic_that_cannot_be_placed_is_not_created(serve: Callable[..., Any]) -> None:
    served = serve({"default.replication.factor": "3"})
    (topic,) = served.ask(MetadataRequest(topics=names("fresh")), 12).topics
    assert topic.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_controller_that_was_replaced_leaves_new_topics_for_later(
    serve: Callable[..., Any],
) -> None:
    served = serve({"controlled.shutdown.enable": "false"})
    served.create("old")
    served.run(served.broker.store.multi([Set(CONTROLLER_EPOCH, b"99")]))
    old, new = served.ask(MetadataRequest(topics=names("old", "new")), 12).topics
    assert (old.error_code, new.error_code) == (0, ErrorCode.LEADER_NOT_AVAILABLE)


def test_good_and_bad_names_are_answered_in_the_order_asked(served: Any) -> None:
    served.create("old")
    topics = served.ask(MetadataRequest(topics=names("new", "a b", "old", "new")), 12).topics
    assert [(topic.name, topic.error_code) for topic in topics] == [
        ("new", ErrorCode.NONE),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("old", ErrorCode.NONE),
    ]


def test_an_internal_topic_says_so(serve: Callable[..., Any]) -> None:
    served = serve({"offsets.topic.num.partitions": "2"})
    (topic,) = served.ask(MetadataRequest(topics=names("__consumer_offsets")), 12).topics
    assert (topic.is_internal, topic.error_code, len(topic.partitions)) == (True, 0, 2)
    overrides = served.broker.image.config("topics", "__consumer_offsets")
    assert overrides["cleanup.policy"] == "compact"


@pytest.mark.parametrize("version", [12, 13])
def test_topics_are_found_by_id(served: Any, version: int) -> None:
    served.create("orders")
    known, unknown = served.partition("orders").topic_id, b"\x01" * 16
    found, missing = served.ask(MetadataRequest(topics=ids(known, unknown)), version).topics
    assert (found.name, found.topic_id, found.error_code) == ("orders", known, 0)
    assert (missing.name, missing.topic_id) == (None, unknown)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", [10, 11])
def test_lookup_by_id_is_refused_where_no_broker_ever_had_it(served: Any, version: int) -> None:
    served.create("orders")
    asked = [MetadataRequestTopic(name="orders", topic_id=b"\x01" * 16)]
    (topic,) = served.ask(MetadataRequest(topics=asked), version).topics
    assert topic.error_code == ErrorCode.INVALID_REQUEST
    (topic,) = served.ask(MetadataRequest(topics=ids(b"\x01" * 16)), version).topics
    assert topic.error_code == ErrorCode.INVALID_REQUEST


def test_a_topic_without_name_and_id_is_refused(served: Any) -> None:
    response = served.ask(MetadataRequest(topics=ids(ZERO_UUID)), 13)
    assert response.error_code == ErrorCode.INVALID_REQUEST


def test_operations_are_told_only_when_asked_for(served: Any) -> None:
    served.create("orders")
    quiet = served.ask(MetadataRequest(topics=names("orders")), 8)
    assert quiet.cluster_authorized_operations == NOT_ASKED
    assert quiet.topics[0].topic_authorized_operations == NOT_ASKED
    asked = MetadataRequest(
        topics=names("orders"),
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    told = served.ask(asked, 10)
    assert told.cluster_authorized_operations == CLUSTER_OPERATIONS
    assert told.topics[0].topic_authorized_operations == TOPIC_OPERATIONS


def test_a_client_of_another_listener_finds_no_broker_and_no_leader(served: Any) -> None:
    served.create("orders")
    ask = MetadataRequest(topics=names("orders"))
    for version, code in ((5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)):
        response = served.ask(ask, version, listener="OTHER")
        (partition,) = response.topics[0].partitions
        assert response.brokers == []
        assert (partition.error_code, partition.leader_id) == (code, -1)
        assert (partition.replica_nodes, partition.offline_replicas) == ([7], [7])


def cluster_of_two(leader: int) -> tuple[PartitionImage, ClusterImage]:
    """Broker 1 is here, broker 2 is a replica that is gone."""
    endpoint = Endpoint("PLAINTEXT", "h", 1, "PLAINTEXT")
    here = BrokerImage(broker_id=1, epoch=1, endpoints=(endpoint,), is_active=True)
    state = PartitionState(leader=leader, leader_epoch=4, isr=(1, 2), min_isr=1)
    image = ClusterImage(cluster_id="c", brokers={1: here})
    return PartitionImage(replicas=(1, 2), state=state), image


def test_only_the_oldest_clients_are_spared_replicas_they_cannot_reach() -> None:
    partition, image = cluster_of_two(leader=1)
    brokers = {1: image.brokers[1].endpoints[0]}
    old = metadata._partition(0, partition, image, brokers, 0)
    assert (old.error_code, old.replica_nodes, old.isr_nodes) == (
        ErrorCode.REPLICA_NOT_AVAILABLE,
        [1],
        [1],
    )
    new = metadata._partition(0, partition, image, brokers, 5)
    assert (new.error_code, new.replica_nodes, new.offline_replicas) == (0, [1, 2], [2])


def test_a_dead_leader_is_not_available_in_any_version() -> None:
    partition, image = cluster_of_two(leader=2)
    brokers = {1: image.brokers[1].endpoints[0]}
    for version in ALL_VERSIONS:
        told = metadata._partition(0, partition, image, brokers, version)
        assert (told.error_code, told.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
        assert told.leader_epoch == 4


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_an_error_as_a_whole_reaches_every_topic_in_every_version(version: int) -> None:
    request = MetadataRequest(topics=names("a", "b"))
    response = metadata.error_response(request, KafkaStorage())
    read = type(response).decode(response.encode(version), version)
    assert [topic.error_code for topic in read.topics] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2


def test_a_topic_deleted_while_all_are_written_down_is_not_among_them(
    served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.create("stays")
    served.create("goes")
    monkeypatch.setattr(metadata, "_PARTITIONS_AT_ONCE_MAX", 0)
    lane, steps = served.broker.slow_lane, []

    async def run(work: Callable[[], Any]) -> Any:
        if steps:
            await served.broker.acting_controller().delete_topics(["goes"])
        steps.append(work)
        return await type(lane).run(lane, work)

    monkeypatch.setattr(lane, "run", run)
    found = served.ask(MetadataRequest(topics=None), 12).topics
    assert len(steps) == 2
    assert [(topic.name, topic.error_code) for topic in found] == [("stays", 0)]
