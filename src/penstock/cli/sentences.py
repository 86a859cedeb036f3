"""Errors as sentences: the wire brings only their numbers, and a tool has its own opening.

Scripts look for some of these in the output, so they are worded as Kafka's tools word them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.errors import CommandError, ErrorCode, PenstockError, ProtocolError

_SENTENCES = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is still loading.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.INVALID_GROUP_ID: "The group id is not valid.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has active members.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Deleting offsets of a topic is forbidden while the "
    "consumer group is actively subscribed to it.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation Token feature is not enabled.",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "Delegation Token is not found on server.",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "Specified Principal is not valid Owner/Renewer.",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "Delegation Token requests are not allowed on "
    "PLAINTEXT/1-way SSL channels and on delegation token authenticated channels.",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "Delegation Token is expired.",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "Supplied principalType is not supported.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "The transactional id does not exist.",
    ErrorCode.INVALID_PRODUCER_EPOCH: "The producer has a newer epoch by now.",
    ErrorCode.INVALID_TXN_STATE: "There is no transaction of this producer to end.",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "A newer coordinator looks after this transaction.",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "The regular expression is not valid.",
}


def sentence(error: PenstockError) -> str:
    """The error's own message, or words for its code where the broker sent none."""
    text = str(error)
    if isinstance(error, ProtocolError) and text == error.code.name:
        return _SENTENCES.get(error.code, f"The broker answered {text}.")
    return text


@contextmanager
def told_after(
    opening: str,
    *,
    errors: type[PenstockError] | tuple[type[PenstockError], ...] = PenstockError,
    words: Callable[[PenstockError], str] = sentence,
) -> Iterator[None]:
    """End the tool with what went wrong inside, told after the tool's own opening words."""
    try:
        yield
    except errors as error:
        raise CommandError(f"{opening}{words(error)}") from error
