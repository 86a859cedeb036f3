"""Offsets of a query: their JSON, how much of them a batch takes, and how many tasks share it.

Pure: what the cluster says comes in as values. The JSON is the one of Spark's own Kafka source, so
a checkpoint's offsets can be read, and copied into `startingOffsets`, by those who know that.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from penstock.client.values import TopicPartition

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """Records to read from one partition: from `start` up to, not including, `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def flat(nested: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """`{"topic": {"0": 5}}` by partition."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in nested.items()
        for partition, offset in partitions.items()
    }


def nested(offsets: Offsets) -> dict[str, dict[str, int]]:
    """The JSON form, in one order: Spark compares offsets as text to see whether any moved."""
    found: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return found


def limited(start: Offsets, end: Offsets, limit: int) -> dict[TopicPartition, int]:
    """The end of a batch of at most `limit` offsets, shared by how much each partition has.

    Every partition that has records gets at least one while there are enough to share, so none
    waits for ever behind a larger one.
    """
    sizes = {p: end[p] - start[p] for p in end if p in start and end[p] > start[p]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(end)
    shares = _shares(sizes, limit)
    return {p: start[p] + shares[p] if p in shares else end[p] for p in end}


def _shares(sizes: Mapping[TopicPartition, int], limit: int) -> dict[TopicPartition, int]:
    least = 1 if limit >= len(sizes) else 0
    rest, total = limit - least * len(sizes), sum(sizes.values()) - least * len(sizes)
    exact = {p: divmod(rest * (size - least), total) for p, size in sizes.items()}
    shares = {p: least + whole for p, (whole, _) in exact.items()}
    left = limit - sum(shares.values())
    by_remainder = sorted(sizes, key=lambda p: (-exact[p][1], p))
    for partition in by_remainder[:left]:
        shares[partition] += 1
    return shares


def available(start: Offsets, end: Offsets) -> int:
    """How many offsets lie between."""
    return sum(max(0, end[p] - start[p]) for p in end if p in start)


def split(
    ranges: Iterable[OffsetRange],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
) -> list[OffsetRange]:
    """The ranges cut so that there are enough of them, and none is too long; empty ones go."""
    whole = sorted((r for r in ranges if r.size > 0), key=lambda r: r.partition)
    total = sum(r.size for r in whole)
    pieces: list[OffsetRange] = []
    for one in whole:
        count = 1
        if max_records is not None:
            count = -(-one.size // max_records)
        if min_partitions is not None and min_partitions > len(whole):
            count = max(count, -(-one.size * min_partitions // total))
        pieces += _cut(one, min(count, one.size))
    return pieces


def _cut(whole: OffsetRange, count: int) -> list[OffsetRange]:
    edges = [whole.start + whole.size * n // count for n in range(count + 1)]
    return [OffsetRange(partition=whole.partition, start=a, end=b) for a, b in pairwise(edges)]
