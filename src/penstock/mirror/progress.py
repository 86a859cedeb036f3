"""How a mirror is doing, asked of the clusters alone: what was copied, and what is left."""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

from penstock.client.operations.group_offsets import group_offsets
from penstock.client.wire.raw_cluster import cluster_for
from penstock.mirror.config import Flow, MirrorConfig
from penstock.mirror.copying.reading import bounds_of
from penstock.mirror.topics import is_copied, sizes_of
from penstock.records.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProgress:
    """A topic of a flow."""

    flow: str
    topic: str  # As the source calls it.
    partitions: int
    copied: int  # Offsets behind the mirror, which count markers and holes as well.
    lag: int  # Offsets between the mirror and the end of what is committed.


def progress_of(config: MirrorConfig, flow: Flow) -> list[TopicProgress]:
    """All topics of a flow, by name."""
    with ExitStack() as stack:
        source = stack.enter_context(cluster_for(config.client(flow.source, "admin")))
        target = stack.enter_context(cluster_for(config.client(flow.target, "admin")))
        sizes = {name: n for name, n in sizes_of(source).items() if is_copied(flow, name)}
        partitions = [TopicPartition(name, at) for name, n in sizes.items() for at in range(n)]
        if not partitions:
            return []
        committed = group_offsets(target, flow.positions_group)
        edges = bounds_of(source, partitions, read_committed=True)
    positions = {}
    for at in partitions:
        there = TopicPartition(flow.policy.remote(flow.source, at.topic), at.partition)
        positions[at] = committed[there].offset if there in committed else None
    return [_topic(flow, name, n, positions, edges) for name, n in sorted(sizes.items())]


def _topic(
    flow: Flow,
    name: str,
    size: int,
    positions: dict[TopicPartition, int | None],
    edges: dict[TopicPartition, tuple[int, int]],
) -> TopicProgress:
    copied = lag = 0
    for at in (TopicPartition(name, index) for index in range(size)):
        start, end = edges[at]
        position = positions[at]
        copied += 0 if position is None else max(0, position - start)
        lag += max(0, end - (start if position is None else position))
    return TopicProgress(flow=flow.name, topic=name, partitions=size, copied=copied, lag=lag)


def table_of(topics: Iterable[TopicProgress]) -> str:
    """One line for each topic, under a heading."""
    rows = [("FLOW", "TOPIC", "PARTITIONS", "COPIED", "LAG")]
    rows += [
        (one.flow, one.topic, str(one.partitions), str(one.copied), str(one.lag)) for one in topics
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
