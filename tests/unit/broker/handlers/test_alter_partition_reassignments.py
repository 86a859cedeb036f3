"""AlterPartitionReassignments, on a broker alone."""

from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)


def alter(served: Any, version: int = 1, **kwargs: Any) -> dict[tuple[str, int], int]:
    moves: dict[str, dict[int, list[int] | None]] = kwargs.pop("moves")
    request = AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name=name,
                partitions=[
                    ReassignablePartition(partition_index=number, replicas=replicas)
                    for number, replicas in partitions.items()
                ],
            )
            for name, partitions in moves.items()
        ],
        **kwargs,
    )
    response = served.ask(request, version)
    assert response.error_code == ErrorCode.NONE
    return {
        (topic.name, result.partition_index): result.error_code
        for topic in response.responses
        for result in topic.partitions
    }


@pytest.mark.parametrize("version", [0, 1])
def test_each_move_has_its_own_outcome(served: Any, version: int) -> None:
    served.create("t", 3)
    outcomes = alter(
        served, version, moves={"t": {0: [7], 1: [5], 2: None, 9: [7]}, "none": {0: [7]}}
    )
    assert outcomes == {
        ("t", 0): ErrorCode.NONE,
        ("t", 1): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ("t", 2): ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


@pytest.mark.parametrize("replicas", [[], [7, 7]])
def test_a_list_that_names_nobody_or_somebody_twice_is_refused(
    served: Any, replicas: list[int]
) -> None:
    served.create("t")
    outcomes = alter(served, moves={"t": {0: replicas}})
    assert outcomes == {("t", 0): ErrorCode.INVALID_REPLICA_ASSIGNMENT}


def test_a_client_may_insist_on_the_number_of_replicas(served: Any) -> None:
    served.create("t")
    outcomes = alter(served, moves={"t": {0: [7, 8]}}, allow_replication_factor_change=False)
    assert outcomes == {("t", 0): ErrorCode.INVALID_REPLICATION_FACTOR}
    assert alter(served, moves={"t": {0: [7]}}, allow_replication_factor_change=False) == {
        ("t", 0): ErrorCode.NONE
    }


def test_a_move_to_the_same_broker_is_an_epoch_of_its_own_and_loses_nothing(served: Any) -> None:
    served.create("t")
    served.append("t", 1, 2)
    alter(served, moves={"t": {0: [7]}})
    served.append("t", 3)
    partition = served.partition("t")
    assert (partition.state.leader_epoch, partition.log.log_end_offset) == (1, 3)
