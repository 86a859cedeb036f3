"""CreateTopics: what is made, and what each bad wish is told."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.broker.handlers import create_topics
from penstock.errors import ErrorCode, NotController
from penstock.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.primitives import ZERO_UUID

ALL_VERSIONS = range(8)


def topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> Any:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def placed(name: str, assignments: list[tuple[int, list[int]]], **counts: int) -> Any:
    return CreatableTopic(
        name=name,
        num_partitions=counts.get("partitions", -1),
        replication_factor=counts.get("replicas", -1),
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
    )


def create(served: Any, *topics: Any, version: int = 7, **request: Any) -> list[Any]:
    asked = CreateTopicsRequest(topics=list(topics), **request)
    results: list[Any] = served.ask(asked, version).topics
    return results


def codes(results: list[Any]) -> dict[str, int]:
    return {result.name: result.error_code for result in results}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_every_version_makes_a_topic(served: Any, version: int) -> None:
    (result,) = create(served, topic("orders", 3), version=version)
    assert (result.name, result.error_code) == ("orders", ErrorCode.NONE)
    assert len(served.broker.image.topics["orders"].partitions) == 3
    assert served.partition("orders", 2).log.log_end_offset == 0


def test_what_was_made_is_told_from_version_five_on_and_its_id_from_seven(served: Any) -> None:
    (old,) = create(served, topic("a"), version=4)
    assert (old.num_partitions, old.replication_factor) == (-1, -1)
    (told,) = create(served, topic("b", 2, retention_ms="1000"), version=5)
    assert (told.num_partitions, told.replication_factor, told.topic_id) == (2, 1, ZERO_UUID)
    configs = {config.name: config for config in told.configs}
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("1000", 1)
    assert (configs["segment.bytes"].value, configs["segment.bytes"].config_source) == (
        str(1 << 30),
        5,
    )
    (with_id,) = create(served, topic("c"), version=7)
    assert with_id.topic_id == served.partition("c").topic_id


def test_counts_left_out_come_from_the_broker(serve: Callable[..., Any]) -> None:
    served = serve({"num.partitions": "5"})
    (result,) = create(served, topic("orders", -1, -1))
    assert (result.num_partitions, result.replication_factor) == (5, 1)


def test_settings_of_the_topic_are_stored_and_act(served: Any) -> None:
    create(served, topic("orders", retention_ms="123", log_cleanup_policy="compact"))
    assert served.broker.image.config("topics", "orders") == {
        "retention.ms": "123",
        "cleanup.policy": "compact",
    }
    assert served.partition("orders").log.config.retention_ms == 123


def test_to_validate_only_makes_nothing(served: Any) -> None:
    results = create(served, topic("orders", 3), topic("a b"), validate_only=True)
    assert codes(results) == {
        "orders": ErrorCode.NONE,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert (results[0].num_partitions, results[0].topic_id) == (3, ZERO_UUID)
    assert not served.broker.image.topics


def test_an_existing_topic_is_not_made_again(served: Any) -> None:
    served.create("orders")
    (result,) = create(served, topic("orders", retention_ms="nonsense"))
    assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert result.error_message == "Topic 'orders' already exists."


def test_a_name_that_differs_in_dots_and_underscores_only_is_refused(served: Any) -> None:
    served.create("a.b")
    assert codes(create(served, topic("a_b"))) == {"a_b": ErrorCode.INVALID_TOPIC_EXCEPTION}


def test_a_topic_named_twice_is_refused_and_others_are_made(served: Any) -> None:
    results = create(served, topic("twice"), topic("once"), topic("twice", 2))
    assert codes(results) == {"twice": ErrorCode.INVALID_REQUEST, "once": ErrorCode.NONE}
    assert set(served.broker.image.topics) == {"once"}


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("a", partitions=0), ErrorCode.INVALID_PARTITIONS),
        (topic("a", partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (topic("a", replicas=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("a", replicas=-3), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("a", replicas=2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("a", partitions=2**31 - 1), ErrorCode.POLICY_VIOLATION),
        (topic("a", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (topic("a", no_such_setting="1"), ErrorCode.INVALID_CONFIG),
        (topic("a", retention_ms=None), ErrorCode.INVALID_CONFIG),
        (topic("a", segment_bytes="1"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_bad_wishes_get_kafkas_code_and_make_nothing(
    served: Any, wish: Any, code: ErrorCode
) -> None:
    (result,) = create(served, wish)
    assert (result.error_code, bool(result.error_message)) == (code, True)
    assert not served.broker.image.topics


def test_replicas_may_be_placed_by_hand(served: Any) -> None:
    (result,) = create(served, placed("orders", [(1, [7]), (0, [7])]))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 1)


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (placed("a", [(0, [7])], partitions=1), ErrorCode.INVALID_REQUEST),
        (placed("a", [(0, [7])], replicas=1), ErrorCode.INVALID_REQUEST),
        (placed("a", [(0, [7]), (2, [7])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (placed("a", [(0, [7]), (0, [7])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (placed("a", [(-1, [7])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (placed("a", [(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (placed("a", [(0, [7, 7])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (placed("a", [(0, [8])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_bad_placement_gets_kafkas_code(served: Any, wish: Any, code: ErrorCode) -> None:
    assert codes(create(served, wish)) == {"a": code}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_an_error_as_a_whole_reaches_every_topic_in_every_version(version: int) -> None:
    request = CreateTopicsRequest(topics=[topic("a"), topic("b")])
    response = create_topics.error_response(request, NotController())
    read = type(response).decode(response.encode(version), version)
    assert codes(read.topics) == {"a": ErrorCode.NOT_CONTROLLER, "b": ErrorCode.NOT_CONTROLLER}
