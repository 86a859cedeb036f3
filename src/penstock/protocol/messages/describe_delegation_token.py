"""DescribeDelegationToken: tokens by owner."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, blob, int16, int32, int64, string


class DescribeDelegationTokenOwner(Struct):
    """An owner to look for."""

    principal_type: str = string("0+")
    principal_name: str = string("0+")


class DescribeDelegationTokenRequest(Request, api=ApiKey.DESCRIBE_DELEGATION_TOKEN):
    """Owners to look for; null asks for all."""

    owners: list[DescribeDelegationTokenOwner] | None = array(
        DescribeDelegationTokenOwner, "0+", nullable=True
    )


class DescribedDelegationTokenRenewer(Struct):
    """Who may renew the token."""

    principal_type: str = string("0+")
    principal_name: str = string("0+")


class DescribedDelegationToken(Struct):
    """A token, its times and its secret."""

    principal_type: str = string("0+")
    principal_name: str = string("0+")
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp: int = int64("0+")
    expiry_timestamp: int = int64("0+")
    max_timestamp: int = int64("0+")
    token_id: str = string("0+")
    hmac: bytes = blob("0+")
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer, "0+")


class DescribeDelegationTokenResponse(Response, api=ApiKey.DESCRIBE_DELEGATION_TOKEN):
    """The tokens that the asker may see."""

    error_code: int = int16("0+")
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken, "0+")
    throttle_time_ms: int = int32("0+")
