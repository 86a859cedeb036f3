"""BrokerShutdown, between brokers: one that is about to leave asks for its work to be moved."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import int16, int32, int64


class BrokerShutdownRequest(Request, api=ApiKey.BROKER_SHUTDOWN):
    """Which incarnation of which broker leaves."""

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+")


class BrokerShutdownResponse(Response, api=ApiKey.BROKER_SHUTDOWN):
    """Sent when the others know; `remaining` have other replicas, and none that could lead."""

    error_code: int = int16("0+")
    remaining: int = int32("0+")
