"""DescribeUserScramCredentials: who has credentials, by which mechanism; never the secret."""

from collections import Counter

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.security.scram_mechanisms import MECHANISM_NUMBERS
from penstock.cluster.image.image import ClusterImage
from penstock.cluster.znodes import DEFAULT_ENTITY, desanitized, sanitized, user_of
from penstock.errors import ConfigError, DuplicateResource, ResourceNotFound
from penstock.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from penstock.security.sasl.scram import ScramCredential


def handle(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    image = context.broker.image
    counts = Counter(user.name for user in request.users or ())
    if not counts:
        counts = Counter(_users(image))
    return DescribeUserScramCredentialsResponse(
        error_message="", results=[_result(user, count, image) for user, count in counts.items()]
    )


def _users(image: ClusterImage) -> list[str]:
    """Everybody with a credential."""
    return [
        desanitized(name)
        for kind, name in image.configs
        if kind == "users"
        and name != DEFAULT_ENTITY
        and user_of(kind, name) is None
        and not MECHANISM_NUMBERS.keys().isdisjoint(image.config(kind, name))
    ]


def _result(user: str, count: int, image: ClusterImage) -> DescribeUserScramCredentialsResult:
    result = DescribeUserScramCredentialsResult(user=user)
    if count > 1:
        return fail(
            result,
            DuplicateResource(
                "Cannot describe SCRAM credentials for the same user twice in a single request: "
                f"{user}"
            ),
        )
    result.credential_infos = _credentials(user, image)
    if not result.credential_infos:
        return fail(
            result,
            ResourceNotFound(f"Attempt to describe a user credential that does not exist: {user}"),
        )
    return result


def _credentials(user: str, image: ClusterImage) -> list[CredentialInfo]:
    stored = image.config("users", sanitized(user))
    found: list[CredentialInfo] = []
    for name, number in MECHANISM_NUMBERS.items():
        try:
            iterations = ScramCredential.from_text(stored.get(name, "")).iterations
        except ConfigError:
            continue  # There is none, or it is of no use to anybody.
        found.append(CredentialInfo(mechanism=number, iterations=iterations))
    return found
