"""FindCoordinator: which broker looks after a group or a transactional id.

The key's hash names a partition of an internal topic, and whoever leads that partition is the
coordinator. The topic is made when the first client asks.
"""

from collections.abc import Coroutine
from typing import Any, Final

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.internal_topics import create_on_use
from penstock.broker.visible import leader_endpoint, reachable
from penstock.cluster.topics.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.errors import CoordinatorNotAvailable, ErrorCode, InvalidRequest, ProtocolError
from penstock.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from penstock.replica.state_log import partition_for

_FIRST_VERSION_WITH_MANY_KEYS: Final = 4
_TOPIC_BY_KEY_TYPE = {0: CONSUMER_OFFSETS, 1: TRANSACTION_STATE}
_NO_NODE = -1


def handle(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]:
    if context.version >= _FIRST_VERSION_WITH_MANY_KEYS and not request.coordinator_keys:
        return FindCoordinatorResponse(coordinators=[])  # An error would have no place in it.
    topic = _TOPIC_BY_KEY_TYPE.get(request.key_type)
    if topic is None:
        raise InvalidRequest(f"this broker coordinates nothing of key type {request.key_type}")
    if topic in context.broker.image.topics:
        return _response(request, context, topic)
    return _after_creation(request, context, topic)


def error_response(
    request: FindCoordinatorRequest, error: ProtocolError
) -> FindCoordinatorResponse:
    """The same error for every key, in the form of the request's version."""
    if request.coordinator_keys:
        failed = [_failed(key, error) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=failed)
    return fail(FindCoordinatorResponse(node_id=_NO_NODE, port=_NO_NODE), error)


def _failed(key: str, error: ProtocolError) -> Coordinator:
    return fail(Coordinator(key=key, node_id=_NO_NODE, port=_NO_NODE), error)


async def _after_creation(
    request: FindCoordinatorRequest, context: RequestContext, topic: str
) -> FindCoordinatorResponse:
    failed = await create_on_use(context.broker, [topic])
    if topic in failed:
        # Clients retry this one, and brokers may still be joining.
        raise CoordinatorNotAvailable(f"{topic} cannot be made: {failed[topic]}")
    return _response(request, context, topic)


def _response(
    request: FindCoordinatorRequest, context: RequestContext, topic: str
) -> FindCoordinatorResponse:
    if context.version >= _FIRST_VERSION_WITH_MANY_KEYS:
        found = [_coordinator(key, topic, context) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    only = _coordinator(request.key, topic, context)
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _coordinator(key: str, topic: str, context: RequestContext) -> Coordinator:
    image = context.broker.image
    made = image.topics.get(topic)
    partition_count = len(made.partitions) if made else 0
    leader = None
    if partition_count:
        brokers = reachable(image, context.session.listener)
        leader = leader_endpoint(image, topic, partition_for(key, partition_count), brokers)
    if leader is None:
        return _failed(key, CoordinatorNotAvailable(f"nobody leads the partition of {key} now"))
    broker_id, endpoint = leader
    return Coordinator(
        key=key,
        node_id=broker_id,
        host=endpoint.host,
        port=endpoint.port,
        error_code=int(ErrorCode.NONE),
        error_message=None,
    )
