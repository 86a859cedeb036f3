"""The topic of the schemas before anybody uses it: created if it is not there, judged if it is.

It must be compacted: a topic that deletes by age would lose schemas that messages still refer to.
One partition, because the order of its records is the order of what happened.
"""

import logging

from penstock.client.admin import Admin
from penstock.client.operations.configs import ConfigResource, ResourceType
from penstock.client.operations.topics import NewTopic, TopicDescription
from penstock.errors import (
    ConfigError,
    InvalidReplicationFactor,
    TopicExists,
    UnknownTopicOrPartition,
)
from penstock.registry.service.config import RegistryConfig

log = logging.getLogger("penstock.registry")


def prepare_topic(config: RegistryConfig) -> str:
    """Create the topic or look at it; ConfigError says why schemas would not be safe in it.

    Returns the id of the Kafka cluster.
    """
    timeout_ms = int(config.start_timeout_s * 1000)
    with Admin(config.client, default_api_timeout_ms=timeout_ms) as admin:
        try:
            found = admin.describe_topics([config.topic])
        except UnknownTopicOrPartition:
            found = _create(admin, config)
        check_partitions(found[config.topic])
        check_policy(config.topic, _policy(admin, config.topic))
        return admin.describe_cluster().cluster_id or ""


def check_partitions(topic: TopicDescription) -> None:
    """One partition, or there is no order."""
    count = len(topic.partitions)
    if count != 1:
        raise ConfigError(
            f"The topic {topic.name} has {count} partitions: schemas need one with a single one."
        )


def check_policy(topic: str, policy: str) -> None:
    """Compacted and nothing else."""
    if policy.replace(" ", "") != "compact":
        raise ConfigError(
            f"The topic {topic} has cleanup.policy={policy}, which would delete schemas that are in"
            " use: set it to compact with kafka-configs and start again."
        )


def _create(admin: Admin, config: RegistryConfig) -> dict[str, TopicDescription]:
    brokers = len(admin.describe_cluster().brokers)
    factor = min(config.replication_factor, brokers)
    if factor < config.replication_factor:
        log.warning(
            "The topic %s gets %d of the %d replicas that were asked for: there are no more brokers"
            " now",
            config.topic,
            factor,
            config.replication_factor,
        )
    new = NewTopic(
        name=config.topic,
        partitions=1,
        replication_factor=factor,
        configs={"cleanup.policy": "compact"},
    )
    try:
        admin.create_topics([new])
    except TopicExists:
        pass  # Another one was faster; what it made is judged like any other.
    except InvalidReplicationFactor as error:
        raise ConfigError(f"The topic {config.topic} could not be created: {error}") from error
    return admin.describe_topics([config.topic])


def _policy(admin: Admin, topic: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = admin.describe_configs([resource], synonyms=False)[resource]
    return next((entry.value or "" for entry in entries if entry.name == "cleanup.policy"), "")
