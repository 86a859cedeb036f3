"""DescribeUserScramCredentials: which users have SCRAM passwords."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int8, int16, int32, string


class UserName(Struct):
    """A user to look for."""

    name: str = string("0+")


class DescribeUserScramCredentialsRequest(Request, api=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS):
    """Users to look for; null asks for all."""

    users: list[UserName] | None = array(UserName, "0+", nullable=True)


class CredentialInfo(Struct):
    """A mechanism and its iteration count; never the secret."""

    mechanism: int = int8("0+")
    iterations: int = int32("0+")


class DescribeUserScramCredentialsResult(Struct):
    """The credentials of one user."""

    user: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    credential_infos: list[CredentialInfo] = array(CredentialInfo, "0+")


class DescribeUserScramCredentialsResponse(Response, api=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS):
    """One result per user."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    results: list[DescribeUserScramCredentialsResult] = array(
        DescribeUserScramCredentialsResult, "0+"
    )
