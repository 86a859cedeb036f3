"""Results that wait for the end of a batch, so that a key's records of a batch give one.

What Kafka Streams' record cache does: an aggregate's row is up to date at once for whoever looks it
up, and only the last of its changes is sent on. The others cost as much as the last to be made,
written and read, and nobody misses them.
"""

from penstock.streams.plan.nodes import PlanNode, StreamsTopology
from penstock.streams.steps.aggregates import AggregateRows, AggregateStream, AggregateWindows
from penstock.streams.steps.contract import RecordStep
from penstock.streams.steps.user import UserStep
from penstock.streams.values.records import StreamRecord, TimeWindow, Windowed

# By key and window: the last change, and the node that made it.
Held = dict[tuple[bytes, TimeWindow | None], tuple[PlanNode, StreamRecord]]


def held_nodes(topology: StreamsTopology) -> frozenset[str]:
    """The aggregates whose results may wait: nothing behind them remembers, joins or is a user's.

    Who waits for time to pass, or sets one table's change beside another's row, has to see each
    result when it is made; and who asks for old rows regroups them, where a group that a row only
    passed through would not come to be.
    """
    return frozenset(
        node.name
        for node in topology.nodes
        if _sends_new_alone(node.step) and _is_simple_behind(topology, node)
    )


def _sends_new_alone(step: RecordStep) -> bool:
    if isinstance(step, AggregateStream | AggregateRows | AggregateWindows):
        return not step.sends_old
    return False


def _is_simple_behind(topology: StreamsTopology, node: PlanNode) -> bool:
    return all(
        child.kind == "sink" or (_is_simple(child) and _is_simple_behind(topology, child))
        for child in topology.children[node.name]
    )


def _is_simple(node: PlanNode) -> bool:
    alone = node.state is None and node.table is None and len(node.rows_of) <= 1
    return alone and not isinstance(node.step, UserStep)


def hold(held: Held, node: PlanNode, key: bytes, records: tuple[StreamRecord, ...]) -> None:
    """Keep changes of a key's row in the place of those before them, of each window by itself."""
    for record in records:
        place = key, record.key.window if isinstance(record.key, Windowed) else None
        held.pop(place, None)  # So that it comes after all that changed before it.
        held[place] = node, record
