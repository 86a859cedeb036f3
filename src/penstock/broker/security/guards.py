"""What stands before each handler of a broker with an authorizer: the table of rights at work.

`security/acls/required.py` says which right each API needs and how it is refused. A guard asks for
it, lets the handler do what is allowed, and adds to its answer what is not. A broker without an
authorizer has no guards. What is checked while a handler reads, such as each partition of a fetch
session, stands in that handler.
"""

from collections.abc import Callable
from typing import Any, Final

from penstock.broker.between_brokers import follower_of
from penstock.broker.config_resources import ConfigResourceType
from penstock.broker.context import RequestContext
from penstock.broker.error_answers import code_of
from penstock.broker.security.guard_parts import (
    CLUSTER,
    GROUP,
    TOPIC,
    TOPICS,
    TRANSACTIONAL_ID,
    FirstLook,
    Guard,
    GuardedItems,
    GuardedRequest,
    May,
    by_topic,
    demand,
    each,
    everybody,
    named,
    named_or_id,
    on_cluster,
    on_group,
    on_transaction,
    plain_name,
    proceed_without,
    refusal,
    split_items,
    then,
    with_items,
)
from penstock.broker.security.metadata_guards import (
    guard_describe_cluster,
    guard_describe_topic_partitions,
    guard_metadata,
)
from penstock.errors import ErrorCode, ProtocolError, TopicAuthorization
from penstock.net.connection import CloseConnection
from penstock.protocol.apis import ApiKey
from penstock.protocol.primitives import ZERO_UUID
from penstock.records.batch import TRANSACTIONAL
from penstock.security.acls.rules import AclOperation as Op
from penstock.security.acls.rules import AclResourceType

# Records


_ATTRIBUTES_AT: Final = 22  # The lower byte of them, in the header of a batch.


def _is_transactional(records: Any) -> bool:
    if records is None or len(records) <= _ATTRIBUTES_AT or records[16] != 2:
        return False
    return bool(records[_ATTRIBUTES_AT] & TRANSACTIONAL)


def _may_produce(request: Any, context: RequestContext, may: May) -> bool:
    """Whether all of it is allowed without more; what is transactional goes to the guard."""
    for topic in request.topic_data:
        name = topic.name if topic.topic_id == ZERO_UUID else named_or_id(topic, context)
        if name is not None and not may(Op.WRITE, TOPIC, name):
            return False
        for data in topic.partition_data:
            if _is_transactional(data.records):
                return False
    return True


_PRODUCED: Final = GuardedItems("topic_data", "responses", named_or_id)


def _produce(ask: GuardedRequest) -> Any:
    request = ask.request
    parts = (data for topic in request.topic_data for data in topic.partition_data)
    if any(_is_transactional(data.records) for data in parts):
        if request.transactional_id is None:
            raise refusal(TRANSACTIONAL_ID)
        demand(ask, Op.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    allowed, refused = split_items(ask, _PRODUCED, Op.WRITE, TOPIC)
    if not refused:
        return ask.handle(request, ask.context)
    return proceed_without(ask, _PRODUCED, allowed, refused, refusal(TOPIC))


def _fetch(ask: GuardedRequest) -> Any:
    """Of a follower; what a consumer reads is checked partition by partition in the handler."""
    if follower_of(ask.request) >= 0 and not ask.rights.may(Op.CLUSTER_ACTION, CLUSTER):
        raise refusal(TOPIC)
    return ask.proceed()


def _offset_for_leader_epoch(ask: GuardedRequest) -> Any:
    if ask.rights.may(Op.CLUSTER_ACTION, CLUSTER, quietly=True):
        return ask.proceed()
    return each(Op.DESCRIBE, TOPIC, GuardedItems("topics", "topics", by_topic))(ask)


# Groups


_FIRST_FIND_OF_MANY_KEYS: Final = 4


def _find_coordinator(ask: GuardedRequest) -> Any:
    request = ask.request
    kinds = {0: GROUP, 1: TRANSACTIONAL_ID}
    kind = kinds.get(request.key_type)
    has_many = ask.context.version >= _FIRST_FIND_OF_MANY_KEYS
    if has_many and not request.coordinator_keys:
        return ask.proceed()  # Nothing is asked.
    if kind is None:
        demand(ask, Op.CLUSTER_ACTION, CLUSTER)
        return ask.proceed()
    if has_many:
        items = GuardedItems("coordinator_keys", "coordinators", plain_name)
        return each(Op.DESCRIBE, kind, items)(ask)
    demand(ask, Op.DESCRIBE, kind, request.key)
    return ask.proceed()


def _describe_groups(ask: GuardedRequest) -> Any:
    items = GuardedItems("groups", "groups", plain_name)
    return then(each(Op.DESCRIBE, GROUP, items)(ask), lambda response: _group_bits(ask, response))


def _consumer_group_describe(ask: GuardedRequest) -> Any:
    answer = each(Op.DESCRIBE, GROUP, GuardedItems("group_ids", "groups", plain_name))(ask)

    def finish(response: Any) -> Any:
        response.groups = [
            _hidden_group(group) if _has_hidden_topic(ask, group) else group
            for group in response.groups
        ]
        return _group_bits(ask, response)

    return then(answer, finish)


def _hidden_group(group: Any) -> Any:
    from penstock.protocol.messages.consumer_group_describe import DescribedGroup

    return DescribedGroup(
        group_id=group.group_id,
        error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        error_message=(
            "The described group uses topics that the client is not authorized to describe."
        ),
    )


def _has_hidden_topic(ask: GuardedRequest, group: Any) -> bool:
    names = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    return len(ask.rights.visible(Op.DESCRIBE, TOPIC, names)) < len(names)


def _group_bits(ask: GuardedRequest, response: Any) -> Any:
    if ask.request.include_authorized_operations:
        for group in response.groups:
            if not group.error_code:
                bits = ask.rights.authorized_operations(GROUP, group.group_id)
                group.authorized_operations = bits
    return response


def _list_groups(ask: GuardedRequest) -> Any:
    response = ask.proceed()
    if not ask.rights.may(Op.DESCRIBE, CLUSTER, quietly=True):
        names = (group.group_id for group in response.groups)
        visible = set(ask.rights.visible(Op.DESCRIBE, GROUP, names))
        response.groups = [group for group in response.groups if group.group_id in visible]
    return response


def _consumer_group_heartbeat(ask: GuardedRequest) -> Any:
    for name in ask.request.subscribed_topic_names or ():
        demand(ask, Op.DESCRIBE, TOPIC, name)
    return ask.proceed()


def _join_group(ask: GuardedRequest) -> Any:
    if ask.rights.may(Op.READ, GROUP, ask.request.group_id):
        return ask.proceed()
    response = ask.refuse(ask.request, refusal(GROUP))
    response.member_id = ""
    if ask.context.version >= _FIRST_JOIN_WITHOUT_PROTOCOL:
        response.protocol_name = None
    return response


_FIRST_JOIN_WITHOUT_PROTOCOL: Final = 7


# Topics and settings


def _create_topics(ask: GuardedRequest) -> Any:
    allowed: list[Any] = ask.request.topics
    refused: list[Any] = []
    if not ask.rights.may(Op.CREATE, CLUSTER, quietly=True):
        allowed, refused = split_items(ask, TOPICS, Op.CREATE, TOPIC)
    error = TopicAuthorization("Authorization failed.")
    answer = proceed_without(ask, TOPICS, allowed, refused, error)
    return then(answer, lambda response: _hide_configs(ask, response))


def _hide_configs(ask: GuardedRequest, response: Any) -> Any:
    for topic in response.topics:
        if topic.error_code:
            continue
        if not ask.rights.may(Op.DESCRIBE_CONFIGS, TOPIC, topic.name, quietly=True):
            topic.topic_config_error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []
    return response


def _configs(operation: Op, answered: str) -> Guard:
    def guard(ask: GuardedRequest) -> Any:
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
                rest = with_items(ask.request, "resources", resources)
                told = getattr(ask.refuse(rest, refusal(kind)), answered)
                getattr(response, answered).extend(told)
            return response

        asked = with_items(ask.request, "resources", allowed)
        if allowed:
            return then(ask.handle(asked, ask.context), finish)
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


def _elect_leaders(ask: GuardedRequest) -> Any:
    if ask.rights.may(Op.ALTER, CLUSTER):
        return ask.proceed()
    response = ask.refuse(ask.request, refusal(CLUSTER))
    if ask.context.version >= 1:
        response.error_code = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return response


def _describe_log_dirs(ask: GuardedRequest) -> Any:
    if ask.rights.may(Op.DESCRIBE, CLUSTER):
        return ask.proceed()
    from penstock.protocol.messages.describe_log_dirs import DescribeLogDirsResponse

    response = DescribeLogDirsResponse(results=[])
    if ask.context.version >= 3:
        response.error_code = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return response


# Transactions


def _init_producer_id(ask: GuardedRequest) -> Any:
    request = ask.request
    if request.transactional_id is not None:
        demand(ask, Op.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    elif not ask.rights.may_somewhere(Op.WRITE, TOPIC):
        demand(ask, Op.IDEMPOTENT_WRITE, CLUSTER)
    return ask.proceed()


def _add_partitions_to_txn(ask: GuardedRequest) -> Any:
    request = ask.request
    if ask.context.version >= 4:
        demand(ask, Op.CLUSTER_ACTION, CLUSTER)
        return ask.proceed()
    demand(ask, Op.WRITE, TRANSACTIONAL_ID, request.v3_and_below_transactional_id)
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
        part = with_items(request, "v3_and_below_topics", [topic])
        error = spared if topic.name in allowed else refusal(TOPIC)
        answered += ask.refuse(part, error).results_by_topic_v3_and_below
    response = ask.refuse(with_items(request, "v3_and_below_topics", []), spared)
    response.results_by_topic_v3_and_below = answered
    return response


def _add_offsets_to_txn(ask: GuardedRequest) -> Any:
    demand(ask, Op.READ, GROUP, ask.request.group_id)
    return ask.proceed()


def _describe_transactions(ask: GuardedRequest) -> Any:
    items = GuardedItems("transactional_ids", "transaction_states", plain_name)
    answer = each(Op.DESCRIBE, TRANSACTIONAL_ID, items)(ask)

    def finish(response: Any) -> Any:
        for state in response.transaction_states:
            names = (topic.topic for topic in state.topics)
            visible = set(ask.rights.visible(Op.DESCRIBE, TOPIC, names))
            state.topics = [topic for topic in state.topics if topic.topic in visible]
        return response

    return then(answer, finish)


def _list_transactions(ask: GuardedRequest) -> Any:
    response = ask.proceed()
    ids = (state.transactional_id for state in response.transaction_states)
    visible = set(ask.rights.visible(Op.DESCRIBE, TRANSACTIONAL_ID, ids))
    response.transaction_states = [
        state for state in response.transaction_states if state.transactional_id in visible
    ]
    return response


# Brokers


def _of_brokers(ask: GuardedRequest) -> Any:
    if not ask.rights.may(Op.CLUSTER_ACTION, CLUSTER):
        name = type(ask.request).__name__
        raise CloseConnection(f"{ask.context.session.principal} is no broker: {name} is refused")
    return ask.proceed()


def _offset_delete(ask: GuardedRequest) -> Any:
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
                            partition_index=partition.partition_index, error_code=code_of(error)
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return _READ_TOPICS(ask._replace(refuse=refuse))


_READ_TOPICS: Final = each(Op.READ, TOPIC, TOPICS)

# Every API that is served; a test fails for one that has no line.
GUARDS: Final[dict[ApiKey, Guard]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: each(Op.DESCRIBE, TOPIC, TOPICS),
    ApiKey.METADATA: guard_metadata,
    ApiKey.OFFSET_COMMIT: on_group(
        Op.READ, each(Op.READ, TOPIC, GuardedItems("topics", "topics", named_or_id))
    ),
    ApiKey.OFFSET_FETCH: everybody,  # Group by group and topic by topic, in the handler.
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.JOIN_GROUP: _join_group,
    ApiKey.HEARTBEAT: on_group(Op.READ),
    ApiKey.LEAVE_GROUP: on_group(Op.READ),
    ApiKey.SYNC_GROUP: on_group(Op.READ),
    ApiKey.DESCRIBE_GROUPS: _describe_groups,
    ApiKey.LIST_GROUPS: _list_groups,
    ApiKey.SASL_HANDSHAKE: everybody,
    ApiKey.API_VERSIONS: everybody,
    ApiKey.SASL_AUTHENTICATE: everybody,
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: everybody,  # Topic by topic in the handler, which looks up their ids.
    ApiKey.DELETE_RECORDS: each(Op.DELETE, TOPIC, TOPICS),
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: on_transaction(_add_offsets_to_txn),
    ApiKey.END_TXN: on_transaction(),
    ApiKey.WRITE_TXN_MARKERS: on_cluster(Op.ALTER, instead=Op.CLUSTER_ACTION),
    ApiKey.TXN_OFFSET_COMMIT: on_transaction(on_group(Op.READ, _READ_TOPICS)),
    ApiKey.DESCRIBE_ACLS: on_cluster(Op.DESCRIBE),
    ApiKey.CREATE_ACLS: on_cluster(Op.ALTER),
    ApiKey.DELETE_ACLS: on_cluster(Op.ALTER),
    ApiKey.DESCRIBE_CONFIGS: _configs(Op.DESCRIBE_CONFIGS, "results"),
    ApiKey.ALTER_CONFIGS: _configs(Op.ALTER_CONFIGS, "responses"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _configs(Op.ALTER_CONFIGS, "responses"),
    ApiKey.ALTER_REPLICA_LOG_DIRS: on_cluster(Op.ALTER),
    ApiKey.DESCRIBE_LOG_DIRS: _describe_log_dirs,
    ApiKey.CREATE_PARTITIONS: each(Op.ALTER, TOPIC, GuardedItems("topics", "results", named)),
    # Who came how, whose token it is and which of them somebody sees: in the handlers.
    ApiKey.CREATE_DELEGATION_TOKEN: everybody,
    ApiKey.RENEW_DELEGATION_TOKEN: everybody,
    ApiKey.EXPIRE_DELEGATION_TOKEN: everybody,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: everybody,
    ApiKey.DELETE_GROUPS: each(
        Op.DELETE, GROUP, GuardedItems("groups_names", "results", plain_name)
    ),
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: on_cluster(Op.ALTER),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: on_cluster(Op.DESCRIBE),
    ApiKey.OFFSET_DELETE: on_group(Op.DELETE, _offset_delete),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: on_cluster(Op.DESCRIBE_CONFIGS),
    ApiKey.ALTER_CLIENT_QUOTAS: on_cluster(Op.ALTER_CONFIGS),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: on_cluster(Op.DESCRIBE),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: on_cluster(Op.ALTER),
    ApiKey.UPDATE_FEATURES: on_cluster(Op.ALTER),
    ApiKey.DESCRIBE_CLUSTER: guard_describe_cluster,
    ApiKey.DESCRIBE_PRODUCERS: _READ_TOPICS,
    ApiKey.DESCRIBE_TRANSACTIONS: _describe_transactions,
    ApiKey.LIST_TRANSACTIONS: _list_transactions,
    ApiKey.LIST_CONFIG_RESOURCES: on_cluster(Op.DESCRIBE_CONFIGS),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: guard_describe_topic_partitions,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: on_group(Op.READ, _consumer_group_heartbeat),
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
        everybody,
    ),
}


# A first look at requests that come by the thousand and are allowed, all but a few: it only asks.
# Whatever it does not let pass is asked again by the guard, which notes it and refuses.
FIRST_LOOKS: Final[dict[ApiKey, FirstLook]] = {ApiKey.PRODUCE: _may_produce}


def guarded(
    api_key: ApiKey,
    name: str,
    handle: Callable[[Any, RequestContext], Any],
    refuse: Callable[[Any, ProtocolError], Any],
) -> Callable[[Any, RequestContext], Any]:
    """A handler with its guard before it."""
    guard, passes = GUARDS[api_key], FIRST_LOOKS.get(api_key)

    def handle_guarded(request: Any, context: RequestContext) -> Any:
        access, session = context.broker.access, context.session
        if access is None or not session.address:  # This broker asks itself.
            return handle(request, context)
        rights = context.rights = access.rights_of(session, name)
        if (
            passes is not None
            and not access.audit.wants_allowed  # Else each decision is to be noted.
            and passes(request, context, rights.decides)
        ):
            return handle(request, context)
        return guard(GuardedRequest(request, context, rights, handle, refuse))

    return handle_guarded
