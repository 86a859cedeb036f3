"""GlobalKTable: a table every task has whole."""

from dataclasses import dataclass

from penstock.streams.plan.graph import Graph


@dataclass(frozen=True, slots=True)
class GlobalKTable:
    """A stream may look up any key in it, whatever its own key is."""

    graph: Graph
    node: str
    store: str
