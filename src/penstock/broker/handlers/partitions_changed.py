"""PartitionsChanged, told by leaders to the controller: in-sync sets to read again.

What is in them is not told: the store has it. So a notice that is late, or of a leader that was
replaced meanwhile, can do no harm.
"""

from penstock.broker.context import RequestContext
from penstock.protocol.messages.partitions_changed import (
    PartitionsChangedRequest,
    PartitionsChangedResponse,
)


async def handle(
    request: PartitionsChangedRequest, context: RequestContext
) -> PartitionsChangedResponse:
    keys = {(topic.name, number) for topic in request.topics for number in topic.partitions}
    await context.broker.acting_controller().refresh_partitions(sorted(keys))
    return PartitionsChangedResponse()
