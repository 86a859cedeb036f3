"""Replicas: the same bytes below the high watermark, and one leader per epoch.

The files are read as they lie on disk, with nothing of the product: a mistake in its reader must
not hide a mistake in its writer.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.faults.kcheck.findings import Evidence, Finding
from tests.faults.kcheck.operations import Partition

_HEADER = struct.Struct(">qiibIhiqqqhii")  # Of a record batch, up to its record count.
_LENGTH_AT = struct.Struct(">qi")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    base_offset: int
    last_offset: int
    leader_epoch: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One broker's copy of a partition."""

    broker_id: int
    partition: Partition
    high_watermark: int
    batches: tuple[StoredBatch, ...]


def two_leaders(evidence: Evidence) -> Iterator[Finding]:
    """Different brokers were said to lead a partition in one epoch."""
    leaders: dict[tuple[Partition, int], dict[int, str]] = defaultdict(dict)
    for seen in evidence.history.leaders:
        if seen.broker_id >= 0:  # -1: nobody leads, which every broker may say for a while.
            leaders[seen.partition, seen.epoch].setdefault(seen.broker_id, seen.source)
    for (partition, epoch), found in sorted(leaders.items()):
        if len(found) > 1:
            yield Finding(
                check="two-leaders",
                text=f"{partition} epoch {epoch} was led by {dict(sorted(found.items()))}",
                partition=partition,
            )


def divergence(replicas: Mapping[int, Replica]) -> Iterator[Finding]:
    """Where the copies of one partition differ below what both know to be committed."""
    for broker_id, replica in replicas.items():
        for other_id, other in replicas.items():
            if broker_id < other_id:
                yield from _compare(replica, other)


def _compare(one: Replica, other: Replica) -> Iterator[Finding]:
    end = min(one.high_watermark, other.high_watermark)
    mine, theirs = _by_offset(one, end), _by_offset(other, end)
    first = max(min(mine, default=end), min(theirs, default=end))  # Retention may differ.
    for offset in sorted({*mine, *theirs}):
        if offset < first:
            continue
        left, right = mine.get(offset), theirs.get(offset)
        if left is None or right is None or left.data != right.data:
            yield Finding(
                check="replica-divergence",
                text=f"{one.partition} offset {offset} below {end}: broker {one.broker_id} has "
                f"{_told(left)}, broker {other.broker_id} has {_told(right)}",
                partition=one.partition,
            )
            return  # What follows the first difference differs for the same reason.


def _by_offset(replica: Replica, end: int) -> dict[int, StoredBatch]:
    return {b.base_offset: b for b in replica.batches if b.last_offset < end}


def _told(batch: StoredBatch | None) -> str:
    if batch is None:
        return "no such batch"
    return (
        f"{batch.base_offset}..{batch.last_offset} of epoch {batch.leader_epoch}, "
        f"{len(batch.data)} bytes"
    )


def read_replicas(
    log_dirs: Mapping[int, Path], ends: Mapping[Partition, int]
) -> Mapping[Partition, Mapping[int, Replica]]:
    """The copies in these directories of every partition whose committed end is given."""
    found: dict[Partition, dict[int, Replica]] = defaultdict(dict)
    for broker_id, log_dir in log_dirs.items():
        for partition, end in ends.items():
            directory = log_dir / partition
            if directory.is_dir():
                found[partition][broker_id] = Replica(
                    broker_id=broker_id,
                    partition=partition,
                    high_watermark=end,
                    batches=tuple(read_batches(directory)),
                )
    return found


def checkpointed_ends(log_dir: Path) -> dict[Partition, int]:
    """The high watermarks that a stopped broker left behind."""
    path = log_dir / "replication-offset-checkpoint"
    if not path.exists():
        return {}
    lines = path.read_text().splitlines()[2:]
    return {
        f"{topic}-{partition}": int(offset)
        for topic, partition, offset in (line.split() for line in lines if line.strip())
    }


def read_batches(directory: Path) -> Iterator[StoredBatch]:
    """The batches of a partition's segments, up to the first incomplete one of each segment."""
    for segment in sorted(directory.glob("*.log")):
        yield from batches_in(segment.read_bytes())


def batches_in(data: bytes) -> Iterator[StoredBatch]:
    at = 0
    while at + _HEADER.size <= len(data):
        base_offset, length = _LENGTH_AT.unpack_from(data, at)
        if length <= 0 or at + 12 + length > len(data):
            return
        fields = _HEADER.unpack_from(data, at)
        yield StoredBatch(
            base_offset=base_offset,
            last_offset=base_offset + fields[6],
            leader_epoch=fields[2],
            data=data[at : at + 12 + length],
        )
        at += 12 + length
