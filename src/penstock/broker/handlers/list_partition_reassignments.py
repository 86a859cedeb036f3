"""ListPartitionReassignments: the moves under way."""

from collections.abc import Mapping

from penstock.broker.context import RequestContext
from penstock.cluster.image.image import PartitionImage, PartitionKey
from penstock.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(
    request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    under_way = context.broker.acting_controller().reassignments()
    by_topic: dict[str, list[OngoingPartitionReassignment]] = {}
    for (topic, number), partition in sorted(_asked(request, under_way).items()):
        by_topic.setdefault(topic, []).append(_ongoing(number, partition))
    return ListPartitionReassignmentsResponse(
        topics=[
            OngoingTopicReassignment(name=name, partitions=partitions)
            for name, partitions in by_topic.items()
        ]
    )


def _asked(
    request: ListPartitionReassignmentsRequest, under_way: Mapping[PartitionKey, PartitionImage]
) -> Mapping[PartitionKey, PartitionImage]:
    if request.topics is None:
        return under_way
    asked = {(topic.name, n) for topic in request.topics for n in topic.partition_indexes}
    return {key: partition for key, partition in under_way.items() if key in asked}


def _ongoing(number: int, partition: PartitionImage) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=number,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding),
        removing_replicas=list(partition.removing),
    )
