"""ExpireDelegationToken: a shorter life for a token."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import blob, int16, int32, int64


class ExpireDelegationTokenRequest(Request, api=ApiKey.EXPIRE_DELEGATION_TOKEN):
    """The token's secret and when it shall end; a negative period means now."""

    hmac: bytes = blob("0+")
    expiry_time_period_ms: int = int64("0+")


class ExpireDelegationTokenResponse(Response, api=ApiKey.EXPIRE_DELEGATION_TOKEN):
    """When it expires now."""

    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")
