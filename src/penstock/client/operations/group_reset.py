"""Where a group shall read next: a word, a time, a number or a shift, within what partitions have.

Only a group without members is touched: a member would go on from where it was and commit over it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from penstock.client.errors import ClientError
from penstock.client.operations.group_offsets import alter_group_offsets, group_offsets
from penstock.client.operations.groups import GroupDescription, describe_consumer_groups
from penstock.client.operations.offsets import OffsetSpec, list_offsets
from penstock.client.values import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import GroupIdNotFound, GroupNotEmpty, ProtocolError

INACTIVE = ("Empty", "Dead")


class OffsetLookupError(ClientError):
    """The offset of a partition could not be found out; `reason` is what its leader said."""

    def __init__(self, partition: TopicPartition, reason: ProtocolError | None) -> None:
        why = "." if reason is None else f": {reason}"
        super().__init__(f"Error getting offset of topic partition {partition}{why}")
        self.partition = partition
        self.reason = reason


class OffsetBounds(NamedTuple):
    """The offsets a partition has: its first, and the one after its last."""

    first: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetTarget:
    """Where to read next; exactly one of these is given."""

    spec: OffsetSpec | None = None
    offset: int | None = None
    time_ms: int | None = None
    shift_by: int | None = None

    def __post_init__(self) -> None:
        fields = (self.spec, self.offset, self.time_ms, self.shift_by)
        if sum(field is not None for field in fields) != 1:
            raise ValueError("give one of spec, offset, time_ms and shift_by")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOffsets:
    """The offsets that follow from a target, and where they are not quite what was wanted."""

    offsets: dict[TopicPartition, int]
    wanted: dict[TopicPartition, int]  # Of those that were moved into what the partition has.
    too_late: tuple[TopicPartition, ...] = ()  # No record is that late: they are at their end.


def reset_group_offsets(
    cluster: ClusterClient,
    group_id: str,
    target: ResetTarget,
    partitions: Collection[TopicPartition] | None,
    *,
    timeout_ms: int,
) -> dict[TopicPartition, int]:
    """Commit new offsets for a group, of these partitions or of all it has committed."""
    group = describe_consumer_groups(cluster, [group_id])[group_id]
    refusal = why_untouched(group_id, group)
    if refusal is not None:
        raise refusal
    committed = {at: one.offset for at, one in group_offsets(cluster, group_id).items()}
    chosen = sorted(committed if partitions is None else partitions)
    new = new_offsets(cluster, target, chosen, committed, timeout_ms=timeout_ms).offsets
    commits = {at: OffsetAndMetadata(offset) for at, offset in new.items()}
    alter_group_offsets(cluster, group_id, commits)
    return new


def why_untouched(group_id: str, group: GroupDescription | ProtocolError) -> ProtocolError | None:
    """Why the offsets of a group may not be set; None when they may."""
    if isinstance(group, GroupIdNotFound):
        return None  # Offsets may be set for a group that is yet to come.
    if isinstance(group, ProtocolError):
        return group
    if group.state in INACTIVE:
        return None
    return GroupNotEmpty(
        f"Assignments can only be reset if the group '{group_id}' is inactive, but the current "
        f"state is {group.state}."
    )


def new_offsets(
    cluster: ClusterClient,
    target: ResetTarget,
    partitions: Collection[TopicPartition],
    committed: Mapping[TopicPartition, int],
    *,
    timeout_ms: int,
) -> NewOffsets:
    """The offset of each partition by the target."""
    if target.time_ms is not None:
        return offsets_at(cluster, partitions, target.time_ms, timeout_ms=timeout_ms)
    if target.spec is not None:
        ends = ends_of(cluster, partitions, target.spec, timeout_ms=timeout_ms)
        return NewOffsets(offsets=ends, wanted={})
    if target.offset is not None:
        wanted = dict.fromkeys(partitions, target.offset)
    else:
        wanted = {at: _committed(committed, at) + (target.shift_by or 0) for at in partitions}
    return bounded(wanted, ranges_of(cluster, partitions, timeout_ms=timeout_ms))


def bounded(
    wanted: Mapping[TopicPartition, int], ranges: Mapping[TopicPartition, OffsetBounds]
) -> NewOffsets:
    """The wanted offsets, moved into what the partitions have."""
    settled = {at: min(max(to, ranges[at].first), ranges[at].end) for at, to in wanted.items()}
    moved = {at: to for at, to in wanted.items() if to != settled[at]}
    return NewOffsets(offsets=settled, wanted=moved)


def ends_of(
    cluster: ClusterClient,
    partitions: Collection[TopicPartition],
    spec: int = OffsetSpec.LATEST,
    *,
    timeout_ms: int,
) -> dict[TopicPartition, int]:
    """The first or last offset of every partition, or another the protocol has a word for."""
    if not partitions:
        return {}
    asked = dict.fromkeys(sorted(partitions), int(spec))
    found = list_offsets(cluster, asked, timeout_ms=timeout_ms)
    offsets: dict[TopicPartition, int] = {}
    for at, one in sorted(found.items()):
        if not isinstance(one, OffsetAndTimestamp):
            raise OffsetLookupError(at, one)
        offsets[at] = one.offset
    return offsets


def ranges_of(
    cluster: ClusterClient, partitions: Collection[TopicPartition], *, timeout_ms: int
) -> dict[TopicPartition, OffsetBounds]:
    """From where to where the partitions reach."""
    firsts = ends_of(cluster, partitions, OffsetSpec.EARLIEST, timeout_ms=timeout_ms)
    ends = ends_of(cluster, partitions, timeout_ms=timeout_ms)
    return {at: OffsetBounds(firsts[at], ends[at]) for at in partitions}


def offsets_at(
    cluster: ClusterClient, partitions: Collection[TopicPartition], at_ms: int, *, timeout_ms: int
) -> NewOffsets:
    """The first record at or after a time; the end where there is none."""
    # Negative times are words of the protocol: before the epoch means from the beginning.
    asked = dict.fromkeys(sorted(partitions), max(0, at_ms))
    found = list_offsets(cluster, asked, timeout_ms=timeout_ms) if asked else {}
    late = tuple(at for at in sorted(partitions) if found.get(at) is None)
    offsets = ends_of(cluster, late, timeout_ms=timeout_ms)
    for at, one in found.items():
        if isinstance(one, ProtocolError):
            raise OffsetLookupError(at, one)
        if one is not None:
            offsets[at] = one.offset
    return NewOffsets(offsets=dict(sorted(offsets.items())), wanted={}, too_late=late)


def _committed(committed: Mapping[TopicPartition, int], at: TopicPartition) -> int:
    if at not in committed:
        raise ClientError(
            f"Cannot shift offset for partition {at} since there is no current committed offset"
        )
    return committed[at]
