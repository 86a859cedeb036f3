"""OffsetFetch: how far groups have read.

One group until version 7, several since (KIP-709); topics by name until version 9, by id since.
Inside, every version is asked and answered as if it were one of the last.
"""

from collections.abc import Coroutine, Iterable
from inspect import iscoroutine
from typing import TYPE_CHECKING, Any

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import code_of
from penstock.broker.unawaited import close_all
from penstock.cluster.image.image import ClusterImage
from penstock.errors import ErrorCode, GroupAuthorization, ProtocolError
from penstock.groups.offsets.table import GroupOffsets
from penstock.groups.record_formats import CommittedOffset
from penstock.groups.shard import GroupShard
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from penstock.security.acls.rules import AclOperation, AclResourceType

if TYPE_CHECKING:
    from penstock.broker.security.access import RequestRights

_DESCRIBE, _TOPIC = AclOperation.DESCRIBE, AclResourceType.TOPIC
_ERROR_PER_GROUP_FROM = 2
_MANY_GROUPS_FROM = 8
_BY_ID_FROM = 10
_NO_OFFSET = -1

_GroupAnswer = OffsetFetchResponseGroup | Coroutine[Any, Any, OffsetFetchResponseGroup]


def handle(
    request: OffsetFetchRequest, context: RequestContext
) -> OffsetFetchResponse | Coroutine[Any, Any, OffsetFetchResponse]:
    asked = request.groups if context.version >= _MANY_GROUPS_FROM else [_as_group(request)]
    answers = [_answer(group, request.require_stable, context) for group in asked]
    if any(iscoroutine(answer) for answer in answers):
        return _later(answers, asked, context.version)
    return _response(
        [a for a in answers if isinstance(a, OffsetFetchResponseGroup)], context.version
    )


async def _later(
    answers: list[_GroupAnswer], asked: list[OffsetFetchRequestGroup], version: int
) -> OffsetFetchResponse:
    groups = []
    try:
        for answer, group in zip(answers, asked, strict=True):
            try:
                if not isinstance(answer, OffsetFetchResponseGroup):
                    answer = await answer
                groups.append(answer)
            except ProtocolError as error:
                groups.append(_failed(group, error))
    finally:
        close_all(answers)
    return _response(groups, version)


def _as_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = request.topics
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in topics
        ],
    )


def _answer(
    group: OffsetFetchRequestGroup, require_stable: bool, context: RequestContext
) -> _GroupAnswer:
    image, version, rights = context.broker.image, context.version, context.rights
    if rights is not None and not rights.may(
        AclOperation.DESCRIBE, AclResourceType.GROUP, group.group_id
    ):
        return _failed(group, GroupAuthorization("Group authorization failed."))

    def fetch(shard: GroupShard) -> OffsetFetchResponseGroup:
        shard.commits.check_fetch(group.group_id, group.member_id, group.member_epoch)
        reading = _Reading(
            shard.offsets,
            group.group_id,
            require_stable=require_stable,
            image=image,
            is_by_id=version >= _BY_ID_FROM and group.topics is not None,
        )
        if group.topics is None:
            topics = _everything(reading, image, version, rights)
        else:
            topics = [_topic(topic, reading, image, version, rights) for topic in group.topics]
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)

    try:
        return context.broker.groups.run(group.group_id, fetch)
    except ProtocolError as error:
        return _failed(group, error)


class _Reading:
    """The offsets of one group, as one request may see them."""

    def __init__(
        self,
        offsets: GroupOffsets,
        group_id: str,
        *,
        require_stable: bool,
        image: ClusterImage,
        is_by_id: bool,
    ) -> None:
        self._offsets = offsets
        self._group_id = group_id
        self._require_stable = require_stable
        self._image = image
        self._is_by_id = is_by_id

    def partition(self, topic: str, index: int) -> OffsetFetchResponsePartitions:
        if self._require_stable and self._offsets.is_pending(self._group_id, topic, index):
            return _nothing(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        found = self._offsets.get(self._group_id, topic, index)
        if found is None or self._is_of_a_predecessor(found, topic):
            return _nothing(index, ErrorCode.NONE)
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=found.offset,
            committed_leader_epoch=found.leader_epoch,
            metadata=found.metadata,
        )

    def _is_of_a_predecessor(self, found: CommittedOffset, topic: str) -> bool:
        """Whether the offset was committed for a topic that had this name before.

        Only who asks for a topic by its id means that one. A name stands for whatever has it, also
        where the offsets were moved here from another cluster, whose topics had other ids.
        """
        if not self._is_by_id:
            return False
        known = self._image.topics.get(topic)
        return known is not None and found.topic_id is not None and found.topic_id != known.topic_id

    def partitions_by_topic(self) -> dict[str, list[int]]:
        by_topic: dict[str, list[int]] = {}
        for topic, index in self._offsets.of_group(self._group_id):
            by_topic.setdefault(topic, []).append(index)
        return by_topic


def _nothing(index: int, error: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=_NO_OFFSET, metadata="", error_code=int(error)
    )


def _everything(
    reading: _Reading, image: ClusterImage, version: int, rights: "RequestRights | None"
) -> list[OffsetFetchResponseTopics]:
    topics = []
    for name, indexes in reading.partitions_by_topic().items():
        if rights is not None and not rights.visible(_DESCRIBE, _TOPIC, [name]):
            continue
        known = image.topics.get(name)
        if known is None and version >= _BY_ID_FROM:
            continue  # A topic that is gone has no id to be named by.
        topics.append(
            OffsetFetchResponseTopics(
                name=name,
                topic_id=bytes(16) if known is None else known.topic_id,
                partitions=[reading.partition(name, index) for index in indexes],
            )
        )
    return topics


def _topic(
    topic: OffsetFetchRequestTopics,
    reading: _Reading,
    image: ClusterImage,
    version: int,
    rights: "RequestRights | None",
) -> OffsetFetchResponseTopics:
    name: str | None = topic.name
    if version >= _BY_ID_FROM:
        name = image.topic_names_by_id.get(topic.topic_id)
    if name is not None and rights is not None and not rights.may(_DESCRIBE, _TOPIC, name):
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        found = [_nothing(index, refused) for index in topic.partition_indexes]
    elif name is None:
        found = [_nothing(index, ErrorCode.UNKNOWN_TOPIC_ID) for index in topic.partition_indexes]
    else:
        found = [reading.partition(name, index) for index in topic.partition_indexes]
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=found)


def _failed(group: OffsetFetchRequestGroup, error: ProtocolError) -> OffsetFetchResponseGroup:
    """The group's error, and for versions that cannot tell it the same on every partition."""
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[_nothing(index, error.code) for index in topic.partition_indexes],
            )
            for topic in group.topics or ()
        ],
        error_code=code_of(error),
    )


def error_response(request: OffsetFetchRequest, error: ProtocolError) -> OffsetFetchResponse:
    """The same error for every group, in whichever form the version has."""
    return OffsetFetchResponse(
        error_code=code_of(error),
        groups=[
            OffsetFetchResponseGroup(group_id=group.group_id, error_code=code_of(error))
            for group in request.groups
        ],
    )


def _response(groups: Iterable[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    answered = list(groups)
    if version >= _MANY_GROUPS_FROM:
        for group in answered:
            if group.error_code:
                group.topics = []
        return OffsetFetchResponse(groups=answered)
    (only,) = answered
    if only.error_code and version >= _ERROR_PER_GROUP_FROM:
        return OffsetFetchResponse(error_code=only.error_code)
    return OffsetFetchResponse(topics=[_old_topic(topic) for topic in only.topics])


def _old_topic(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            OffsetFetchResponsePartition(
                partition_index=found.partition_index,
                committed_offset=found.committed_offset,
                committed_leader_epoch=found.committed_leader_epoch,
                metadata=found.metadata,
                error_code=found.error_code,
            )
            for found in topic.partitions
        ],
    )
