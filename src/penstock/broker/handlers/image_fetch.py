"""ImageFetch, asked by brokers of the controller: what is new in the cluster's metadata."""

from collections.abc import Coroutine
from functools import partial
from typing import Any

from penstock.broker.context import Broker, RequestContext
from penstock.protocol.messages.image_fetch import ImageFetchRequest, ImageFetchResponse

_WAIT_MS_MAX = 30_000


def handle(
    request: ImageFetchRequest, context: RequestContext
) -> Coroutine[Any, Any, ImageFetchResponse]:
    member = context.broker.member
    if member is not None:
        # A broker whose connection breaks may be dead: the controller looks into it at once.
        tell = partial(member.on_pull_lost, request.broker_id, request.broker_epoch)
        context.session.at_close("image pull", tell)
    return _wait_for_news(request, context.broker)


async def _wait_for_news(request: ImageFetchRequest, broker: Broker) -> ImageFetchResponse:
    wait_ms = 0 if broker.is_stopping else max(0, min(request.max_wait_ms, _WAIT_MS_MAX))
    news = await broker.acting_controller().stream.news(
        request.broker_id,
        request.broker_epoch,
        request.controller_epoch,
        request.seq,
        wait_ms / 1000,
    )
    return ImageFetchResponse(
        controller_epoch=news.controller_epoch,
        seq=news.seq,
        is_snapshot=news.is_snapshot,
        payload=news.payload,
    )
