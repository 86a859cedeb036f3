"""PartitionsChanged, told by leaders to the controller: in-sync sets to read again.

What is in them is not told: the store has it. So a notice that is late, or of a leader that was
replaced meanwhile, can do no harm. Replicas whose disk failed are told of here, too: others lead.
"""

from collections.abc import Sequence

from penstock.broker.context import RequestContext
from penstock.cluster.image.image import PartitionKey
from penstock.protocol.messages.partitions_changed import (
    ChangedTopic,
    PartitionsChangedRequest,
    PartitionsChangedResponse,
)


async def handle(
    request: PartitionsChangedRequest, context: RequestContext
) -> PartitionsChangedResponse:
    controller = context.broker.acting_controller()
    if request.topics:
        await controller.refresh_partitions(_keys(request.topics))
    if request.offline:
        await controller.remove_lost_replicas(
            request.broker_id, request.broker_epoch, _keys(request.offline)
        )
    return PartitionsChangedResponse()


def _keys(topics: Sequence[ChangedTopic]) -> list[PartitionKey]:
    return sorted({(topic.name, number) for topic in topics for number in topic.partitions})
