"""SaslAuthenticate: one step of a SASL exchange."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import blob, int16, int64, string


class SaslAuthenticateRequest(Request, api=ApiKey.SASL_AUTHENTICATE):
    """The client's token."""

    auth_bytes: bytes = blob("0+")


class SaslAuthenticateResponse(Response, api=ApiKey.SASL_AUTHENTICATE):
    """The broker's token, and how long the session may last (KIP-368)."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    auth_bytes: bytes = blob("0+")
    session_lifetime_ms: int = int64("1+", ignorable=True)
