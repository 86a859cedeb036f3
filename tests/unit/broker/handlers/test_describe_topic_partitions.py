"""DescribeTopicPartitions: pages that together hold every partition once."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.handlers.describe_topic_partitions import one_page
from penstock.broker.visible import TOPIC_OPERATIONS
from penstock.cluster.image.image import ClusterImage, PartitionImage, PartitionState, TopicImage
from penstock.errors import ErrorCode
from penstock.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)


def ask(*names: str, limit: int = 2000, cursor: Cursor | None = None) -> Any:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor,
    )


def shape(response: Any) -> list[tuple[str, list[int]]]:
    return [
        (topic.name, [partition.partition_index for partition in topic.partitions])
        for topic in response.topics
    ]


def test_a_topic_is_told_with_all_its_replicas(served: Any) -> None:
    served.create("orders", partitions=2)
    response = served.ask(ask("orders"), 0)
    (topic,) = response.topics
    assert (topic.error_code, topic.topic_id) == (0, served.partition("orders").topic_id)
    assert topic.topic_authorized_operations == TOPIC_OPERATIONS
    first = topic.partitions[0]
    assert (first.leader_id, first.leader_epoch, first.replica_nodes) == (7, 0, [7])
    assert (first.eligible_leader_replicas, first.last_known_elr) == ([], [])
    assert response.next_cursor is None


def test_without_names_all_topics_are_told_in_the_order_of_their_names(served: Any) -> None:
    for name in ("b", "c", "a"):
        served.create(name)
    assert [topic.name for topic in served.ask(ask(), 0).topics] == ["a", "b", "c"]


def test_a_page_ends_at_its_limit_and_the_cursor_goes_on(served: Any) -> None:
    served.create("a", partitions=3)
    served.create("b", partitions=2)
    first = served.ask(ask("a", "b", limit=2), 0)
    assert shape(first) == [("a", [0, 1])]
    second = served.ask(ask("a", "b", limit=2, cursor=first.next_cursor), 0)
    assert shape(second) == [("a", [2]), ("b", [0])]
    third = served.ask(ask("a", "b", limit=2, cursor=second.next_cursor), 0)
    assert (shape(third), third.next_cursor) == ([("b", [1])], None)


def test_the_broker_bounds_the_page_whatever_is_asked(serve: Callable[..., Any]) -> None:
    served = serve({"max.request.partition.size.limit": "2"})
    served.create("a", partitions=3)
    assert shape(served.ask(ask("a", limit=1000), 0)) == [("a", [0, 1])]


def test_a_page_without_room_still_moves_on(served: Any) -> None:
    served.create("a", partitions=2)
    assert shape(served.ask(ask("a", limit=-5), 0)) == [("a", [0])]


def test_unknown_and_impossible_topics_say_why(served: Any) -> None:
    response = served.ask(ask("absent", "not/legal"), 0)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("not/legal", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


def test_a_cursor_outside_the_topics_asked_for_is_refused(served: Any) -> None:
    served.create("a")
    response = served.ask(ask("a", cursor=Cursor(topic_name="z", partition_index=0)), 0)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]


def test_a_cursor_at_a_negative_partition_is_refused(served: Any) -> None:
    served.create("a")
    response = served.ask(ask("a", cursor=Cursor(topic_name="a", partition_index=-1)), 0)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]


def test_a_cursor_at_a_topic_that_was_deleted_meanwhile_goes_on_after_it(served: Any) -> None:
    served.create("a")
    served.create("c")
    response = served.ask(ask(cursor=Cursor(topic_name="b", partition_index=4)), 0)
    assert shape(response) == [("c", [0])]


@given(
    st.dictionaries(st.sampled_from("abcdefg"), st.integers(1, 7)),
    st.integers(1, 9),
)
def test_the_pages_together_hold_every_partition_once_in_order(
    topics: dict[str, int], limit: int
) -> None:
    state = PartitionState(leader=0, leader_epoch=0, isr=(0,), min_isr=1)
    image = ClusterImage(
        cluster_id="c",
        topics={
            name: TopicImage(
                name=name,
                topic_id=bytes(16),
                partitions={i: PartitionImage(replicas=(0,), state=state) for i in range(count)},
            )
            for name, count in topics.items()
        },
    )
    seen: list[tuple[str, int]] = []
    cursor: Cursor | None = None
    while True:
        page = one_page(ask(cursor=cursor), image, {}, partitions_max=limit)
        told = [(name, index) for name, indexes in shape(page) for index in indexes]
        assert len(told) <= limit
        seen += told
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [(name, index) for name in sorted(topics) for index in range(topics[name])]
