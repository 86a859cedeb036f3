"""The topics of an application: inputs must be there, internal ones are made as Kafka Streams does.

A changelog is compacted; one of windows also forgets by time. A repartition topic keeps what it has
until it is purged behind its readers (`purging.py`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.client.operations.topics import (
    NewTopic,
    create_topics,
    describe_topics,
    list_topics,
)
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import CommandError, TopicExists
from penstock.streams.plan.nodes import StoreSpec, StreamsTopology
from penstock.streams.plan.stages import (
    Stage,
    changelog_topic,
    partition_counts,
    task_count,
)
from penstock.streams.running.settings import StreamsSettings
from penstock.streams.tasks.changelogs import has_changelog, retention_ms
from penstock.streams.tasks.progress import progress_topic

_TIMEOUT_MS = 30_000
_REPARTITION = {
    "cleanup.policy": "delete",
    "segment.bytes": str(50 * 1024 * 1024),
    "retention.ms": "-1",
}
_COMPACTED = {"cleanup.policy": "compact"}


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """A topic that the application makes for itself."""

    name: str
    partitions: int
    configs: Mapping[str, str]


def input_topics(topology: StreamsTopology) -> list[str]:
    """What the application reads and does not make itself."""
    read = {topic for node in topology.sources for topic in node.topics}
    return sorted(read - topology.internal_topics)


def output_topics(topology: StreamsTopology) -> list[str]:
    """What it writes for others, as far as it is known before a record comes."""
    sinks = [node for node in topology.nodes if node.kind == "sink"]
    return sorted({t for node in sinks for t in node.topics} - topology.internal_topics)


def known_counts(cluster: ClusterClient, topology: StreamsTopology) -> dict[str, int]:
    """Partitions of the user's topics; CommandError for one that does not exist."""
    there = {listing.name for listing in list_topics(cluster)}
    missing = [topic for topic in input_topics(topology) if topic not in there]
    if missing:
        raise CommandError(
            f"Missing source topics: {', '.join(missing)}. Create them before the application "
            "starts."
        )
    wanted = [*input_topics(topology), *(t for t in output_topics(topology) if t in there)]
    described = describe_topics(cluster, sorted(set(wanted)))
    return {name: len(topic.partitions) for name, topic in described.items()}


def internal_topics(
    settings: StreamsSettings,
    topology: StreamsTopology,
    stages: tuple[Stage, ...],
    counts: Mapping[str, int],
) -> list[InternalTopic]:
    """Repartition topics and changelogs, as they must be."""
    prefix = f"{settings.application_id}-"
    found = [
        InternalTopic(name=prefix + topic, partitions=counts[topic], configs=_REPARTITION)
        for topic in sorted(topology.internal_topics)
    ]
    for stage in stages:
        found += [
            InternalTopic(
                name=prefix + changelog_topic(store),
                partitions=task_count(stage, counts),
                configs=_changelog_configs(settings, stage, store),
            )
            for store in stage.topology.stores
            if has_changelog(topology, store)
        ]
        found.append(
            InternalTopic(
                name=prefix + progress_topic(stage.number),
                partitions=task_count(stage, counts),
                configs=_COMPACTED,
            )
        )
    return found


def _changelog_configs(
    settings: StreamsSettings, stage: Stage, store: StoreSpec
) -> Mapping[str, str]:
    kept_ms = retention_ms(stage.topology.by_name.get(store.node))
    if store.kind not in ("windows", "sessions"):
        return _COMPACTED
    retention = kept_ms + settings.window_retention_extra_ms
    return {"cleanup.policy": "compact,delete", "retention.ms": str(retention)}


def create_internal(
    cluster: ClusterClient, wanted: Iterable[InternalTopic], replication_factor: int
) -> list[str]:
    """Create what is missing; CommandError for one that is there with other partitions."""
    wanted = list(wanted)
    there = {listing.name for listing in list_topics(cluster)}
    described = describe_topics(cluster, [one.name for one in wanted if one.name in there])
    for one in wanted:
        if one.name in described and len(described[one.name].partitions) != one.partitions:
            actual = len(described[one.name].partitions)
            raise CommandError(
                f"Existing internal topic {one.name} has invalid partitions: expected: "
                f"{one.partitions}; actual: {actual}. Use 'penstock streams reset' or "
                "'kafka-streams-application-reset' to clean up invalid topics before processing."
            )
    missing = [one for one in wanted if one.name not in there]
    for one in missing:
        _create(cluster, one, replication_factor)
    return [one.name for one in missing]


def _create(cluster: ClusterClient, one: InternalTopic, replication_factor: int) -> None:
    new = NewTopic(
        name=one.name,
        partitions=one.partitions,
        replication_factor=replication_factor,
        configs=one.configs,
    )
    try:
        create_topics(cluster, [new], timeout_ms=_TIMEOUT_MS)
    except TopicExists:
        return  # Somebody was faster.


def counts_of(
    cluster: ClusterClient, topology: StreamsTopology, stages: tuple[Stage, ...]
) -> dict[str, int]:
    """Partitions of all topics of the topology, those to be created included."""
    return partition_counts(topology, stages, known_counts(cluster, topology))
