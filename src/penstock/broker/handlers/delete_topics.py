"""DeleteTopics: by name, and from version 6 on also by id.

Which topic each entry means, and which entries contradict each other, is decided here; the
deletion is the controller's, and the files follow when the image says the topic is gone. Where
many are named, others have their turn in between.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.quotas.mutations import MutationPermits, permits
from penstock.broker.slices import TimeSlice
from penstock.cluster.image.image import ClusterImage
from penstock.errors import (
    ErrorCode,
    InvalidRequest,
    ProtocolError,
    TopicAuthorization,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from penstock.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from penstock.protocol.primitives import ZERO_UUID
from penstock.security.acls.rules import AclOperation, AclResourceType

if TYPE_CHECKING:
    from penstock.broker.security.access import RequestRights

_FIRST_VERSION_WITH_DISABLED_ERROR = 3
_FIRST_VERSION_WITH_QUOTA_ERROR = 5
_FIRST_VERSION_WITH_IDS = 6


async def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    _check_enabled(context)
    image, pace = context.broker.image, TimeSlice()
    entries = _entries(request, context.version)
    results = await resolve(entries, image, pace)
    if context.rights is not None:
        await _hide(results, {entry.topic_id for entry in request.topics}, context.rights, pace)
    allowed = permits(context, strict_from=_FIRST_VERSION_WITH_QUOTA_ERROR)
    for result in results:
        if not result.error_code:
            _ask_permit(result, image, allowed)
        await pace.breathe()
    names = [result.name for result in results if not result.error_code and result.name]
    controller = context.broker.acting_controller()
    outcomes = dict(zip(names, await controller.delete_topics(names), strict=True))
    for result in results:
        error = outcomes.get(result.name or "")
        if error is not None and not result.error_code:
            fail(result, error)
        await pace.breathe()
    return DeleteTopicsResponse(responses=results)


async def _hide(
    results: list[DeletableTopicResult],
    asked_ids: set[bytes],
    rights: "RequestRights",
    pace: TimeSlice,
) -> None:
    """Refuse what the client may not delete, and of what it may not see tell nothing else."""
    if rights.may(AclOperation.DELETE, AclResourceType.CLUSTER, quietly=True):
        return
    refused = TopicAuthorization("Topic authorization failed.")
    for result in results:
        await pace.breathe()
        name = result.name
        if name is None or result.error_code not in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            continue
        is_by_id = result.topic_id in asked_ids and result.topic_id != ZERO_UUID
        if not rights.may(AclOperation.DESCRIBE, AclResourceType.TOPIC, name):
            if is_by_id:
                result.name = None
            else:
                result.topic_id = ZERO_UUID
            fail(result, refused)
        elif not result.error_code and not rights.may(
            AclOperation.DELETE, AclResourceType.TOPIC, name
        ):
            if not is_by_id:
                result.topic_id = ZERO_UUID
            fail(result, refused)


def error_response(request: DeleteTopicsRequest, error: ProtocolError) -> DeleteTopicsResponse:
    """The same error for every entry."""
    entries = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    results = [_unanswered(entry) for entry in entries]
    for result in results:
        fail(result, error)
    return DeleteTopicsResponse(responses=results)


def _check_enabled(context: RequestContext) -> None:
    if context.broker.config.delete_topic_enable:
        return
    if context.version < _FIRST_VERSION_WITH_DISABLED_ERROR:
        raise InvalidRequest("Topic deletion is disabled.")
    raise TopicDeletionDisabled("Topic deletion is disabled.")


def _entries(request: DeleteTopicsRequest, version: int) -> Iterable[DeleteTopicState]:
    if version < _FIRST_VERSION_WITH_IDS:
        return (DeleteTopicState(name=name) for name in request.topic_names)
    return request.topics


def _unanswered(entry: DeleteTopicState) -> DeletableTopicResult:
    return DeletableTopicResult(name=entry.name, topic_id=entry.topic_id)


async def resolve(
    entries: Iterable[DeleteTopicState], image: ClusterImage, pace: TimeSlice
) -> list[DeletableTopicResult]:
    """A result for each topic asked for, with name and id filled in where it can be deleted.

    What is asked for twice gets one result, an error: the client means something it did not say.
    """
    counts: Counter[tuple[str | None, bytes]] = Counter()
    for entry in entries:
        counts[entry.name, entry.topic_id] += 1
        await pace.breathe()
    results = []
    for (name, topic_id), count in counts.items():
        result = DeletableTopicResult(name=name, topic_id=topic_id)
        try:
            _fill_in(result, image, count)
        except ProtocolError as error:
            fail(result, error)
        results.append(result)
        await pace.breathe()
    return await _without_same_topic(results, pace)


def _fill_in(result: DeletableTopicResult, image: ClusterImage, count: int) -> None:
    has_id = result.topic_id != ZERO_UUID
    if result.name is None and not has_id:
        raise InvalidRequest("Neither topic name nor id were specified.")
    if result.name is not None and has_id:
        raise InvalidRequest("You may not specify both topic name and topic id.")
    if count > 1:
        raise InvalidRequest(f"Duplicate topic {'id' if has_id else 'name'}.")
    if has_id:
        name = image.topic_names_by_id.get(result.topic_id)
        if name is None:
            raise UnknownTopicId("This server does not host this topic ID.")
        result.name = name
        return
    topic = image.topics.get(result.name or "")
    if topic is None:
        raise UnknownTopicOrPartition("This server does not host this topic-partition.")
    result.topic_id = topic.topic_id


def _ask_permit(
    result: DeletableTopicResult, image: ClusterImage, allowed: MutationPermits
) -> None:
    try:
        allowed.take(len(image.topics[result.name or ""].partitions))
    except ProtocolError as error:
        fail(result, error)


async def _without_same_topic(
    results: list[DeletableTopicResult], pace: TimeSlice
) -> list[DeletableTopicResult]:
    """One entry by name and one by id may turn out to be one topic: that is told once."""
    kept: list[DeletableTopicResult] = []
    found: dict[bytes, DeletableTopicResult] = {}
    for result in results:
        await pace.breathe()
        if result.error_code or found.setdefault(result.topic_id, result) is result:
            kept.append(result)
            continue
        twice = InvalidRequest("The provided topic name maps to an ID that was already supplied.")
        fail(found[result.topic_id], twice)
    return kept
