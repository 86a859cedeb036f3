"""What `kafka-topics --describe` prints: a line per topic, a line per partition."""

import argparse
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from penstock.cli.topic_filter import topic_pattern
from penstock.client.admin import Admin
from penstock.client.operations.configs import (
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from penstock.client.operations.reassignments import PartitionReassignment
from penstock.client.operations.topics import PartitionDescription, TopicDescription
from penstock.client.values import Node, TopicPartition
from penstock.errors import ClusterAuthorization, CommandError, UnsupportedVersion
from penstock.protocol.primitives import uuid_from_text, uuid_text

Moves: TypeAlias = Mapping[TopicPartition, PartitionReassignment]


def describe(admin: Admin, options: argparse.Namespace) -> None:
    """Print the topics that match."""
    topics = _wanted(admin, options)
    resources = [ConfigResource(ResourceType.TOPIC, topic.name) for topic in topics]
    configs = admin.describe_configs(resources, synonyms=False) if resources else {}
    alive = {broker.node.id for broker in admin.describe_cluster().brokers}
    moves = _moves(admin) if topics else {}
    for topic in topics:
        own = configs[ConfigResource(ResourceType.TOPIC, topic.name)]
        for line in lines(topic, own, options, alive, moves):
            print(line)


def lines(
    topic: TopicDescription,
    configs: Sequence[ConfigEntry],
    options: argparse.Namespace,
    alive: set[int],
    moves: Moves = MappingProxyType({}),
) -> list[str]:
    """The lines of one topic, as the filters want them."""
    filtered = any(getattr(options, name) for name in _PARTITION_FILTERS)
    if options.topics_with_overrides:
        own = [c for c in configs if c.source is ConfigSource.DYNAMIC_TOPIC_CONFIG]
        return [header_line(topic, configs, moves)] if own else []
    shown = [] if filtered else [header_line(topic, configs, moves)]
    values = {entry.name: entry.value for entry in configs}
    for partition in topic.partitions:
        move = moves.get(TopicPartition(topic.name, partition.partition))
        if not filtered or _is_wanted(partition, values, options, alive, move):
            shown.append(partition_line(topic.name, partition, move))
    return shown


def header_line(
    topic: TopicDescription,
    configs: Sequence[ConfigEntry],
    moves: Moves = MappingProxyType({}),
) -> str:
    """`Topic: x	TopicId: ...	PartitionCount: 1	ReplicationFactor: 1	Configs: ...`."""
    changed = [c for c in configs if c.source is not ConfigSource.DEFAULT_CONFIG]
    settings = ",".join(f"{c.name}={c.value}" for c in changed)
    first = topic.partitions[0] if topic.partitions else None
    move = moves.get(TopicPartition(topic.name, first.partition)) if first else None
    replicas = _replication_factor(first, move) if first else 0
    return "\t".join(
        (
            f"Topic: {topic.name}",
            f"TopicId: {uuid_text(topic.topic_id)}",
            f"PartitionCount: {len(topic.partitions)}",
            f"ReplicationFactor: {replicas}",
            f"Configs: {settings}",
        )
    )


def partition_line(
    topic: str, partition: PartitionDescription, move: PartitionReassignment | None = None
) -> str:
    """`	Topic: x	Partition: 0	Leader: 0	Replicas: 0	Isr: 0	Elr: 	LastKnownElr: `."""
    moving: tuple[str, ...] = ()
    if move is not None:
        moving = (
            f"Adding Replicas: {_maybe(move.adding)}",
            f"Removing Replicas: {_maybe(move.removing)}",
        )
    leader = "none" if partition.leader is None else str(partition.leader.id)
    return "\t".join(
        (
            "",
            f"Topic: {topic}",
            f"Partition: {partition.partition}",
            f"Leader: {leader}",
            f"Replicas: {_ids(partition.replicas)}",
            f"Isr: {_ids(partition.isr)}",
            *moving,
            f"Elr: {_maybe(partition.elr)}",
            f"LastKnownElr: {_maybe(partition.last_known_elr)}",
        )
    )


_PARTITION_FILTERS = (
    "under_replicated_partitions",
    "unavailable_partitions",
    "under_min_isr_partitions",
    "at_min_isr_partitions",
)


def _is_wanted(
    partition: PartitionDescription,
    configs: Mapping[str, str | None],
    options: argparse.Namespace,
    alive: set[int],
    move: PartitionReassignment | None,
) -> bool:
    isr_min = int(configs.get("min.insync.replicas") or 1)
    leaderless = partition.leader is None or partition.leader.id not in alive
    expected = _replication_factor(partition, move)
    return bool(
        (options.under_replicated_partitions and len(partition.isr) < expected)
        or (options.unavailable_partitions and leaderless)
        or (options.under_min_isr_partitions and len(partition.isr) < isr_min)
        or (options.at_min_isr_partitions and len(partition.isr) == isr_min)
    )


def _replication_factor(partition: PartitionDescription, move: PartitionReassignment | None) -> int:
    """Replicas that are only coming do not count yet, or every move would look like trouble."""
    changing = {*move.adding, *move.removing} if move is not None else set()
    if move is None or not changing.intersection(node.id for node in partition.replicas):
        return len(partition.replicas)
    return len(move.replicas) - len(move.adding)


def _moves(admin: Admin) -> Moves:
    try:
        return admin.list_partition_reassignments()
    except (UnsupportedVersion, ClusterAuthorization):
        return {}  # An old broker has none to tell of; who may not know sees the rest.


def _wanted(admin: Admin, options: argparse.Namespace) -> list[TopicDescription]:
    limit = options.partition_size_limit_per_response
    if options.topic_id:
        return _by_id(admin, options)
    listed = [topic.name for topic in admin.list_topics(internal=not options.exclude_internal)]
    if options.topic:
        matches = topic_pattern(options.topic)
        listed = [name for name in listed if matches.match(name)]
        if not listed and not options.if_exists:
            raise CommandError(f"Topic '{options.topic}' does not exist as expected")
    found = admin.describe_topics(listed, partitions_per_response=limit)
    return [found[name] for name in sorted(found)]


def _by_id(admin: Admin, options: argparse.Namespace) -> list[TopicDescription]:
    try:
        topic_id = uuid_from_text(options.topic_id)
    except ValueError as error:
        raise CommandError(str(error)) from error
    known = {topic.topic_id for topic in admin.list_topics()}
    if topic_id not in known:
        if options.if_exists:
            return []
        raise CommandError(f"TopicId '{options.topic_id}' does not exist as expected")
    return list(admin.describe_topics_by_id([topic_id]).values())


def _ids(nodes: Sequence[Node]) -> str:
    return ",".join(str(node.id) for node in nodes)


def _maybe(ids: tuple[int, ...] | None) -> str:
    return "N/A" if ids is None else ",".join(str(broker_id) for broker_id in ids)
