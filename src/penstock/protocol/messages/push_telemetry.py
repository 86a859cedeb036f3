"""PushTelemetry: a client's metrics (KIP-714)."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import blob, boolean, int8, int16, int32, uuid


class PushTelemetryRequest(Request, api=ApiKey.PUSH_TELEMETRY):
    """Metrics in OTLP form, maybe the last before the client ends."""

    client_instance_id: bytes = uuid("0+")
    subscription_id: int = int32("0+")
    terminating: bool = boolean("0+")
    compression_type: int = int8("0+")
    metrics: bytes = blob("0+")


class PushTelemetryResponse(Response, api=ApiKey.PUSH_TELEMETRY):
    """Whether they were taken."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
