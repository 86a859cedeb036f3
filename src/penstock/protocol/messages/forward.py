"""Forward, between brokers: a client's request to the controller, passed on by another broker."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import blob, int16, int32, int64, string


class ForwardRequest(Request, api=ApiKey.FORWARD):
    """The request without its header, and who sent it where."""

    inner_key: int = int16("0+")
    inner_version: int = int16("0+")
    principal: str = string("0+")
    client_id: str | None = string("0+", nullable=True)
    client_host: str = string("0+")
    listener: str = string("0+")
    body: bytes = blob("0+")


class ForwardResponse(Response, api=ApiKey.FORWARD):
    """The answer without its header, and the change of the image that it rests on."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    controller_epoch: int = int32("0+", default=-1)
    seq: int = int64("0+", default=-1)
    body: bytes = blob("0+")
