"""What stands before each handler of a broker with an authorizer: the table of rights at work.

`security/acls/required.py` says which right each API needs and how it is refused. A guard asks for
it, lets the handler do what is allowed, and adds to its answer what is not. A broker without an
authorizer has no guards. What is checked while a handler reads, such as each partition of a fetch
session, stands in that handler.
"""

import copy
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from types import CoroutineType
from typing import Any, Final, NamedTuple

from penstock.broker.between_brokers import follower_of
from penstock.broker.config_resources import ConfigResourceType
from penstock.broker.context import RequestContext
from penstock.broker.security.access import RequestRights
from penstock.errors import (
    ClusterAuthorization,
    ErrorCode,
    GroupAuthorization,
    ProtocolError,
    TopicAuthorization,
    TransactionalIdAuthorization,
)
from penstock.net.connection import CloseConnection
from penstock.protocol.apis import ApiKey
from penstock.protocol.primitives import ZERO_UUID
from penstock.records.batch import TRANSACTIONAL
from penstock.security.acls.rules import AclOperation as Op
from penstock.security.acls.rules import AclResourceType

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = (
    AclResourceType.TOPIC,
    AclResourceType.GROUP,
    AclResourceType.CLUSTER,
    AclResourceType.TRANSACTIONAL_ID,
)
_REFUSALS: Final[dict[AclResourceType, Callable[[], ProtocolError]]] = {
    TOPIC: lambda: TopicAuthorization("Topic authorization failed."),
    GROUP: lambda: GroupAuthorization("Group authorization failed."),
    CLUSTER: lambda: ClusterAuthorization("Cluster authorization failed."),
    TRANSACTIONAL_ID: lambda: TransactionalIdAuthorization(
        "Transactional Id authorization failed."
    ),
}


class Ask(NamedTuple):
    """A request at its guard, and what may follow."""

    request: Any
    context: RequestContext
    rights: RequestRights
    handle: Callable[[Any, RequestContext], Any]
    refuse: Callable[[Any, ProtocolError], Any]  # The answer where all of it is refused.

    def proceed(self) -> Any:
        return self.handle(self.request, self.context)


Guard = Callable[[Ask], Any]


def refusal(kind: AclResourceType) -> ProtocolError:
    """The error of somebody without a right on such a resource."""
    return _REFUSALS[kind]()


# Parts that guards are made of


def _then(answer: Any, finish: Callable[[Any], Any]) -> Any:
    """Finish an answer, now or when it is there."""
    if isinstance(answer, (CoroutineType, Awaitable)):
        return _finish_later(answer, finish)
    return finish(answer)


async def _finish_later(answer: Awaitable[Any], finish: Callable[[Any], Any]) -> Any:
    return finish(await answer)


def _demand(ask: Ask, operation: Op, kind: AclResourceType, *names: str) -> None:
    """The request fails as a whole without the right."""
    if not ask.rights.may(operation, kind, *names):
        raise refusal(kind)


def _everybody(ask: Ask) -> Any:
    return ask.proceed()


def _on_cluster(operation: Op, instead: Op | None = None) -> Guard:
    def guard(ask: Ask) -> Any:
        if instead is None or not ask.rights.may(operation, CLUSTER, quietly=True):
            _demand(ask, instead or operation, CLUSTER)
        return ask.proceed()

    return guard


def _on_group(operation: Op, guard: Guard = _everybody) -> Guard:
    def guard_group(ask: Ask) -> Any:
        _demand(ask, operation, GROUP, ask.request.group_id)
        return guard(ask)

    return guard_group


def _on_transaction(guard: Guard = _everybody) -> Guard:
    def guard_transaction(ask: Ask) -> Any:
        _demand(ask, Op.WRITE, TRANSACTIONAL_ID, ask.request.transactional_id)
        return guard(ask)

    return guard_transaction


class _Items(NamedTuple):
    """The list of a request whose items are allowed or refused one by one, and its answers."""

    asked: str
    answered: str
    name: Callable[[Any, RequestContext], str | None]  # None: the handler knows no such item.


def _plain(item: Any, _context: RequestContext) -> str | None:
    return str(item)


def _named(item: Any, _context: RequestContext) -> str | None:
    return str(item.name)


def _by_topic(item: Any, _context: RequestContext) -> str | None:
    return str(item.topic)


def _named_or_id(item: Any, context: RequestContext) -> str | None:
    if item.topic_id != ZERO_UUID:
        return context.broker.image.topic_names_by_id.get(item.topic_id)
    return str(item.name)


def _split(ask: Ask, items: _Items, operation: Op, kind: AclResourceType) -> tuple[Any, Any]:
    """The items that are allowed, and those that are not."""
    allowed: list[Any] = []
    refused: list[Any] = []
    for item in getattr(ask.request, items.asked):
        name = items.name(item, ask.context)
        is_allowed = name is None or ask.rights.may(operation, kind, name)
        (allowed if is_allowed else refused).append(item)
    return allowed, refused


def _with_items(request: Any, asked: str, chosen: list[Any]) -> Any:
    part = copy.copy(request)
    setattr(part, asked, chosen)
    return part


def _proceed_without(
    ask: Ask, items: _Items, allowed: list[Any], refused: list[Any], error: ProtocolError
) -> Any:
    """The handler sees what is allowed; the rest gets the error in its place of the answer."""
    if not refused:
        return ask.proceed()
    rest = _with_items(ask.request, items.asked, refused)
    if not allowed:
        return ask.refuse(rest, error)
    answer = ask.handle(_with_items(ask.request, items.asked, allowed), ask.context)

    def finish(response: Any) -> Any:
        told = getattr(ask.refuse(rest, error), items.answered)
        getattr(response, items.answered).extend(told)
        return response

    return _then(answer, finish)


def _each(operation: Op, kind: AclResourceType, items: _Items) -> Guard:
    def guard(ask: Ask) -> Any:
        allowed, refused = _split(ask, items, operation, kind)
        return _proceed_without(ask, items, allowed, refused, refusal(kind))

    return guard


_TOPICS: Final = _Items("topics", "topics", _named)


# Records


_ATTRIBUTES_AT: Final = 22  # The lower byte of them, in the header of a batch.


def _is_transactional(request: Any) -> bool:
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            is_batch = records is not None and len(records) > _ATTRIBUTES_AT and records[16] == 2
            if is_batch and records[_ATTRIBUTES_AT] & TRANSACTIONAL:
                return True
    return False


_PRODUCED: Final = _Items("topic_data", "responses", _named_or_id)


def _produce(ask: Ask) -> Any:
    request = ask.request
    if _is_transactional(request):
        if request.transactional_id is None:
            raise refusal(TRANSACTIONAL_ID)
        _demand(ask, Op.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    allowed, refused = _split(ask, _PRODUCED, Op.WRITE, TOPIC)
    return _proceed_without(ask, _PRODUCED, allowed, refused, refusal(TOPIC))


def _fetch(ask: Ask) -> Any:
    """Of a follower; what a consumer reads is checked partition by partition in the handler."""
    if follower_of(ask.request) >= 0 and not ask.rights.may(Op.CLUSTER_ACTION, CLUSTER):
        raise refusal(TOPIC)
    return ask.proceed()


def _offset_for_leader_epoch(ask: Ask) -> Any:
    if ask.rights.may(Op.CLUSTER_ACTION, CLUSTER, quietly=True):
        return ask.proceed()
    return _each(Op.DESCRIBE, TOPIC, _Items("topics", "topics", _by_topic))(ask)


# Metadata


def _metadata(ask: Ask) -> Any:
    request = ask.request
    wants_all = request.topics is None or (ask.context.version == 0 and not request.topics)
    if wants_all:
        return _then(ask.proceed(), lambda response: _add_bits(ask, _only_visible(ask, response)))
    by_name = [topic for topic in request.topics if topic.name is not None]
    refused = [topic for topic in by_name if not ask.rights.may(Op.DESCRIBE, TOPIC, topic.name)]
    hidden = {topic.name for topic in refused}
    uncreatable = {topic.name for topic in by_name if topic.name not in hidden} & _not_to_be_made(
        ask, [topic.name for topic in by_name if topic.name not in hidden]
    )
    kept = [topic for topic in request.topics if topic.name not in hidden | uncreatable]
    asked = _with_items(request, "topics", kept)
    if not kept and ask.context.version == 0:
        asked.topics = [_nobody(request)]  # An empty list would ask for all of them.

    def finish(response: Any) -> Any:
        if not kept:
            response.topics = []
        _hide_by_id(ask, response)
        response.topics += _refused_topics(request, hidden, uncreatable)
        return _add_bits(ask, response)

    return _then(ask.handle(asked, ask.context), finish)


def _nobody(request: Any) -> Any:
    topic = copy.copy(request.topics[0])
    topic.name = ""
    return topic


def _not_to_be_made(ask: Ask, names: Iterable[str]) -> set[str]:
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


def _hide_by_id(ask: Ask, response: Any) -> None:
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


def _only_visible(ask: Ask, response: Any) -> Any:
    names = ask.rights.visible(Op.DESCRIBE, TOPIC, (topic.name for topic in response.topics))
    visible = set(names)
    response.topics = [topic for topic in response.topics if topic.name in visible]
    return response


def _add_bits(ask: Ask, response: Any) -> Any:
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


def _cluster_bits(ask: Ask) -> int:
    if not ask.rights.may(Op.DESCRIBE, CLUSTER, quietly=True):
        return 0
    return ask.rights.authorized_operations(CLUSTER)


def _describe_cluster(ask: Ask) -> Any:
    response = ask.proceed()
    if ask.request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = _cluster_bits(ask)
    return response


def _describe_topic_partitions(ask: Ask) -> Any:
    request, context = ask.request, ask.context
    refused: list[Any] = []
    if request.topics:
        allowed, refused = _split(ask, _TOPICS, Op.DESCRIBE, TOPIC)
        if not allowed:
            return ask.refuse(_with_items(request, "topics", refused), refusal(TOPIC))
        asked = _with_items(request, "topics", allowed)
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
        rest = ask.refuse(_with_items(request, "topics", refused), refusal(TOPIC))
        response.topics += rest.topics
    return response


# Groups


def _find_coordinator(ask: Ask) -> Any:
    request = ask.request
    kinds = {0: GROUP, 1: TRANSACTIONAL_ID}
    kind = kinds.get(request.key_type)
    if kind is None:
        _demand(ask, Op.CLUSTER_ACTION, CLUSTER)
        return ask.proceed()
    if request.coordinator_keys:
        items = _Items("coordinator_keys", "coordinators", _plain)
        return _each(Op.DESCRIBE, kind, items)(ask)
    _demand(ask, Op.DESCRIBE, kind, request.key)
    return ask.proceed()


def _describe_groups(ask: Ask) -> Any:
    items = _Items("groups", "groups", _plain)
    return _then(_each(Op.DESCRIBE, GROUP, items)(ask), lambda response: _group_bits(ask, response))


def _consumer_group_describe(ask: Ask) -> Any:
    answer = _each(Op.DESCRIBE, GROUP, _Items("group_ids", "groups", _plain))(ask)

    def finish(response: Any) -> Any:
        for group in response.groups:
            if not group.error_code and _has_hidden_topic(ask, group):
                group.error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                group.error_message = (
                    "The described group uses topics that the client is not authorized to describe."
                )
                group.members = []
        return _group_bits(ask, response)

    return _then(answer, finish)


def _has_hidden_topic(ask: Ask, group: Any) -> bool:
    names = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    return len(ask.rights.visible(Op.DESCRIBE, TOPIC, names)) < len(names)


def _group_bits(ask: Ask, response: Any) -> Any:
    if ask.request.include_authorized_operations:
        for group in response.groups:
            if not group.error_code:
                bits = ask.rights.authorized_operations(GROUP, group.group_id)
                group.authorized_operations = bits
    return response


def _list_groups(ask: Ask) -> Any:
    response = ask.proceed()
    if not ask.rights.may(Op.DESCRIBE, CLUSTER, quietly=True):
        names = (group.group_id for group in response.groups)
        visible = set(ask.rights.visible(Op.DESCRIBE, GROUP, names))
        response.groups = [group for group in response.groups if group.group_id in visible]
    return response


def _consumer_group_heartbeat(ask: Ask) -> Any:
    for name in ask.request.subscribed_topic_names or ():
        _demand(ask, Op.DESCRIBE, TOPIC, name)
    return ask.proceed()


def _join_group(ask: Ask) -> Any:
    if ask.rights.may(Op.READ, GROUP, ask.request.group_id):
        return ask.proceed()
    response = ask.refuse(ask.request, refusal(GROUP))
    response.member_id = ""
    if ask.context.version >= _FIRST_JOIN_WITHOUT_PROTOCOL:
        response.protocol_name = None
    return response


_FIRST_JOIN_WITHOUT_PROTOCOL: Final = 7


# Topics and settings


def _create_topics(ask: Ask) -> Any:
    allowed: list[Any] = ask.request.topics
    refused: list[Any] = []
    if not ask.rights.may(Op.CREATE, CLUSTER, quietly=True):
        allowed, refused = _split(ask, _TOPICS, Op.CREATE, TOPIC)
    error = TopicAuthorization("Authorization failed.")
    answer = _proceed_without(ask, _TOPICS, allowed, refused, error)
    return _then(answer, lambda response: _hide_configs(ask, response))


def _hide_configs(ask: Ask, response: Any) -> Any:
    for topic in response.topics:
        if topic.error_code:
            continue
        if not ask.rights.may(Op.DESCRIBE_CONFIGS, TOPIC, topic.name, quietly=True):
            topic.topic_config_error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []
    return response


def _configs(operation: Op, answered: str) -> Guard:
    def guard(ask: Ask) -> Any:
        allowed: list[Any] = []
        refused: dict[AclResourceType, list[Any]] = {}
        for resource in ask.request.resources:
            kind, name = _config_right(resource)
            if kind is None or ask.rights.may(operation, kind, name):
                allowed.append(resource)
            else:
                refused.setdefault(kind, []).append(resource)
        if not refused:
            return ask.proceed()

        def finish(response: Any) -> Any:
            for kind, resources in refused.items():
                rest = _with_items(ask.request, "resources", resources)
                told = getattr(ask.refuse(rest, refusal(kind)), answered)
                getattr(response, answered).extend(told)
            return response

        asked = _with_items(ask.request, "resources", allowed)
        if allowed:
            return _then(ask.handle(asked, ask.context), finish)
        return finish(ask.refuse(asked, refusal(CLUSTER)))

    return guard


def _config_right(resource: Any) -> tuple[AclResourceType | None, str]:
    """What the right must be on; None: the handler refuses such a thing to everybody."""
    name = resource.resource_name
    if resource.resource_type == ConfigResourceType.TOPIC:
        return TOPIC, name
    if resource.resource_type == ConfigResourceType.GROUP:
        return GROUP, name
    on_cluster = (
        ConfigResourceType.BROKER,
        ConfigResourceType.BROKER_LOGGER,
        ConfigResourceType.CLIENT_METRICS,
    )
    return (CLUSTER if resource.resource_type in on_cluster else None), "kafka-cluster"


def _elect_leaders(ask: Ask) -> Any:
    if ask.rights.may(Op.ALTER, CLUSTER):
        return ask.proceed()
    response = ask.refuse(ask.request, refusal(CLUSTER))
    if ask.context.version >= 1:
        response.error_code = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return response


def _describe_log_dirs(ask: Ask) -> Any:
    if ask.rights.may(Op.DESCRIBE, CLUSTER):
        return ask.proceed()
    from penstock.protocol.messages.describe_log_dirs import DescribeLogDirsResponse

    response = DescribeLogDirsResponse(results=[])
    if ask.context.version >= 3:
        response.error_code = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return response


# Transactions


def _init_producer_id(ask: Ask) -> Any:
    request = ask.request
    if request.transactional_id is not None:
        _demand(ask, Op.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    elif not ask.rights.may_somewhere(Op.WRITE, TOPIC):
        _demand(ask, Op.IDEMPOTENT_WRITE, CLUSTER)
    return ask.proceed()


def _add_partitions_to_txn(ask: Ask) -> Any:
    request = ask.request
    if ask.context.version >= 4:
        _demand(ask, Op.CLUSTER_ACTION, CLUSTER)
        return ask.proceed()
    _demand(ask, Op.WRITE, TRANSACTIONAL_ID, request.v3_and_below_transactional_id)
    from penstock.cluster.topics.names import INTERNAL_TOPICS
    from penstock.errors import OperationNotAttempted

    topics = request.v3_and_below_topics
    allowed = {
        topic.name
        for topic in topics
        if ask.rights.may(Op.WRITE, TOPIC, topic.name) and topic.name not in INTERNAL_TOPICS
    }
    if len(allowed) == len({topic.name for topic in topics}):
        return ask.proceed()
    spared = OperationNotAttempted("Another topic of the request is not authorized.")
    answered: list[Any] = []
    for topic in topics:
        part = _with_items(request, "v3_and_below_topics", [topic])
        error = spared if topic.name in allowed else refusal(TOPIC)
        answered += ask.refuse(part, error).results_by_topic_v3_and_below
    response = ask.refuse(_with_items(request, "v3_and_below_topics", []), spared)
    response.results_by_topic_v3_and_below = answered
    return response


def _add_offsets_to_txn(ask: Ask) -> Any:
    _demand(ask, Op.READ, GROUP, ask.request.group_id)
    return ask.proceed()


def _describe_transactions(ask: Ask) -> Any:
    items = _Items("transactional_ids", "transaction_states", _plain)
    answer = _each(Op.DESCRIBE, TRANSACTIONAL_ID, items)(ask)

    def finish(response: Any) -> Any:
        for state in response.transaction_states:
            names = (topic.topic for topic in state.topics)
            visible = set(ask.rights.visible(Op.DESCRIBE, TOPIC, names))
            state.topics = [topic for topic in state.topics if topic.topic in visible]
        return response

    return _then(answer, finish)


def _list_transactions(ask: Ask) -> Any:
    response = ask.proceed()
    ids = (state.transactional_id for state in response.transaction_states)
    visible = set(ask.rights.visible(Op.DESCRIBE, TRANSACTIONAL_ID, ids))
    response.transaction_states = [
        state for state in response.transaction_states if state.transactional_id in visible
    ]
    return response


# Brokers


def _of_brokers(ask: Ask) -> Any:
    if not ask.rights.may(Op.CLUSTER_ACTION, CLUSTER):
        name = type(ask.request).__name__
        raise CloseConnection(f"{ask.context.session.principal} is no broker: {name} is refused")
    return ask.proceed()


def _offset_delete(ask: Ask) -> Any:
    """Its answer has no error for all partitions of a topic, so it is written here."""
    from penstock.protocol.messages.offset_delete import (
        OffsetDeleteResponse,
        OffsetDeleteResponsePartition,
        OffsetDeleteResponseTopic,
    )

    def refuse(request: Any, error: ProtocolError) -> OffsetDeleteResponse:
        return OffsetDeleteResponse(
            topics=[
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponsePartition(
                            partition_index=partition.partition_index, error_code=int(error.code)
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return _READ_TOPICS(ask._replace(refuse=refuse))


_READ_TOPICS: Final = _each(Op.READ, TOPIC, _TOPICS)

# Every API that is served; a test fails for one that has no line.
GUARDS: Final[dict[ApiKey, Guard]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: _each(Op.DESCRIBE, TOPIC, _TOPICS),
    ApiKey.METADATA: _metadata,
    ApiKey.OFFSET_COMMIT: _on_group(
        Op.READ, _each(Op.READ, TOPIC, _Items("topics", "topics", _named_or_id))
    ),
    ApiKey.OFFSET_FETCH: _everybody,  # Group by group and topic by topic, in the handler.
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.JOIN_GROUP: _join_group,
    ApiKey.HEARTBEAT: _on_group(Op.READ),
    ApiKey.LEAVE_GROUP: _on_group(Op.READ),
    ApiKey.SYNC_GROUP: _on_group(Op.READ),
    ApiKey.DESCRIBE_GROUPS: _describe_groups,
    ApiKey.LIST_GROUPS: _list_groups,
    ApiKey.SASL_HANDSHAKE: _everybody,
    ApiKey.API_VERSIONS: _everybody,
    ApiKey.SASL_AUTHENTICATE: _everybody,
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _everybody,  # Topic by topic in the handler, which looks up their ids.
    ApiKey.DELETE_RECORDS: _each(Op.DELETE, TOPIC, _TOPICS),
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: _on_transaction(_add_offsets_to_txn),
    ApiKey.END_TXN: _on_transaction(),
    ApiKey.WRITE_TXN_MARKERS: _on_cluster(Op.ALTER, instead=Op.CLUSTER_ACTION),
    ApiKey.TXN_OFFSET_COMMIT: _on_transaction(_on_group(Op.READ, _READ_TOPICS)),
    ApiKey.DESCRIBE_ACLS: _on_cluster(Op.DESCRIBE),
    ApiKey.CREATE_ACLS: _on_cluster(Op.ALTER),
    ApiKey.DELETE_ACLS: _on_cluster(Op.ALTER),
    ApiKey.DESCRIBE_CONFIGS: _configs(Op.DESCRIBE_CONFIGS, "results"),
    ApiKey.ALTER_CONFIGS: _configs(Op.ALTER_CONFIGS, "responses"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _configs(Op.ALTER_CONFIGS, "responses"),
    ApiKey.ALTER_REPLICA_LOG_DIRS: _on_cluster(Op.ALTER),
    ApiKey.DESCRIBE_LOG_DIRS: _describe_log_dirs,
    ApiKey.CREATE_PARTITIONS: _each(Op.ALTER, TOPIC, _Items("topics", "results", _named)),
    ApiKey.DELETE_GROUPS: _each(Op.DELETE, GROUP, _Items("groups_names", "results", _plain)),
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _on_cluster(Op.ALTER),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _on_cluster(Op.DESCRIBE),
    ApiKey.OFFSET_DELETE: _on_group(Op.DELETE, _offset_delete),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _on_cluster(Op.DESCRIBE_CONFIGS),
    ApiKey.ALTER_CLIENT_QUOTAS: _on_cluster(Op.ALTER_CONFIGS),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _on_cluster(Op.DESCRIBE),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _on_cluster(Op.ALTER),
    ApiKey.UPDATE_FEATURES: _on_cluster(Op.ALTER),
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.DESCRIBE_PRODUCERS: _READ_TOPICS,
    ApiKey.DESCRIBE_TRANSACTIONS: _describe_transactions,
    ApiKey.LIST_TRANSACTIONS: _list_transactions,
    ApiKey.LIST_CONFIG_RESOURCES: _on_cluster(Op.DESCRIBE_CONFIGS),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _on_group(Op.READ, _consumer_group_heartbeat),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _consumer_group_describe,
    ApiKey.IMAGE_FETCH: _of_brokers,
    ApiKey.PARTITIONS_CHANGED: _of_brokers,
    ApiKey.BROKER_SHUTDOWN: _of_brokers,
    ApiKey.FORWARD: _of_brokers,
    ApiKey.REPLICA_ENDS: _of_brokers,
    # Understood only to be refused to everybody.
    **dict.fromkeys(
        (
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_DESCRIBE,
            ApiKey.SHARE_FETCH,
            ApiKey.SHARE_ACKNOWLEDGE,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            ApiKey.STREAMS_GROUP_DESCRIBE,
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ),
        _everybody,
    ),
}


def guarded(
    api_key: ApiKey,
    name: str,
    handle: Callable[[Any, RequestContext], Any],
    refuse: Callable[[Any, ProtocolError], Any],
) -> Callable[[Any, RequestContext], Any]:
    """A handler with its guard before it."""
    guard = GUARDS[api_key]

    def handle_guarded(request: Any, context: RequestContext) -> Any:
        access, session = context.broker.access, context.session
        if access is None or not session.address:  # This broker asks itself.
            return handle(request, context)
        rights = context.rights = access.rights_of(session, name)
        return guard(Ask(request, context, rights, handle, refuse))

    return handle_guarded
