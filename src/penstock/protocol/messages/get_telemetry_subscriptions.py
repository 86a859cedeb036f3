"""GetTelemetrySubscriptions: which metrics the cluster wants from a client (KIP-714)."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import array, boolean, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Request, api=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS):
    """The client instance; a zero id asks for a new one."""

    client_instance_id: bytes = uuid("0+")


class GetTelemetrySubscriptionsResponse(Response, api=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS):
    """What to push, how often, and how compressed."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    client_instance_id: bytes = uuid("0+")
    subscription_id: int = int32("0+")
    accepted_compression_types: list[int] = array(int8, "0+")
    push_interval_ms: int = int32("0+")
    telemetry_max_bytes: int = int32("0+")
    delta_temporality: bool = boolean("0+")
    requested_metrics: list[str] = array(string, "0+")
