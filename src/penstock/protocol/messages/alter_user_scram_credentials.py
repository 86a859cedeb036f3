"""AlterUserScramCredentials: set and remove SCRAM passwords."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, blob, int8, int16, int32, string


class ScramCredentialDeletion(Struct):
    """A credential to remove."""

    name: str = string("0+")
    mechanism: int = int8("0+")


class ScramCredentialUpsertion(Struct):
    """A credential to set, already salted by the client."""

    name: str = string("0+")
    mechanism: int = int8("0+")
    iterations: int = int32("0+")
    salt: bytes = blob("0+")
    salted_password: bytes = blob("0+")


class AlterUserScramCredentialsRequest(Request, api=ApiKey.ALTER_USER_SCRAM_CREDENTIALS):
    """Credentials to remove and to set."""

    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion, "0+")
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion, "0+")


class AlterUserScramCredentialsResult(Struct):
    """Whether one user was changed."""

    user: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)


class AlterUserScramCredentialsResponse(Response, api=ApiKey.ALTER_USER_SCRAM_CREDENTIALS):
    """One result per user."""

    throttle_time_ms: int = int32("0+")
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult, "0+")
