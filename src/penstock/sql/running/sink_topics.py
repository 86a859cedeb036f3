"""The topics behind streams and tables: there, created as the WITH clause says, or refused."""

from collections.abc import Mapping

from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import Relation
from penstock.sql.language.statements import CreateSource
from penstock.sql.running.ports import TopicPort, TopicShape
from penstock.streams import StreamsTopology, TopologyError
from penstock.streams.plan.outline import differences, outline_of
from penstock.streams.plan.stages import cut, partition_counts

BROKERS_CHOICE = -1


def ensure_source(relation: Relation, statement: CreateSource, topics: TopicPort) -> None:
    """The topic of CREATE STREAM or TABLE; without PARTITIONS it must be there."""
    found = topics.find(relation.topic)
    if found is not None:
        _check_same(found, relation)
        return
    if relation.partitions is None:
        raise StatementRefused(
            f"Topic '{relation.topic}' does not exist. If you want to create a new topic for the "
            f"{relation.kind.lower()} please re-run the statement providing the required "
            f"'PARTITIONS' configuration in the WITH clause (and optionally 'REPLICAS'). For "
            f"example: WITH (KAFKA_TOPIC='{relation.topic}', PARTITIONS=3, REPLICAS=1, ...)",
            place=statement.at,
        )
    _create(relation, relation.partitions, topics)


def ensure_sink(relation: Relation, first_source: Relation, topics: TopicPort) -> None:
    """The topic that a query writes to; as many partitions as its source unless told."""
    found = topics.find(relation.topic)
    if found is not None:
        _check_same(found, relation)
        return
    source = topics.find(first_source.topic)
    if source is None:
        raise StatementRefused(f"Source topic {first_source.topic} does not exist.")
    _create(relation, relation.partitions or source.partitions, topics)


def check_partitions(topology: StreamsTopology, topics: TopicPort) -> None:
    """What is joined must lie in as many partitions; StatementRefused if it does not."""
    _outline(topology, topics)


def check_replaced_plan(before: StreamsTopology, after: StreamsTopology, topics: TopicPort) -> None:
    """A query with state may be replaced by one whose state is the same; StatementRefused: not."""
    if not (before.stores or after.stores):
        return
    changed = differences(_outline(before, topics), _outline(after, topics))
    if changed:
        raise StatementRefused(
            "Upgrades not yet supported: the query keeps state, and the new one could not go on "
            f"with it: {'; '.join(changed)}. DROP it and create it anew."
        )


def _outline(topology: StreamsTopology, topics: TopicPort) -> dict[str, object]:
    counts = _counts(topology, topics)
    stages = cut(topology)
    try:
        return outline_of(stages, partition_counts(topology, stages, counts), 1)
    except TopologyError as error:
        raise StatementRefused(
            f"The query cannot run: {error}. Lay one side anew with PARTITION BY and WITH "
            "(PARTITIONS=...)."
        ) from None


def _counts(topology: StreamsTopology, topics: TopicPort) -> dict[str, int]:
    read = {topic for node in topology.sources for topic in node.topics}
    counts = {}
    for topic in sorted(read - topology.internal_topics):
        found = topics.find(topic)
        if found is None:
            raise StatementRefused(f"Source topic {topic} does not exist.")
        counts[topic] = found.partitions
    return counts


def _check_same(found: TopicShape, relation: Relation) -> None:
    wanted = relation.partitions or found.partitions
    copies = relation.replicas or found.replication
    if (wanted, copies) != (found.partitions, found.replication):
        raise StatementRefused(
            f"A Kafka topic with the name '{found.name}' already exists, with different partition/"
            f"replica configuration than required. KSQL expects {wanted} partitions (topic has "
            f"{found.partitions}), and {copies} replication factor (topic has "
            f"{found.replication})."
        )


def _create(relation: Relation, partitions: int, topics: TopicPort) -> None:
    topics.create(
        relation.topic,
        partitions=partitions,
        replicas=relation.replicas or BROKERS_CHOICE,
        configs=topic_configs(relation),
    )


def topic_configs(relation: Relation) -> Mapping[str, str]:
    """A table keeps the last row of each key; one of windows forgets by time if it is told to.

    Records have the times of events, which may be old: nothing is forgotten that nobody said.
    """
    configs = {}
    if relation.kind == "TABLE":
        is_kept = relation.key_window is None or relation.retention_ms is None
        configs["cleanup.policy"] = "compact" if is_kept else "compact,delete"
    if relation.retention_ms is not None:
        configs["retention.ms"] = str(relation.retention_ms)
    return configs
