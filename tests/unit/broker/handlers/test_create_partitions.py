"""CreatePartitions: topics grow and never shrink."""

from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)


def growth(name: str, count: int, assignments: list[list[int]] | None = None) -> Any:
    return CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments],
    )


def grow(served: Any, *topics: Any, version: int = 3, validate_only: bool = False) -> list[Any]:
    asked = CreatePartitionsRequest(topics=list(topics), validate_only=validate_only)
    results: list[Any] = served.ask(asked, version).results
    return results


def count_of(served: Any, topic: str) -> int:
    return len(served.broker.image.topics[topic].partitions)


@pytest.mark.parametrize("version", range(4))
def test_a_topic_grows_to_the_count_asked_for(served: Any, version: int) -> None:
    served.create("orders", partitions=2)
    (result,) = grow(served, growth("orders", 5), version=version)
    assert (result.name, result.error_code, result.error_message) == ("orders", 0, None)
    assert count_of(served, "orders") == 5
    assert served.partition("orders", 4).log.log_end_offset == 0


def test_to_validate_only_changes_nothing(served: Any) -> None:
    served.create("orders")
    (result,) = grow(served, growth("orders", 5), validate_only=True)
    assert result.error_code == ErrorCode.NONE
    assert count_of(served, "orders") == 1


def test_new_replicas_may_be_placed_by_hand(served: Any) -> None:
    served.create("orders")
    (result,) = grow(served, growth("orders", 3, [[7], [7]]))
    assert result.error_code == ErrorCode.NONE
    assert count_of(served, "orders") == 3


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (growth("orders", 2), ErrorCode.INVALID_PARTITIONS),
        (growth("orders", 1), ErrorCode.INVALID_PARTITIONS),
        (growth("orders", 0), ErrorCode.INVALID_PARTITIONS),
        (growth("orders", -1), ErrorCode.INVALID_PARTITIONS),
        (growth("orders", 2**31 - 1), ErrorCode.POLICY_VIOLATION),
        (growth("absent", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (growth("orders", 4, [[7]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (growth("orders", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (growth("orders", 3, [[8]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (growth("orders", 3, [[7, 7]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_bad_wishes_get_kafkas_code_and_change_nothing(
    served: Any, wish: Any, code: ErrorCode
) -> None:
    served.create("orders", partitions=2)
    for validate_only in (True, False):
        (result,) = grow(served, wish, validate_only=validate_only)
        assert (result.error_code, bool(result.error_message)) == (code, True)
    assert count_of(served, "orders") == 2


def test_a_topic_named_twice_is_refused_and_others_grow(served: Any) -> None:
    served.create("twice")
    served.create("once")
    results = grow(served, growth("twice", 2), growth("once", 2), growth("twice", 3))
    assert [(result.name, result.error_code) for result in results] == [
        ("twice", ErrorCode.INVALID_REQUEST),
        ("once", ErrorCode.NONE),
    ]
    assert (count_of(served, "twice"), count_of(served, "once")) == (1, 2)
