"""Topics that bodies ask for."""

from typing import Any

import pytest

from penstock.client.operations.topics import NewTopic
from penstock.http.errors import HttpError
from penstock.rest.v3.links import Links
from penstock.rest.v3.topics import new_topic, planned_topic

LINKS = Links(base="http://here", cluster_id="c")


def test_a_body_says_what_it_does_not_leave_to_the_broker() -> None:
    assert new_topic({"topic_name": "t"}) == NewTopic(name="t")
    body = {
        "topic_name": "t",
        "replicas_assignments": [{"partition_id": 0, "broker_ids": [1, 2]}],
        "configs": [{"name": "a", "value": "1"}, {"name": "b"}],
    }
    assert new_topic(body) == NewTopic(
        name="t", assignments={0: [1, 2]}, configs={"a": "1", "b": ""}
    )


def test_a_topic_that_is_only_tried_is_told_as_it_would_be() -> None:
    placed = NewTopic(name="t", assignments={0: [1, 2], 1: [2, 3]})
    said = planned_topic(LINKS, placed)
    assert (said["partitions_count"], said["replication_factor"]) == (2, 2)
    left = planned_topic(LINKS, NewTopic(name="t"))
    assert (left["partitions_count"], left["replication_factor"]) == (0, 0)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"topic_name": 5},
        {"topic_name": "t", "partitions_count": "1"},
        {"topic_name": "t", "partitions_count": True},
        {"topic_name": "t", "partitions_count": 2**40},
        {"topic_name": "t", "configs": {"a": "b"}},
        {"topic_name": "t", "configs": [{"value": "1"}]},
        {"topic_name": "t", "configs": [{"name": "a", "value": 1}]},
        {"topic_name": "t", "replicas_assignments": [{"partition_id": 0}]},
        {"topic_name": "t", "replicas_assignments": [{"partition_id": 0, "broker_ids": ["1"]}]},
    ],
)
def test_what_makes_no_sense_is_a_bad_request(body: dict[str, Any]) -> None:
    with pytest.raises(HttpError) as refused:
        new_topic(body)
    assert refused.value.answer_status == 400
