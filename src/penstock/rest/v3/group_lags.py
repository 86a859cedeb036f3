"""How far groups are behind: what they have committed against where their partitions end."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from penstock.client.admin import Admin
from penstock.client.operations.groups import MemberDescription
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.values import OffsetAndTimestamp, TopicPartition


class KnownOffsets(NamedTuple):
    """Where a group is in a partition, and where the partition ends."""

    at: TopicPartition
    current_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """The lag of one partition and, if anybody reads it now, who."""

    at: TopicPartition
    current_offset: int
    end_offset: int
    consumer_id: str = ""
    instance_id: str | None = None
    client_id: str = ""

    @property
    def lag(self) -> int:
        """Never below 0: a partition may have been cut or made anew."""
        return max(0, self.end_offset - self.current_offset)


def find_lags(admin: Admin, group_id: str) -> list[KnownOffsets]:
    """Every partition that a group has committed, except those that are gone."""
    committed = admin.list_consumer_group_offsets(group_id)
    ends = admin.list_offsets(dict.fromkeys(committed, int(OffsetSpec.LATEST)))
    return [
        KnownOffsets(at, committed[at].offset, end.offset)
        for at, end in sorted(ends.items())
        if isinstance(end, OffsetAndTimestamp)
    ]


def group_lags(
    known: Iterable[KnownOffsets], members: Iterable[MemberDescription]
) -> list[PartitionLag]:
    """The lags of a group, with who reads what."""
    readers = {at: member for member in members for at in member.assignment}
    return [_lag(one, readers.get(one.at)) for one in known]


def _lag(known: KnownOffsets, reader: MemberDescription | None) -> PartitionLag:
    at, current_offset, end_offset = known
    if reader is None:
        return PartitionLag(at=at, current_offset=current_offset, end_offset=end_offset)
    return PartitionLag(
        at=at,
        current_offset=current_offset,
        end_offset=end_offset,
        consumer_id=reader.member_id,
        instance_id=reader.instance_id,
        client_id=reader.client_id,
    )
