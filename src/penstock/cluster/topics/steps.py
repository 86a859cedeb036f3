"""Topics written down, grown and removed, so that nobody ever sees half of one.

Up to a size this is one multi. A larger topic takes several, because a ZooKeeper bounds what one
may hold: its own node first says which partition numbers are unsettled, their nodes are made or
removed in batches, and a last write settles it. Readers count only what the topic's own node
lists. A controller that finds a topic unsettled removes what its predecessor left.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from penstock.cluster import znodes
from penstock.cluster.control.fenced_writes import FencedWrites
from penstock.cluster.image.image import PartitionImage, TopicImage
from penstock.cluster.image.load import Unsettled, read_nodes
from penstock.cluster.znodes import TopicNode
from penstock.meta.store import Create, Delete, Op, Set

T = TypeVar("T")

_OPS_PER_PARTITION = 2  # Its node and its state.
_OPS_PER_TOPIC = 4  # Its node, its id, the one above its partitions, its settings.


def topic_node(topic: TopicImage) -> TopicNode:
    partitions = topic.partitions.items()
    return TopicNode(
        topic_id=topic.topic_id,
        partitions={number: partition.replicas for number, partition in partitions},
        adding={number: p.adding for number, p in partitions if p.adding},
        removing={number: p.removing for number, p in partitions if p.removing},
    )


def op_count(partition_count: int) -> int:
    """How many operations make or remove a topic at once."""
    return partition_count * _OPS_PER_PARTITION + _OPS_PER_TOPIC


def creation_ops(topic: TopicImage, config: Op) -> list[Op]:
    """All of a small topic; `config` writes its settings."""
    return [
        *_first_creation_ops(topic, topic_node(topic)),
        *_partition_creations(topic.name, topic.partitions.items()),
        config,
    ]


async def create_large(writes: FencedWrites, topic: TopicImage, config: Op) -> int:
    """Returns the version its node has in the end."""
    node = topic_node(topic)
    begun = node._replace(partitions={}, unsettled=(0, len(topic.partitions)))
    await writes.commit(_first_creation_ops(topic, begun))
    await _create_partitions(writes, topic.name, topic.partitions)
    await writes.commit([Set(znodes.topic_path(topic.name), node.encode(), 0), config])
    return 1


async def grow(writes: FencedWrites, before: TopicImage, after: TopicImage, version: int) -> int:
    """Add the partitions `after` has more; returns the new version of the topic's node."""
    path, node = znodes.topic_path(after.name), topic_node(after)
    added = {n: p for n, p in after.partitions.items() if n not in before.partitions}
    if op_count(len(added)) <= writes.ops_max:
        created = _partition_creations(after.name, added.items())
        await writes.commit([Set(path, node.encode(), version), *created])
        return version + 1
    begun = topic_node(before)._replace(unsettled=(min(added), max(added) + 1))
    await writes.commit([Set(path, begun.encode(), version)])
    await _create_partitions(writes, after.name, added)
    await writes.commit([Set(path, node.encode(), version + 1)])
    return version + 2


async def delete(
    writes: FencedWrites, topic: TopicImage, version: int, config: Sequence[Op]
) -> None:
    """`config` removes its settings. The topic is gone from the first write on."""
    path = znodes.topic_path(topic.name)
    if op_count(len(topic.partitions)) <= writes.ops_max:
        await writes.commit(deletion_ops(topic, config))
        return
    node = topic_node(topic)._replace(
        partitions={},
        adding={},
        removing={},
        unsettled=(0, len(topic.partitions)),
    )
    await writes.commit([Set(path, node.encode(), version), *config])
    await settle(writes, Unsettled(topic.name, node, version + 1))


def deletion_ops(topic: TopicImage, config: Sequence[Op]) -> list[Op]:
    """All of a small topic; `config` removes its settings."""
    return [
        *_removal_ops(topic.name, topic.partitions),
        *_last_removal_ops(topic.name, topic.topic_id),
        *config,
    ]


async def settle(writes: FencedWrites, left: Unsettled) -> int | None:
    """Remove partitions that do not count; returns the topic's new version, None if it is gone."""
    first, end = left.node.unsettled or (0, 0)
    numbers = [n for n in range(first, end) if n not in left.node.partitions]
    for some in in_batches(numbers, writes.ops_max // _OPS_PER_PARTITION):
        await writes.commit(await _removals_of_existing(writes, left.name, some))
    if not left.node.partitions:
        await writes.commit(_last_removal_ops(left.name, left.node.topic_id))
        return None
    settled = left.node._replace(unsettled=None)
    path = znodes.topic_path(left.name)
    await writes.commit([Set(path, settled.encode(), left.version)])
    return left.version + 1


async def _removals_of_existing(
    writes: FencedWrites, topic: str, numbers: Sequence[int]
) -> list[Op]:
    paths = [znodes.partition_path(topic, number) for number in numbers]
    found = await read_nodes(writes.store, paths)
    return _removal_ops(topic, [n for n, node in zip(numbers, found, strict=True) if node])


async def _create_partitions(
    writes: FencedWrites, topic: str, partitions: Mapping[int, PartitionImage]
) -> None:
    for some in in_batches(list(partitions.items()), writes.ops_max // _OPS_PER_PARTITION):
        await writes.commit(_partition_creations(topic, some))


def _partition_creations(topic: str, partitions: Iterable[tuple[int, PartitionImage]]) -> list[Op]:
    ops: list[Op] = []
    for number, partition in partitions:
        ops.append(Create(znodes.partition_path(topic, number)))
        state = znodes.encode_state(partition.state)
        ops.append(Create(znodes.state_path(topic, number), state))
    return ops


def _removal_ops(topic: str, numbers: Iterable[int]) -> list[Op]:
    # Any version: a leader may still be writing its in-sync set, and it loses.
    return [
        Delete(path)
        for number in numbers
        for path in (znodes.state_path(topic, number), znodes.partition_path(topic, number))
    ]


def _first_creation_ops(topic: TopicImage, node: TopicNode) -> list[Op]:
    return [
        Create(znodes.topic_path(topic.name), node.encode()),
        Create(znodes.topic_id_path(topic.topic_id)),
        Create(znodes.partitions_path(topic.name)),
    ]


def _last_removal_ops(topic: str, topic_id: bytes) -> list[Op]:
    return [
        Delete(znodes.partitions_path(topic)),
        Delete(znodes.topic_id_path(topic_id)),
        Delete(znodes.topic_path(topic)),
    ]


def in_batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
