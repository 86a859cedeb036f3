"""What the tasks of both lanes need of their worker's settings: offsets, topics, consumers."""

import re
from collections.abc import Mapping

from penstock.client.admin import Admin
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.running.source_offsets import SourceOffsets, read_offsets
from penstock.connect.running.spec import TaskSpec
from penstock.connect.running.topic_creation import TopicMaker, topic_rules
from penstock.connect.store.state_log import prepare_topic


def topic_maker(spec: TaskSpec) -> TopicMaker:
    """Makes the topics of a source that are not there, where the worker allows it."""
    rules = topic_rules(spec.connector_config) if spec.settings.creates_topics else ()
    client = spec.settings.client_for("admin", spec.connector_config, "admin")
    return TopicMaker(rules, lambda: Admin(client))


def offset_topic(spec: TaskSpec) -> str:
    """The worker's, or one that the connector has for itself."""
    topics = spec.settings.topics
    assert topics is not None
    own = spec.connector_config.get("offsets.storage.topic")
    if not own or own == topics.offsets:
        return topics.offsets
    with Admin(spec.settings.client) as admin:
        prepare_topic(
            admin,
            own,
            partitions=topics.offset_partitions,
            replication_factor=topics.offset_replicas,
        )
    return own


def load_offsets(spec: TaskSpec, known: SourceOffsets) -> None:
    """All that is kept of the connector; call it when whoever wrote before is fenced."""
    for record in spec.offsets:
        known.take(record.key, record.value)
    if spec.settings.topics is not None:
        read_offsets(spec.settings.topics.offsets, spec.settings.client, known)
        own = spec.connector_config.get("offsets.storage.topic")
        if own and own != spec.settings.topics.offsets:
            read_offsets(own, spec.settings.client, known)


def consumer_settings(spec: TaskSpec) -> dict[str, str]:
    """The consumer of a sink's task: the connector's group, commits by hand."""
    return {
        "auto.offset.reset": "earliest",
        "client.id": f"connector-consumer-{spec.name}",
        **spec.settings.client_for("consumer", spec.connector_config, "consumer"),
        "group.id": spec.sink_group,
        "enable.auto.commit": "false",
    }


def subscription(config: Mapping[str, str]) -> "list[str] | re.Pattern[str]":
    """The topics of a sink, by name or by pattern."""
    if config.get("topics.regex"):
        return re.compile(config["topics.regex"])
    topics = [word.strip() for word in config.get("topics", "").split(",") if word.strip()]
    if not topics:
        raise ConnectError("A sink needs topics or topics.regex.")
    return topics
