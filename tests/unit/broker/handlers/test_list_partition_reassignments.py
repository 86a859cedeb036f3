"""ListPartitionReassignments, on a broker alone."""

from typing import Any

from penstock.errors import ErrorCode
from penstock.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
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


def test_a_broker_alone_has_nothing_on_the_move(served: Any) -> None:
    served.create("t")
    assert alter(served, moves={"t": {0: [7]}}) == {("t", 0): ErrorCode.NONE}
    for topics in (None, [ListPartitionReassignmentsTopics(name="t", partition_indexes=[0])]):
        response = served.ask(ListPartitionReassignmentsRequest(topics=topics), 0)
        assert response.error_code == ErrorCode.NONE
        assert response.topics == []
