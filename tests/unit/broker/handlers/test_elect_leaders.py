"""ElectLeaders: which partitions are told of, in which version how."""

from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

VERSIONS = (0, 1, 2)


def results(response: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.topic, result.partition_id): result.error_code
        for topic in response.replica_election_results
        for result in topic.partition_result
    }


def asked(*partitions: tuple[str, list[int]]) -> list[TopicPartitions]:
    return [TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in partitions]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_partition_asked_for_is_told_of(served: Any, version: int) -> None:
    served.create("t", 2)
    request = ElectLeadersRequest(topic_partitions=asked(("t", [0, 1, 7, 0]), ("none", [0])))
    assert results(served.ask(request, version)) == {
        ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("t", 1): ErrorCode.ELECTION_NOT_NEEDED,
        ("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_of_all_partitions_only_those_that_needed_an_election_are_told(served: Any) -> None:
    served.create("t", 2)
    response = served.ask(ElectLeadersRequest(topic_partitions=None), 2)
    assert response.error_code == ErrorCode.NONE
    assert results(response) == {}


def test_an_unclean_election_is_not_needed_where_somebody_leads(served: Any) -> None:
    served.create("t")
    request = ElectLeadersRequest(election_type=1, topic_partitions=asked(("t", [0])))
    assert results(served.ask(request, 1)) == {("t", 0): ErrorCode.ELECTION_NOT_NEEDED}


def test_an_unknown_kind_of_election_is_refused(served: Any) -> None:
    request = ElectLeadersRequest(election_type=2, topic_partitions=asked(("t", [0])))
    response = served.ask(request, 2)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert results(response) == {("t", 0): ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("version", VERSIONS)
def test_who_is_not_the_controller_says_so(served: Any, version: int) -> None:
    controller, served.broker.controller = served.broker.controller, None
    try:
        request = ElectLeadersRequest(topic_partitions=asked(("t", [0])))
        response = served.ask(request, version)
    finally:
        served.broker.controller = controller
    assert results(response) == {("t", 0): ErrorCode.NOT_CONTROLLER}
    assert response.error_code == (ErrorCode.NOT_CONTROLLER if version else ErrorCode.NONE)
