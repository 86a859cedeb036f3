"""Metadata: which brokers there are, and who leads which partition.

Also the place where topics come to life because somebody asked for them. The rest is a view of
the cluster image through the listener the client came in on.
"""

import logging
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.internal_topics import create_on_use
from penstock.broker.quotas.mutations import permits
from penstock.broker.visible import (
    CLUSTER_OPERATIONS,
    TOPIC_OPERATIONS,
    leader_of,
    offline_replicas,
    reachable,
)
from penstock.cluster.image.image import (
    NO_LEADER,
    ClusterImage,
    Endpoint,
    PartitionImage,
    TopicImage,
)
from penstock.cluster.topics.names import INTERNAL_TOPICS, check_topic_name
from penstock.cluster.topics.plan import PARTITIONS_PER_REQUEST_MAX
from penstock.errors import (
    ErrorCode,
    InvalidRequest,
    InvalidTopic,
    ProtocolError,
    RetriableError,
)
from penstock.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.primitives import ZERO_UUID

log = logging.getLogger("kafka.server.KafkaApis")

_PARTITIONS_AT_ONCE_MAX = 1000
_FIRST_VERSION_WITH_NULL_FOR_ALL = 1
_FIRST_VERSION_WITH_LISTENER_ERRORS = 6
_FIRST_VERSION_WITH_LOOKUP_BY_ID = 12


def handle(
    request: MetadataRequest, context: RequestContext
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    if context.is_large or _is_large(request, context):
        context.is_large = True
        return _handle_elsewhere(request, context)
    asked = _look_up(request, context)
    if asked.creatable and _may_create(request, context):
        return _after_creation(request, context, asked)
    return _response(request, context, asked)


async def _handle_elsewhere(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    """Thousands of partitions are told from the image, which nobody changes, in a thread."""
    lane = context.broker.slow_lane
    asked = await lane.run(partial(_look_up, request, context))
    if asked.creatable and _may_create(request, context):
        await _create(context, asked)
    return await lane.run(partial(_response, request, context, asked))


def error_response(request: MetadataRequest, error: ProtocolError) -> MetadataResponse:
    """The same error for every topic asked for, and from version 13 on also at the top."""
    topics = [
        MetadataResponseTopic(name=topic.name or "", topic_id=topic.topic_id)
        for topic in request.topics or ()
    ]
    for topic in topics:
        fail(topic, error)
    return fail(MetadataResponse(topics=topics), error)


# What is asked

_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_INVALID = ErrorCode.INVALID_TOPIC_EXCEPTION


class _Asked(NamedTuple):
    """The topics of a request, looked up in the image."""

    names: Collection[str] | None  # None: all that there are when the answer is made.
    failed: dict[str, ErrorCode]  # Why some of them are not there.
    creatable: Sequence[str]


def _is_large(request: MetadataRequest, context: RequestContext) -> bool:
    """Whether the answer takes longer than others should wait for it."""
    topics = context.broker.image.topics
    names: Iterable[str]
    if _wants_all(request, context.version):
        names = topics
    else:
        names = [topic.name for topic in request.topics or () if topic.name is not None]
    partition_count = 0
    for name in names:
        topic = topics.get(name)
        partition_count += 1 if topic is None else len(topic.partitions)
        if partition_count > _PARTITIONS_AT_ONCE_MAX:
            return True
    return False


def _look_up(request: MetadataRequest, context: RequestContext) -> _Asked:
    _check_names_and_ids(request, context.version)
    topics = context.broker.image.topics
    if _wants_all(request, context.version):
        return _Asked(None, {}, ())
    if _wanted_ids(request):
        return _Asked((), {}, ())
    names = dict.fromkeys(topic.name for topic in request.topics or () if topic.name is not None)
    failed = {name: _absence(name) for name in names if name not in topics}
    creatable = [name for name, error in failed.items() if error is not _INVALID]
    return _Asked(names, failed, creatable)


def _check_names_and_ids(request: MetadataRequest, version: int) -> None:
    """Versions 10 and 11 have a field for ids that no broker ever served."""
    for topic in request.topics or ():
        if topic.name is None and topic.topic_id == ZERO_UUID:
            raise InvalidRequest("a topic is asked for by neither name nor id")
        if version < _FIRST_VERSION_WITH_LOOKUP_BY_ID:
            if topic.name is None:
                raise InvalidRequest(f"version {version} needs the name of every topic")
            if topic.topic_id != ZERO_UUID:
                raise InvalidRequest(f"version {version} cannot look up topics by id")


def _wants_all(request: MetadataRequest, version: int) -> bool:
    if version < _FIRST_VERSION_WITH_NULL_FOR_ALL:
        return not request.topics
    return request.topics is None


def _wanted_ids(request: MetadataRequest) -> list[bytes]:
    ids = (topic.topic_id for topic in request.topics or () if topic.topic_id != ZERO_UUID)
    return list(dict.fromkeys(ids))


def _absence(name: str) -> ErrorCode:
    """Why a name has no topic."""
    try:
        check_topic_name(name)
    except InvalidTopic:
        return _INVALID
    return _UNKNOWN


# Making topics on first use


def _may_create(request: MetadataRequest, context: RequestContext) -> bool:
    return request.allow_auto_topic_creation and context.broker.config.auto_create_topics_enable


async def _after_creation(
    request: MetadataRequest,
    context: RequestContext,
    asked: _Asked,
) -> MetadataResponse:
    await _create(context, asked)
    return _response(request, context, asked)


async def _create(context: RequestContext, asked: _Asked) -> None:
    partition_count = len(asked.creatable) * context.broker.config.num_partitions
    if partition_count > PARTITIONS_PER_REQUEST_MAX:
        log.warning(
            "%s asks for %d topics that do not exist; none is created, because they are more than "
            "%d partitions in one request",
            context.client_address,
            len(asked.creatable),
            PARTITIONS_PER_REQUEST_MAX,
        )
        return  # They stay unknown, as in Kafka, whose controller refuses this.
    # Clients do not expect to be refused here, so they are made to wait after.
    permits(context, strict_from=None).take(partition_count)
    errors = await create_on_use(context.broker, asked.creatable)
    for name in asked.creatable:
        asked.failed[name] = _creation_error(errors.get(name))


def _creation_error(error: ProtocolError | None) -> ErrorCode:
    """None: made, but not in our image yet. That and all that may pass, the client asks again."""
    if error is None or isinstance(error, RetriableError):
        return ErrorCode.LEADER_NOT_AVAILABLE
    return error.code


# The answer


def _response(
    request: MetadataRequest,
    context: RequestContext,
    asked: _Asked,
) -> MetadataResponse:
    """The topics named; those the image does not have get the error given for them."""
    image = context.broker.image  # Taken once, so that everything below is of one moment.
    brokers = reachable(image, context.session.listener)
    response = MetadataResponse(
        brokers=_brokers(image, brokers),
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=[
            _topic(image.topics[name], image, brokers, context.version)
            if name in image.topics
            else _missing(name, asked.failed.get(name, _UNKNOWN))
            for name in (image.topics if asked.names is None else asked.names)
        ],
    )
    response.topics += _topics_by_id(request, image, brokers, context.version)
    _add_operations(request, response)
    return response


def _brokers(
    image: ClusterImage, endpoints: Mapping[int, Endpoint]
) -> list[MetadataResponseBroker]:
    return [
        MetadataResponseBroker(
            node_id=broker_id,
            host=endpoint.host,
            port=endpoint.port,
            rack=image.brokers[broker_id].rack,
        )
        for broker_id, endpoint in endpoints.items()
    ]


def _topics_by_id(
    request: MetadataRequest, image: ClusterImage, brokers: Mapping[int, Endpoint], version: int
) -> list[MetadataResponseTopic]:
    topics = []
    for topic_id in _wanted_ids(request):
        name = image.topic_names_by_id.get(topic_id)
        if name is None:
            unknown_id = int(ErrorCode.UNKNOWN_TOPIC_ID)
            topics.append(
                MetadataResponseTopic(error_code=unknown_id, name=None, topic_id=topic_id)
            )
        else:
            topics.append(_topic(image.topics[name], image, brokers, version))
    return topics


def _missing(name: str, error: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=int(error), name=name, is_internal=name in INTERNAL_TOPICS
    )


def _topic(
    topic: TopicImage, image: ClusterImage, brokers: Mapping[int, Endpoint], version: int
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition(index, partition, image, brokers, version)
            for index, partition in topic.partitions.items()
        ],
    )


def _partition(
    index: int,
    partition: PartitionImage,
    image: ClusterImage,
    brokers: Mapping[int, Endpoint],
    version: int,
) -> MetadataResponsePartition:
    offline = offline_replicas(partition, brokers)
    leader = leader_of(partition, brokers)
    replicas, isr = list(partition.replicas), list(partition.state.isr)
    error = ErrorCode.NONE
    if version == 0 and offline:  # The oldest clients take every replica they see for reachable.
        replicas = [replica for replica in replicas if replica in brokers]
        isr = [replica for replica in isr if replica in brokers]
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    if leader == NO_LEADER:
        error = _leader_error(partition, image, version)
    return MetadataResponsePartition(
        error_code=int(error),
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline,
    )


def _leader_error(partition: PartitionImage, image: ClusterImage, version: int) -> ErrorCode:
    leader = image.brokers.get(partition.state.leader)
    if leader is None or not leader.is_active or version < _FIRST_VERSION_WITH_LISTENER_ERRORS:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.LISTENER_NOT_FOUND


def _add_operations(request: MetadataRequest, response: MetadataResponse) -> None:
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.name is not None:  # Of an id that is not known nothing can be said.
                topic.topic_authorized_operations = TOPIC_OPERATIONS
