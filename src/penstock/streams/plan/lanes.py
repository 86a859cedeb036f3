"""Which stages go through a lane, and how a plan gets one."""

from dataclasses import replace

from penstock.streams.plan.nodes import PlanNode, StreamsTopology
from penstock.streams.steps.aggregates import AggregateStream, AggregateWindows
from penstock.streams.steps.suppress import HoldBack
from penstock.streams.tasks.holding import held_nodes
from penstock.streams.values.lanes import LaneTally, RecordLane


def with_lane(
    topology: StreamsTopology, topic: str, lane: RecordLane, tally: LaneTally | None = None
) -> StreamsTopology:
    """The plan with a lane from a topic's source; `tally` adds up what comes to its end."""
    nodes = (
        replace(node, lane=lane) if topic in node.topics and node.kind == "source"
        else node if tally is None else _adding(node, tally)
        for node in topology.nodes
    )  # fmt: skip
    return replace(topology, nodes=tuple(nodes))


def _adding(node: PlanNode, tally: LaneTally) -> PlanNode:
    step = node.step
    if isinstance(step, AggregateStream | AggregateWindows):
        return replace(node, step=replace(step, lane_tally=tally))
    return node


def has_lane(topology: StreamsTopology, *, merges: bool) -> bool:
    """Whether a stage goes through a lane: results that merge must be allowed to."""
    sources = list(topology.sources)
    if len(sources) != 1 or sources[0].lane is None or len(sources[0].topics) != 1:
        return False
    if not topology.stores:
        return sum(node.kind == "sink" for node in topology.nodes) == 1
    return merges and _gives_one_result(topology)


def _gives_one_result(topology: StreamsTopology) -> bool:
    """Whether what adds up sends one result for a key and batch, or final ones alone."""
    added = [node for node in topology.nodes if _has_tally(node)]
    if len(added) != 1:
        return False
    behind = topology.children[added[0].name]
    waits = all(isinstance(child.step, HoldBack) and child.step.is_final for child in behind)
    return waits or added[0].name in held_nodes(topology)


def _has_tally(node: PlanNode) -> bool:
    step = node.step
    return isinstance(step, AggregateStream | AggregateWindows) and step.lane_tally is not None


def adding_node(topology: StreamsTopology) -> PlanNode:
    """What adds up the records that come in a stage's lane."""
    return next(node for node in topology.nodes if _has_tally(node))
