"""ImageFetch, between brokers: the cluster's metadata, pulled from the controller in order."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import blob, boolean, int16, int32, int64


class ImageFetchRequest(Request, api=ApiKey.IMAGE_FETCH):
    """What the broker has: the image after change `seq` of a controller epoch; -1 is nothing."""

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+")
    controller_epoch: int = int32("0+", default=-1)
    seq: int = int64("0+", default=-1)
    max_wait_ms: int = int32("0+")


class ImageFetchResponse(Response, api=ApiKey.IMAGE_FETCH):
    """What leads to the image after change `seq`: all of it, or the changes since the request's."""

    error_code: int = int16("0+")
    controller_epoch: int = int32("0+", default=-1)
    seq: int = int64("0+", default=-1)
    is_snapshot: bool = boolean("0+")
    payload: bytes = blob("0+")
