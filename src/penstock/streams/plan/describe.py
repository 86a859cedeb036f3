"""Topology.describe(): sub-topologies, nodes and stores, letter for letter as Kafka Streams."""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.streams.plan.nodes import PlanNode, StreamsTopology


def described(topology: StreamsTopology) -> str:
    """The whole text."""
    groups = subtopologies(topology)
    parts = [_group_text(topology, number, group) for number, group in enumerate(groups)]
    return "Topologies:\n   " + "  ".join(parts) if parts else "Topologies:\n "


def subtopologies(topology: StreamsTopology) -> list[list[PlanNode]]:
    """Nodes that are joined by an edge or a store; numbered by their sources' names."""
    leader = {node.name: node.name for node in topology.nodes}

    def find(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    users: dict[str, str] = {}
    for node in topology.nodes:
        links = [*node.parents, *(users.setdefault(store, node.name) for store in node.stores)]
        for other in links:
            leader[find(other)] = find(node.name)
    sources = sorted(node.name for node in topology.sources)
    others = sorted(node.name for node in topology.nodes if node.kind != "source")
    order = dict.fromkeys(find(name) for name in [*sources, *others])
    members: dict[str, list[PlanNode]] = {name: [] for name in order}
    for node in topology.nodes:
        members[find(node.name)].append(node)
    return list(members.values())


def _group_text(topology: StreamsTopology, number: int, group: list[PlanNode]) -> str:
    links = _linked(group)
    is_global = any(node.is_global for node in group)
    mark = " for global store (will not generate tasks)" if is_global else ""
    ordered = sorted(group, key=lambda node: (-links.sizes[node.name], node.name))
    lines = "".join(f"    {_node_text(node, links)}\n" for node in ordered)
    return f"Sub-topology: {number}{mark}\n{lines}" + ("" if is_global else "\n")


@dataclass(slots=True)
class _Links:
    """A group's edges, in the order Kafka Streams prints them.

    Neighbours are sorted, as they are found, by how many nodes were known below each at that
    moment, the biggest first. The moments follow from the order of a Java HashMap.
    """

    sizes: dict[str, int]
    before: dict[str, list[str]]
    after: dict[str, list[str]]

    def insert(self, row: list[str], name: str) -> None:
        """Put a neighbour in its place."""
        place = 0
        while place < len(row) and self._rank(row[place]) < self._rank(name):
            place += 1
        row.insert(place, name)

    def grow(self, name: str, by: int) -> None:
        """Count nodes below a node, and below all above it."""
        self.sizes[name] += by
        for parent in self.before[name]:
            self.grow(parent, by)

    def _rank(self, name: str) -> tuple[int, str]:
        return -self.sizes[name], name


def _linked(group: list[PlanNode]) -> _Links:
    nodes = {node.name: node for node in group}
    links = _Links(
        sizes=dict.fromkeys(nodes, 1),
        before={name: [] for name in nodes},
        after={name: [] for name in nodes},
    )
    for name in java_hash_order(nodes):
        for parent in nodes[name].parents:
            links.insert(links.before[name], parent)
            links.insert(links.after[parent], name)
            links.grow(parent, links.sizes[name])
    return links


def _node_text(node: PlanNode, links: _Links) -> str:
    after = ", ".join(links.after[node.name]) or "none"
    before = ", ".join(links.before[node.name]) or "none"
    if node.kind == "source":
        topics = ", ".join(java_hash_order(node.topics))
        return f"Source: {node.name} (topics: [{topics}])\n      --> {after}"
    if node.kind == "sink":
        target = f"topic: {node.topics[0]}" if node.topics else "extractor class: by record"
        return f"Sink: {node.name} ({target})\n      <-- {before}"
    stores = ", ".join(java_hash_order(node.stores))
    head = f"Processor: {node.name} (stores: [{stores}])"
    return f"{head}\n      --> {after}\n      <-- {before}"


def java_hash_order(names: Iterable[str]) -> list[str]:
    """The order in which a Java HashMap or HashSet gives strings: by the low bits of a hash."""
    known = list(names)
    size = 16
    while len(known) > size * 3 // 4:
        size *= 2
    return sorted(known, key=lambda name: _spread_hash(name) % size)


def _spread_hash(text: str) -> int:
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value ^ (value >> 16)
