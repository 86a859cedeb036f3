"""The plan: nodes, their steps and their stores, as frozen data that any host can run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from penstock.streams.steps.contract import RecordStep
from penstock.streams.values.lanes import RecordLane
from penstock.streams.values.records import Intake, StreamRecord
from penstock.streams.values.serdes import Serde, SerdeError

NodeKind = Literal["source", "processor", "sink"]
StoreKind = Literal["rows", "windows", "sessions", "buffer", "user", "inner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSpec:
    """A state store: its kind says what may be asked of it, its node whose state it is."""

    name: str
    kind: StoreKind
    node: str  # The node whose step keeps it.
    key_serde: Serde[Any]
    value_serde: Serde[Any] | None = None  # Known once the plan is built.
    changelog: bool = True
    is_global: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNode:
    """A node of the topology. Parents come before it in the plan."""

    name: str
    kind: NodeKind
    parents: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()  # As described: the stores its work touches.
    topics: tuple[str, ...] = ()  # A source's topics, or the one topic of a sink.
    topic_of: Callable[[StreamRecord], str] | None = None  # A sink that chooses by record.
    intake: Intake | None = None  # A source whose records are made of more than key and value.
    step: RecordStep = field(default_factory=RecordStep)
    state: str | None = None  # Nodes with the same name here share state, clock and timers.
    table: str | None = None  # The node whose row the step looks up.
    rows_of: tuple[str, ...] = ()  # A table without a store: the nodes its rows come from.
    branches: tuple[str, ...] = ()
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    is_global: bool = False
    lane: RecordLane | None = None  # A source whose records can be taken in columns.

    def taken_in(self, record: StreamRecord, partition: int, offset: int) -> StreamRecord:
        """What a source makes of a record that was read; SerdeError where that has no time."""
        if self.intake is None:
            return record
        made = self.intake(record, partition, offset)
        if made.timestamp_ms < 0:
            raise SerdeError(f"the time that its intake gave it, {made.timestamp_ms}, is negative")
        return made


@dataclass(frozen=True, kw_only=True)
class StreamsTopology:
    """All of an application: what StreamsBuilder.build returns."""

    nodes: tuple[PlanNode, ...]
    stores: tuple[StoreSpec, ...]
    internal_topics: frozenset[str]  # Repartition topics, without the application's id.

    @cached_property
    def by_name(self) -> dict[str, PlanNode]:
        """The nodes by their names."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def children(self) -> dict[str, tuple[PlanNode, ...]]:
        """The nodes each node forwards to, in the order they were added."""
        found: dict[str, list[PlanNode]] = {node.name: [] for node in self.nodes}
        for node in self.nodes:
            for parent in node.parents:
                found[parent].append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    @property
    def sources(self) -> Iterator[PlanNode]:
        """The nodes that read topics."""
        return (node for node in self.nodes if node.kind == "source")

    def internal_topic_names(self, application_id: str) -> list[str]:
        """Repartition and changelog topics as Kafka Streams names them."""
        names = set(self.internal_topics)
        names |= {f"{store.name}-changelog" for store in self.stores if store.changelog}
        return sorted(f"{application_id}-{name}" for name in names)

    def describe(self) -> str:
        """The topology in the words of Kafka Streams' Topology.describe()."""
        from penstock.streams.plan.describe import described

        return described(self)

    def picture(self) -> str:
        """The topology as an SVG, a frame for each sub-topology."""
        from penstock.streams.plan.picture import drawn

        return drawn(self)
