"""CreateTopics: check what is asked, let the controller make it, tell what came of it.

Names, settings and what contradicts itself are checked here. Where the replicas go, and whether
there are brokers enough, is the controller's to decide.
"""

from collections import Counter
from typing import Final

from penstock.broker.context import Broker, RequestContext
from penstock.broker.error_answers import fail
from penstock.broker.membership.room_for_logs import RoomForLogs
from penstock.broker.quotas.mutations import MutationPermits, permits
from penstock.broker.slices import TimeSlice
from penstock.cluster.control.controller import TopicToCreate
from penstock.cluster.image.image import TopicImage
from penstock.cluster.topics.names import check_topic_name
from penstock.cluster.topics.plan import PARTITIONS_PER_REQUEST_MAX
from penstock.config.broker import BrokerConfig
from penstock.config.described import describe_topic
from penstock.config.topic import canonical_overrides, parse_topic_config
from penstock.errors import (
    ConfigError,
    InvalidConfiguration,
    InvalidReplicaAssignment,
    InvalidRequest,
    ProtocolError,
    TopicExists,
)
from penstock.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.protocol.primitives import ZERO_UUID

_DEFAULT = -1
_FIRST_VERSION_WITH_CONFIGS = 5
_FIRST_VERSION_WITH_QUOTA_ERROR = 6
_AT_ONCE: Final = 100  # The answer tells all settings of each topic: these are thousands.


async def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    broker, pace = context.broker, TimeSlice()
    context.is_large |= len(request.topics) > _AT_ONCE
    plans: dict[str, TopicToCreate | ProtocolError] = {}
    for name, topic in _by_name(request).items():
        plans[name] = _plan_or_error(topic, broker)
        await pace.breathe()
    plans.update((name, InvalidRequest("Duplicate topic name.")) for name in _twice(request))
    if not request.validate_only:
        allowed = permits(context, strict_from=_FIRST_VERSION_WITH_QUOTA_ERROR)
        room = RoomForLogs(broker)
        plans = {name: _permitted(plan, allowed, room) for name, plan in plans.items()}
    wanted = [plan for plan in plans.values() if isinstance(plan, TopicToCreate)]
    controller = broker.acting_controller()
    made = await controller.create_topics(wanted, validate_only=request.validate_only)
    outcomes: dict[str, TopicImage | ProtocolError] = {
        plan.name: outcome for plan, outcome in zip(wanted, made, strict=True)
    }
    response = CreateTopicsResponse(topics=[])
    for name, plan in plans.items():
        response.topics.append(_result(name, plan, outcomes, context))
        await pace.breathe()
    if request.validate_only:
        for result in response.topics:
            result.topic_id = ZERO_UUID  # Nothing was made that could have one.
    return response


def error_response(request: CreateTopicsRequest, error: ProtocolError) -> CreateTopicsResponse:
    """The same error for every topic."""
    return CreateTopicsResponse(topics=[_failed(name, error) for name in _by_name(request)])


def _by_name(request: CreateTopicsRequest) -> dict[str, CreatableTopic]:
    return {topic.name: topic for topic in request.topics}


def _twice(request: CreateTopicsRequest) -> list[str]:
    counts = Counter(topic.name for topic in request.topics)
    return [name for name, count in counts.items() if count > 1]


# What is asked


def _plan_or_error(topic: CreatableTopic, broker: Broker) -> TopicToCreate | ProtocolError:
    try:
        return _plan(topic, broker)
    except ProtocolError as error:
        return error


def _permitted(
    plan: TopicToCreate | ProtocolError, allowed: MutationPermits, room: RoomForLogs
) -> TopicToCreate | ProtocolError:
    if isinstance(plan, ProtocolError):
        return plan
    partition_count = len(plan.assignments) if plan.assignments else plan.partition_count
    try:
        allowed.take(partition_count)
        room.take(min(partition_count, PARTITIONS_PER_REQUEST_MAX))  # More is refused anyway.
    except ProtocolError as error:
        return error
    return plan


def _plan(topic: CreatableTopic, broker: Broker) -> TopicToCreate:
    check_topic_name(topic.name)
    if topic.name in broker.image.topics:
        raise TopicExists(f"Topic '{topic.name}' already exists.")
    configs = _checked_configs(topic, broker.config)
    if topic.assignments:
        return _placed_by_hand(topic, configs)
    return TopicToCreate(
        name=topic.name,
        partition_count=_or_default(topic.num_partitions, broker.config.num_partitions),
        replication_factor=_or_default(
            topic.replication_factor, broker.config.default_replication_factor
        ),
        assignments=None,
        configs=configs,
    )


def _or_default(asked: int, default: int) -> int:
    return default if asked == _DEFAULT else asked


def _checked_configs(topic: CreatableTopic, config: BrokerConfig) -> dict[str, str]:
    overrides = {entry.name: entry.value for entry in topic.configs}
    try:
        parse_topic_config(overrides, config)
    except ConfigError as error:
        raise InvalidConfiguration(str(error)) from None
    given = {name: value for name, value in overrides.items() if value is not None}
    return canonical_overrides(given)


def _placed_by_hand(topic: CreatableTopic, configs: dict[str, str]) -> TopicToCreate:
    if topic.replication_factor != _DEFAULT:
        raise InvalidRequest(
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
    if topic.num_partitions != _DEFAULT:
        raise InvalidRequest(
            "A manual partition assignment was specified, but numPartitions was not set to -1."
        )
    assignments = _assignments(topic.assignments)
    return TopicToCreate(
        name=topic.name,
        partition_count=_DEFAULT,
        replication_factor=_DEFAULT,
        assignments=assignments,
        configs=configs,
    )


def _assignments(given: list[CreatableReplicaAssignment]) -> dict[int, tuple[int, ...]]:
    assignments: dict[int, tuple[int, ...]] = {}
    for entry in given:
        index = entry.partition_index
        if index in assignments:
            raise InvalidReplicaAssignment(
                f"Found multiple manual partition assignments for partition {index}"
            )
        assignments[index] = tuple(entry.broker_ids)
    return assignments


# What came of it


def _result(
    name: str,
    plan: TopicToCreate | ProtocolError,
    outcomes: dict[str, TopicImage | ProtocolError],
    context: RequestContext,
) -> CreatableTopicResult:
    if isinstance(plan, ProtocolError):
        return _failed(name, plan)
    outcome = outcomes[name]
    if isinstance(outcome, ProtocolError):
        return _failed(name, outcome)
    result = CreatableTopicResult(name=name, topic_id=outcome.topic_id, error_message=None)
    if context.version >= _FIRST_VERSION_WITH_CONFIGS:
        result.num_partitions = len(outcome.partitions)
        result.replication_factor = len(outcome.partitions[0].replicas)
        result.configs = _described(plan, context.broker.config)
    return result


def _failed(name: str, error: ProtocolError) -> CreatableTopicResult:
    return fail(CreatableTopicResult(name=name), error)


def _described(plan: TopicToCreate, config: BrokerConfig) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.is_read_only,
            config_source=int(entry.source),
            is_sensitive=entry.is_sensitive,
        )
        for entry in describe_topic(plan.configs, config)
        # What checks schemas is no setting of Kafka's: it is told where somebody chose it.
        if entry.name in plan.configs or not entry.name.startswith(("confluent.", "penstock."))
    ]
