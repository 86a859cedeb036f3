"""DescribeUserScramCredentials: this broker keeps none, so nobody has any.

To ask for all users gives an empty list, as from an Apache Kafka in which nobody set a password.
"""

from collections import Counter

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.errors import DuplicateResource, ProtocolError, ResourceNotFound
from penstock.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def handle(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    counts = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        error_message="",
        results=[_result(user, _refusal(user, count)) for user, count in counts.items()],
    )


def _refusal(user: str, count: int) -> ProtocolError:
    if count > 1:
        return DuplicateResource(
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        )
    return ResourceNotFound(f"Attempt to describe a user credential that does not exist: {user}")


def _result(user: str, error: ProtocolError) -> DescribeUserScramCredentialsResult:
    return fail(DescribeUserScramCredentialsResult(user=user), error)
