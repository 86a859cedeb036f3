"""The topics in which coordinators keep their state, and topics that come to life on first use.

With which settings the internal topics are made. Which of their partitions an id belongs to is in
replica/state_log.py; making topics is the controller's work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from penstock.broker.context import Broker
from penstock.broker.membership.room_for_logs import RoomForLogs
from penstock.cluster.control.controller import TopicToCreate
from penstock.cluster.topics.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.config.broker import BrokerConfig
from penstock.errors import ErrorCode, ProtocolError, TopicExists, error_for
from penstock.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from penstock.broker.membership.forwarding import Forwarder


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """How a topic would be made if somebody used it now."""

    name: str
    partition_count: int
    replication_factor: int
    configs: Mapping[str, str]


def plan_for(name: str, config: BrokerConfig, *, broker_count: int) -> TopicPlan:
    """The settings for a topic that is made because somebody used its name."""
    if name == CONSUMER_OFFSETS:
        return _consumer_offsets(config, broker_count)
    if name == TRANSACTION_STATE:
        return _transaction_state(config, broker_count)
    return TopicPlan(
        name=name,
        partition_count=config.num_partitions,
        replication_factor=config.default_replication_factor,
        configs={},
    )


def _consumer_offsets(config: BrokerConfig, broker_count: int) -> TopicPlan:
    wanted = config.offsets_topic_replication_factor
    return TopicPlan(
        name=CONSUMER_OFFSETS,
        partition_count=config.offsets_topic_num_partitions,
        replication_factor=_replicas(config, wanted, broker_count),
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
    )


def _transaction_state(config: BrokerConfig, broker_count: int) -> TopicPlan:
    wanted = config.transaction_state_log_replication_factor
    return TopicPlan(
        name=TRANSACTION_STATE,
        partition_count=config.transaction_state_log_num_partitions,
        replication_factor=_replicas(config, wanted, broker_count),
        configs={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.transaction_state_log_min_isr),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        },
    )


def _replicas(config: BrokerConfig, wanted: int, broker_count: int) -> int:
    """A broker on its own store will never have company, so it does not wait for any.

    In a cluster the setting is obeyed: with fewer brokers the topic is not made yet (KIP-115).
    """
    if config.is_in_cluster:
        return wanted
    return min(wanted, max(broker_count, 1))


async def create_on_use(broker: Broker, names: Sequence[str]) -> dict[str, ProtocolError]:
    """Make the topics with the broker's defaults; an error for each that could not be made.

    That another client was faster is no error: the topic is there.
    """
    broker_count = len(broker.image.active_brokers())
    plans = [plan_for(name, broker.config, broker_count=broker_count) for name in names]
    try:
        RoomForLogs(broker).take(sum(plan.partition_count for plan in plans))
        outcomes = await _create(broker, plans)
    except ProtocolError as error:
        return dict.fromkeys(names, error)
    return {
        name: error
        for name, error in outcomes.items()
        if error is not None and not isinstance(error, TopicExists)
    }


async def _create(broker: Broker, plans: Sequence[TopicPlan]) -> dict[str, ProtocolError | None]:
    if broker.controller is None and broker.forwarder is not None:
        return await _create_through_controller(broker, broker.forwarder, plans)
    made = await broker.acting_controller().create_topics(
        [_new_topic(plan) for plan in plans], validate_only=False
    )
    return {
        plan.name: outcome if isinstance(outcome, ProtocolError) else None
        for plan, outcome in zip(plans, made, strict=True)
    }


async def _create_through_controller(
    broker: Broker, forwarder: "Forwarder", plans: Sequence[TopicPlan]
) -> dict[str, ProtocolError | None]:
    """Ask the controller as a client would."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=plan.name,
                num_partitions=plan.partition_count,
                replication_factor=plan.replication_factor,
                configs=[
                    CreatableTopicConfig(name=name, value=value)
                    for name, value in plan.configs.items()
                ],
            )
            for plan in plans
        ],
        # The client's whole request waits for this, so it is told to retry instead.
        timeout_ms=0,
    )
    answer = await forwarder.ask(
        request,
        client_id=f"broker-{broker.broker_id}",
        listener=broker.config.inter_broker_listener_name,
    )
    return {
        topic.name: error_for(topic.error_code, topic.error_message or "")
        if topic.error_code != ErrorCode.NONE
        else None
        for topic in cast(CreateTopicsResponse, answer).topics
    }


def _new_topic(plan: TopicPlan) -> TopicToCreate:
    return TopicToCreate(
        name=plan.name,
        partition_count=plan.partition_count,
        replication_factor=plan.replication_factor,
        assignments=None,
        configs=plan.configs,
    )
