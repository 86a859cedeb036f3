"""The guards of what tells of topics and the cluster: what is hidden is not even known to exist.

All topics are filtered; those asked for by name are refused alike whether they exist or not, and
those asked for by id lose their names. Making topics by asking for them needs a right of its own.
"""

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from penstock.broker.security.guard_parts import (
    CLUSTER,
    TOPIC,
    TOPICS,
    GuardedRequest,
    refusal,
    split_items,
    then,
    with_items,
)
from penstock.errors import ErrorCode
from penstock.security.acls.rules import AclOperation as Op


def guard_metadata(ask: GuardedRequest) -> Any:
    request = ask.request
    wants_all = request.topics is None or (ask.context.version == 0 and not request.topics)
    if wants_all:
        return then(ask.proceed(), lambda response: _add_bits(ask, _only_visible(ask, response)))
    by_name = [topic for topic in request.topics if topic.name is not None]
    refused = [topic for topic in by_name if not ask.rights.may(Op.DESCRIBE, TOPIC, topic.name)]
    hidden = {topic.name for topic in refused}
    uncreatable = {topic.name for topic in by_name if topic.name not in hidden} & _not_to_be_made(
        ask, [topic.name for topic in by_name if topic.name not in hidden]
    )
    kept = [topic for topic in request.topics if topic.name not in hidden | uncreatable]
    asked = with_items(request, "topics", kept)
    if not kept and ask.context.version == 0:
        asked.topics = [_nobody(request)]  # An empty list would ask for all of them.

    def finish(response: Any) -> Any:
        if not kept:
            response.topics = []
        _hide_by_id(ask, response)
        response.topics += _refused_topics(request, hidden, uncreatable)
        return _add_bits(ask, response)

    return then(ask.handle(asked, ask.context), finish)


def _nobody(request: Any) -> Any:
    topic = copy.copy(request.topics[0])
    topic.name = ""
    return topic


def _not_to_be_made(ask: GuardedRequest, names: Iterable[str]) -> set[str]:
    """Topics that asking would make, by somebody who may not make them."""
    config, topics = ask.context.broker.config, ask.context.broker.image.topics
    if not (ask.request.allow_auto_topic_creation and config.auto_create_topics_enable):
        return set()
    missing = [name for name in names if name not in topics]
    if not missing or ask.rights.may(Op.CREATE, CLUSTER, quietly=True):
        return set()
    return {name for name in missing if not ask.rights.may(Op.CREATE, TOPIC, name)}


def _refused_topics(request: Any, hidden: set[str], uncreatable: set[str]) -> list[Any]:
    from penstock.cluster.topics.names import INTERNAL_TOPICS
    from penstock.protocol.messages.metadata import MetadataResponseTopic

    code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return [
        MetadataResponseTopic(
            error_code=code, name=name, is_internal=name in uncreatable and name in INTERNAL_TOPICS
        )
        for name in dict.fromkeys(topic.name for topic in request.topics)
        if name in hidden or name in uncreatable
    ]


def _hide_by_id(ask: GuardedRequest, response: Any) -> None:
    """A topic asked for by its id keeps the id, and loses its name."""
    ids = {topic.topic_id for topic in ask.request.topics if topic.name is None}
    if not ids:
        return
    for topic in response.topics:
        if topic.topic_id not in ids or topic.name is None:
            continue
        if not ask.rights.may(Op.DESCRIBE, TOPIC, topic.name):
            topic.error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            topic.name, topic.is_internal, topic.partitions = None, False, []


def _only_visible(ask: GuardedRequest, response: Any) -> Any:
    names = ask.rights.visible(Op.DESCRIBE, TOPIC, (topic.name for topic in response.topics))
    visible = set(names)
    response.topics = [topic for topic in response.topics if topic.name in visible]
    return response


def _add_bits(ask: GuardedRequest, response: Any) -> Any:
    request, rights = ask.request, ask.rights
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = _cluster_bits(ask)
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if not topic.error_code and topic.name is not None:
                bits = rights.authorized_operations(TOPIC, topic.name)
                topic.topic_authorized_operations = bits
            elif topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                topic.topic_authorized_operations = _NO_BITS
    return response


_NO_BITS: Final = -(1 << 31)  # The client did not ask, or must not know.


def _cluster_bits(ask: GuardedRequest) -> int:
    if not ask.rights.may(Op.DESCRIBE, CLUSTER, quietly=True):
        return 0
    return ask.rights.authorized_operations(CLUSTER)


def guard_describe_cluster(ask: GuardedRequest) -> Any:
    response = ask.proceed()
    if ask.request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = _cluster_bits(ask)
    return response


def guard_describe_topic_partitions(ask: GuardedRequest) -> Any:
    request, context = ask.request, ask.context
    refused: list[Any] = []
    if request.topics:
        allowed, refused = split_items(ask, TOPICS, Op.DESCRIBE, TOPIC)
        if not allowed:
            return ask.refuse(with_items(request, "topics", refused), refusal(TOPIC))
        asked = with_items(request, "topics", allowed)
        if request.cursor is not None and request.cursor.topic_name in {t.name for t in refused}:
            asked.cursor = None
        response = ask.handle(asked, context)
    else:
        from penstock.broker.handlers import describe_topic_partitions

        image = context.broker.image
        names = ask.rights.visible(Op.DESCRIBE, TOPIC, image.topics)
        seen = replace(image, topics={name: image.topics[name] for name in names})
        response = describe_topic_partitions.page_of(request, context, seen)
    for topic in response.topics:
        topic.topic_authorized_operations = ask.rights.authorized_operations(TOPIC, topic.name)
    if refused:
        rest = ask.refuse(with_items(request, "topics", refused), refusal(TOPIC))
        response.topics += rest.topics
    return response
