"""ImageFetch, asked by brokers of the controller: what is new in the cluster's metadata."""

from penstock.broker.context import RequestContext
from penstock.protocol.messages.image_fetch import ImageFetchRequest, ImageFetchResponse

_WAIT_MS_MAX = 30_000


async def handle(request: ImageFetchRequest, context: RequestContext) -> ImageFetchResponse:
    broker = context.broker
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
