"""CreateDelegationToken: a secret that stands in for a user's credentials."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, blob, int16, int32, int64, string


class CreatableRenewers(Struct):
    """Who else may renew the token."""

    principal_type: str = string("0+")
    principal_name: str = string("0+")


class CreateDelegationTokenRequest(Request, api=ApiKey.CREATE_DELEGATION_TOKEN):
    """Whose token, who may renew it, how long it may live."""

    owner_principal_type: str | None = string("3+", nullable=True)
    owner_principal_name: str | None = string("3+", nullable=True)
    renewers: list[CreatableRenewers] = array(CreatableRenewers, "0+")
    max_lifetime_ms: int = int64("0+")


class CreateDelegationTokenResponse(Response, api=ApiKey.CREATE_DELEGATION_TOKEN):
    """The token and its secret."""

    error_code: int = int16("0+")
    principal_type: str = string("0+")
    principal_name: str = string("0+")
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64("0+")
    expiry_timestamp_ms: int = int64("0+")
    max_timestamp_ms: int = int64("0+")
    token_id: str = string("0+")
    hmac: bytes = blob("0+")
    throttle_time_ms: int = int32("0+")
