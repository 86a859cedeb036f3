"""AlterUserScramCredentials: set and remove the credentials of users; logins see them at once.

A password never comes here, only what is left of it after salting. Credentials lie beside the
quotas of the same user, so a change keeps those as they are.
"""

from collections.abc import Mapping, Sequence

from penstock.broker.config_resources import store_alteration
from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.security.scram_mechanisms import MECHANISM_NAMES
from penstock.cluster.image.image import ClusterImage
from penstock.cluster.znodes import sanitized
from penstock.errors import (
    DuplicateResource,
    ProtocolError,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
)
from penstock.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from penstock.security.sasl.scram import ScramCredential

Change = ScramCredentialDeletion | ScramCredentialUpsertion


async def handle(
    request: AlterUserScramCredentialsRequest, context: RequestContext
) -> AlterUserScramCredentialsResponse:
    by_user: dict[str, list[Change]] = {}
    for change in _changes(request):
        by_user.setdefault(change.name, []).append(change)
    return AlterUserScramCredentialsResponse(
        results=[
            fail(AlterUserScramCredentialsResult(user=user), await _outcome(user, changes, context))
            for user, changes in by_user.items()
        ]
    )


def error_response(
    request: AlterUserScramCredentialsRequest, error: ProtocolError
) -> AlterUserScramCredentialsResponse:
    """The same error for every user."""
    users = dict.fromkeys(change.name for change in _changes(request))
    return AlterUserScramCredentialsResponse(
        results=[fail(AlterUserScramCredentialsResult(user=user), error) for user in users]
    )


def _changes(request: AlterUserScramCredentialsRequest) -> list[Change]:
    return [*request.deletions, *request.upsertions]


async def _outcome(
    user: str, changes: Sequence[Change], context: RequestContext
) -> ProtocolError | None:
    """All changes of one user, or none; what is wrong with one user does not stop the others."""
    try:
        texts = _texts(user, changes, context.broker.acting_controller().image)
        await store_alteration(
            context.broker,
            ("users", sanitized(user)),
            lambda current: _altered(current, texts),
            validate_only=False,
        )
    except ProtocolError as error:
        return error
    return None


def _texts(user: str, changes: Sequence[Change], image: ClusterImage) -> dict[str, str | None]:
    """What is to be stored under each mechanism; None: nothing any more."""
    if not user:
        raise UnacceptableCredential("Username must not be empty")
    texts: dict[str, str | None] = {}
    for change in changes:
        mechanism = MECHANISM_NAMES.get(change.mechanism)
        if mechanism is None:
            raise UnsupportedSaslMechanism("Unknown SCRAM mechanism")
        if mechanism in texts:
            raise DuplicateResource("A user credential cannot be altered twice in the same request")
        texts[mechanism] = _text(mechanism, change)
        if texts[mechanism] is None and mechanism not in image.config("users", sanitized(user)):
            raise ResourceNotFound("Attempt to delete a user credential that does not exist")
    return texts


def _text(mechanism: str, change: Change) -> str | None:
    if isinstance(change, ScramCredentialDeletion):
        return None
    return ScramCredential.from_salted(
        mechanism,
        bytes(change.salted_password),
        salt=bytes(change.salt),
        iterations=change.iterations,
    ).text()


def _altered(current: Mapping[str, str], texts: Mapping[str, str | None]) -> dict[str, str]:
    kept = {name: value for name, value in current.items() if name not in texts}
    return kept | {name: text for name, text in texts.items() if text is not None}
