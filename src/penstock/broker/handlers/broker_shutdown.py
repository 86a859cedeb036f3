"""BrokerShutdown, asked by a broker that is about to leave.

The answer comes when others lead what it led, as far as they can, and know of it: the broker may
go without a client being sent to a leader that is not there.
"""

import logging

from penstock.broker.context import RequestContext
from penstock.protocol.messages.broker_shutdown import (
    BrokerShutdownRequest,
    BrokerShutdownResponse,
)

_SEEN_S = 5.0  # A broker that does not pull for so long is about to be missed itself.

_log = logging.getLogger("penstock.cluster.controller")


async def handle(request: BrokerShutdownRequest, context: RequestContext) -> BrokerShutdownResponse:
    controller = context.broker.acting_controller()
    remaining = await controller.begin_shutdown(request.broker_id, request.broker_epoch)
    # The controller's own broker has every image at once.
    others = controller.image.active_brokers() - {context.broker.broker_id}
    seq = controller.image.seq
    if not await controller.stream.until_seen(seq, others, _SEEN_S):
        _log.warning(
            "Broker %d leaves, and not all brokers have heard of it within %g s",
            request.broker_id,
            _SEEN_S,
        )
    return BrokerShutdownResponse(remaining=remaining)
