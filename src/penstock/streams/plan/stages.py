"""A plan cut into stages: Kafka Streams' sub-topologies, with topics between them.

A stage reads topics, works partition by partition and writes topics. Task 3 of a stage has
partition 3 of everything it reads and of every store it keeps, as in Kafka Streams; so what meets
in a stage must lie in the same number of partitions, and a repartition topic sees to it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.streams.plan.describe import subtopologies
from penstock.streams.plan.graph import TopologyError
from penstock.streams.plan.nodes import PlanNode, StoreSpec, StreamsTopology
from penstock.streams.steps.foreign_key import (
    AnswerSubscribers,
    AnswerSubscription,
    SubscribeRows,
)
from penstock.streams.steps.stateless import RegroupRows

# What these steps send are no plain values: the topic behind them is in a format of our own.
_OWN_FORMAT = (RegroupRows, SubscribeRows, AnswerSubscription, AnswerSubscribers)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of the topology that runs as one query."""

    number: int
    topology: StreamsTopology  # Of its nodes and stores alone.

    @property
    def topics(self) -> list[str]:
        """What it reads partition by partition, without the application's id."""
        sources = [node for node in self.topology.sources if not node.is_global]
        return sorted({topic for node in sources for topic in node.topics})

    @property
    def global_topics(self) -> list[str]:
        """What every task reads whole."""
        sources = [node for node in self.topology.sources if node.is_global]
        return sorted({topic for node in sources for topic in node.topics})

    @property
    def sinks(self) -> list[PlanNode]:
        """The nodes that write topics."""
        return [node for node in self.topology.nodes if node.kind == "sink"]

    @property
    def has_state(self) -> bool:
        """Whether a task remembers anything from record to record."""
        nodes = self.topology.nodes
        return bool(self.topology.stores) or any(_is_users(node) for node in nodes)


def cut(topology: StreamsTopology) -> tuple[Stage, ...]:
    """The stages, numbered as Kafka Streams numbers sub-topologies."""
    groups = subtopologies(topology)
    globals_ = [node for group in groups for node in group if node.is_global]
    stages = []
    for number, group in enumerate(groups):
        if any(node.is_global for node in group):
            continue
        members = [*_global_part(group, globals_), *group]
        stages.append(Stage(number=number, topology=_part(topology, members)))
    return tuple(stages)


def own_format_topics(topology: StreamsTopology) -> frozenset[str]:
    """Internal topics whose values are changes or subscriptions, which no serde can write."""
    by_name = topology.by_name
    return frozenset(
        topic
        for node in topology.nodes
        if node.kind == "sink"
        and any(isinstance(by_name[parent].step, _OWN_FORMAT) for parent in node.parents)
        for topic in node.topics
        if topic in topology.internal_topics
    )


def changelog_topic(store: StoreSpec) -> str:
    """The topic of a store's rows, without the application's id."""
    return f"{store.name}-changelog"


def partition_counts(
    topology: StreamsTopology, stages: tuple[Stage, ...], known: Mapping[str, int]
) -> dict[str, int]:
    """How many partitions each topic of the topology has or gets; TopologyError tells what clashes.

    `known` has the user's topics. A repartition topic gets as many as the stage before it has
    tasks, or as many as what it is joined with.
    """
    counts = {topic: n for topic, n in known.items() if topic not in topology.internal_topics}
    groups = [group for stage in stages for group in _copartitioned(stage)]
    for _ in range(len(topology.internal_topics) + 1):
        before = dict(counts)
        _size_repartitions(topology, stages, counts)
        for group in groups:
            _level(group, topology.internal_topics, counts)
        if counts == before:
            break
    missing = sorted(topology.internal_topics - counts.keys())
    if missing:
        raise TopologyError(
            "Failed to compute number of partitions for all repartition topics, make sure all user "
            f"input topics are created: {', '.join(missing)}"
        )
    return counts


def task_count(stage: Stage, counts: Mapping[str, int]) -> int:
    """How many tasks a stage has: one for each partition of its widest topic."""
    return max(counts[topic] for topic in stage.topics)


def _size_repartitions(
    topology: StreamsTopology, stages: tuple[Stage, ...], counts: dict[str, int]
) -> None:
    for stage in stages:
        widths = [counts[topic] for topic in stage.topics if topic in counts]
        written = {t for sink in stage.sinks for t in sink.topics} & topology.internal_topics
        for topic in written - counts.keys() if widths else ():
            counts[topic] = max(widths)


def _level(group: set[str], internal: frozenset[str], counts: dict[str, int]) -> None:
    """Give the repartition topics of a group the width of the others; refuse others that differ."""
    users = {topic: counts[topic] for topic in sorted(group - internal) if topic in counts}
    if len(set(users.values())) > 1:
        told = ", ".join(f"{topic} has {n} partitions" for topic, n in users.items())
        raise TopologyError(
            f"Invalid topology: Topics not co-partitioned: [{','.join(users)}]: {told}. What is "
            "joined by key needs the same number; put repartition() before the join."
        )
    known = [counts[topic] for topic in group & internal if topic in counts]
    width = next(iter(users.values()), max(known, default=None))
    if width is not None:
        counts.update(dict.fromkeys(group & internal, width))


def _copartitioned(stage: Stage) -> Iterator[set[str]]:
    """Sets of topics whose records of one key must come to one task."""
    nodes = stage.topology.by_name
    sharing: dict[str, set[str]] = {}
    for node in nodes.values():
        if node.state is not None and not node.is_global:
            sharing.setdefault(node.state, set()).update(_topics_above(nodes, node.name))
        if node.table is not None and not nodes[node.table].is_global:
            yield _topics_above(nodes, node.name) | _topics_above(nodes, node.table)
    yield from (topics for topics in sharing.values() if len(topics) > 1 and _joins(nodes, topics))


def _joins(nodes: Mapping[str, PlanNode], topics: set[str]) -> bool:
    """Whether the topics come by several ways: topics of one source or one merge need not agree."""
    users: dict[str, list[set[str]]] = {}
    for node in nodes.values():
        if node.state is not None:
            users.setdefault(node.state, []).append(_topics_above(nodes, node.name))
    return any(len(ways) > 1 and set().union(*ways) == topics for ways in users.values())


def _topics_above(nodes: Mapping[str, PlanNode], name: str) -> set[str]:
    node = nodes[name]
    if node.kind == "source":
        return set() if node.is_global else set(node.topics)
    return {topic for parent in node.parents for topic in _topics_above(nodes, parent)}


def _global_part(group: list[PlanNode], globals_: list[PlanNode]) -> list[PlanNode]:
    """The global tables a group looks into, and their sources."""
    wanted = {node.table for node in group if node.table is not None}
    tables = [node for node in globals_ if node.name in wanted]
    sources = {parent for table in tables for parent in table.parents}
    return [node for node in globals_ if node.name in sources or node in tables]


def _part(topology: StreamsTopology, members: list[PlanNode]) -> StreamsTopology:
    used = {store for node in members for store in (*node.stores, node.state)}
    return StreamsTopology(
        nodes=tuple(map(_in_a_stage, members)),
        stores=tuple(store for store in topology.stores if store.name in used),
        internal_topics=topology.internal_topics,
    )


def _in_a_stage(node: PlanNode) -> PlanNode:
    """The node where the stages behind it answer later, not at once as in the test driver."""
    if not isinstance(node.step, SubscribeRows):
        return node
    return replace(node, step=replace(node.step, every_version=True))


def _is_users(node: PlanNode) -> bool:
    from penstock.streams.steps.user import UserStep

    return isinstance(node.step, UserStep)
