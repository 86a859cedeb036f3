"""Names on the other side, and circles that names give away."""

import pytest

from penstock.mirror.policies import (
    IdentityPolicy,
    PrefixPolicy,
    checkpoints_topic,
    is_heartbeats,
    is_internal,
    runs_topic,
    syncs_topic,
    would_circle,
)


def test_a_prefix_tells_where_a_topic_came_from() -> None:
    policy = PrefixPolicy()
    assert policy.remote("A", "orders") == "A.orders"
    assert (policy.source_of("B.A.orders"), policy.upstream("B.A.orders")) == ("B", "A.orders")
    assert (policy.source_of("orders"), policy.upstream("orders")) == (None, None)


@pytest.mark.parametrize(
    ("topic", "circles"),
    [("orders", False), ("B.orders", True), ("C.B.orders", True), ("C.orders", False)],
)
def test_a_topic_does_not_return_to_where_it_was(topic: str, circles: bool) -> None:
    assert would_circle(PrefixPolicy(), topic, "B") is circles


def test_names_stay_the_same_but_for_heartbeats() -> None:
    policy = IdentityPolicy()
    assert policy.remote("A", "orders") == "orders"
    assert policy.remote("A", "heartbeats") == "A.heartbeats"
    assert not would_circle(policy, "B.orders", "B")
    assert would_circle(policy, "B.heartbeats", "B")
    assert is_heartbeats(policy, "A.heartbeats") and not is_heartbeats(policy, "A.orders")


@pytest.mark.parametrize(
    "topic",
    [
        "__consumer_offsets",
        "connect-offsets.internal",
        "x-internal",
        checkpoints_topic("A", "."),
        syncs_topic("B", "."),
        runs_topic("A", "."),
    ],
)
def test_topics_of_the_machinery_are_never_copied(topic: str) -> None:
    assert is_internal(topic)


def test_topics_are_called_as_mirror_maker_calls_them() -> None:
    assert checkpoints_topic("A", ".") == "A.checkpoints.internal"
    assert syncs_topic("B", ".") == "mm2-offset-syncs.B.internal"
    assert runs_topic("A", ".") == "mm2-offset-runs.A.internal"
