"""UnregisterBroker: a broker that will not come back."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import int16, int32, string


class UnregisterBrokerRequest(Request, api=ApiKey.UNREGISTER_BROKER):
    """The broker to forget."""

    broker_id: int = int32("0+")


class UnregisterBrokerResponse(Response, api=ApiKey.UNREGISTER_BROKER):
    """Whether it is forgotten."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
