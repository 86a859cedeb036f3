"""SCRAM credentials of users (KIP-554). The password stays here: what leaves is salted."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from penstock.client.wire.cluster import ClusterClient
from penstock.errors import ErrorCode, error_for
from penstock.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from penstock.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from penstock.security.sasl.scram import ITERATIONS_MIN, salted_password

MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_NAMES = {number: name for name, number in MECHANISMS.items()}
_SALT_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class NewScramCredential:
    """What a user logs in with from now on."""

    mechanism: str
    password: str = field(repr=False)
    iterations: int = ITERATIONS_MIN


def describe_user_scram_credentials(
    cluster: ClusterClient, users: Collection[str] = ()
) -> dict[str, dict[str, int]]:
    """The iterations of each mechanism by user; of all users if none is named."""
    wanted = [UserName(name=user) for user in users]
    request = DescribeUserScramCredentialsRequest(users=wanted)
    answer = cluster.ask_any(request, DescribeUserScramCredentialsResponse)
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message or "")
    found: dict[str, dict[str, int]] = {}
    for result in answer.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        if result.error_code:
            raise error_for(result.error_code, result.error_message or "")
        found[result.user] = {
            _NAMES.get(info.mechanism, "UNKNOWN"): info.iterations
            for info in result.credential_infos
        }
    return found


def alter_user_scram_credentials(
    cluster: ClusterClient,
    user: str,
    *,
    set_to: Sequence[NewScramCredential] = (),
    delete: Collection[str] = (),
) -> None:
    """Set and remove credentials of one user."""
    upsertions = [_upsertion(user, credential) for credential in set_to]
    deletions = [ScramCredentialDeletion(name=user, mechanism=MECHANISMS[one]) for one in delete]
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    answer = cluster.ask_any(request, AlterUserScramCredentialsResponse)
    for result in answer.results:
        if result.error_code:
            raise error_for(result.error_code, result.error_message or "")


def _upsertion(user: str, credential: NewScramCredential) -> ScramCredentialUpsertion:
    salt = secrets.token_bytes(_SALT_BYTES)
    iterations = credential.iterations
    return ScramCredentialUpsertion(
        name=user,
        mechanism=MECHANISMS[credential.mechanism],
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(
            credential.mechanism, credential.password, salt, max(iterations, 1)
        ),
    )
