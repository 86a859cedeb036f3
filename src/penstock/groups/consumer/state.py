"""All that the log knows of one consumer group, and what follows from it.

Records are the only way to change it, whether they come from the log or were just written, so a
group that was loaded is the same as one that never went away.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from penstock.groups.consumer import records
from penstock.groups.consumer.member import (
    LEAVING,
    ConsumerMember,
    MemberState,
    Partitions,
    each_partition,
)
from penstock.groups.consumer.records import Change, Resolved
from penstock.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from penstock.protocol.stored import RecordKey, RecordValue

FIRST_EPOCH: Final = 1
NOTHING: Final[Partitions] = {}


class GroupState:
    """One group as of some offset of the log."""

    __slots__ = (
        "assignment_epoch",
        "assignment_ms",
        "group_epoch",
        "group_id",
        "has_partition_metadata",
        "is_deleted",
        "members",
        "metadata_hash",
        "owners",
        "patterns",
        "static_ids",
        "target",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH  # Grows whenever the target must be worked out anew.
        self.metadata_hash = 0  # Of the subscribed topics, as of that epoch.
        self.assignment_epoch = FIRST_EPOCH  # The group epoch that the target is for.
        self.assignment_ms = 0  # When it was worked out; 0: not known.
        self.members: dict[str, ConsumerMember] = {}
        self.target: dict[str, Partitions] = {}  # By member id.
        self.patterns: dict[str, Resolved] = {}
        self.owners: dict[tuple[bytes, int], str] = {}  # Who has a partition, if only to revoke it.
        self.static_ids: dict[str, str] = {}  # Instance id to member id.
        self.has_partition_metadata = False  # A record of an old release is still there.
        self.is_deleted = False

    def copy(self) -> "GroupState":
        """Another one that can change by itself; what it holds are values."""
        other = GroupState(self.group_id)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(other, name, value.copy() if isinstance(value, dict) else value)
        return other

    # What others ask

    @property
    def phase(self) -> str:
        """The state of the group, as clients spell it."""
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        epoch = self.assignment_epoch
        is_settled = all(member.is_settled_at(epoch) for member in self.members.values())
        return "Stable" if is_settled else "Reconciling"

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_ids.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def is_free(self, topic_id: bytes, partition: int, member_id: str) -> bool:
        """Whether nobody but the member itself has the partition."""
        return self.owners.get((topic_id, partition), member_id) == member_id

    def target_of(self, member_id: str) -> Partitions:
        return self.target.get(member_id, NOTHING)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """What the member subscribes to, by name and by pattern."""
        resolved = self.patterns.get(member.topic_pattern)
        return member.topic_names if resolved is None else member.topic_names | resolved.topics

    def subscribed_topics(self) -> set[str]:
        return set().union(*map(self.topics_of, self.members.values()))

    def subscribers_of_pattern(self, pattern: str) -> int:
        return sum(member.topic_pattern == pattern for member in self.members.values())

    def preferred_assignor(self) -> str | None:
        """The one that most members ask for, of equals the first by name; None: nobody asks."""
        votes = Counter(m.assignor for m in self.members.values() if m.assignor is not None)
        return min(votes, key=lambda name: (-votes[name], name), default=None)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether something of the member's target is still in other hands."""
        target = self.target_of(member.member_id)
        return any(not self.is_free(t, p, member.member_id) for t, p in each_partition(target))

    def tombstones(self) -> list[Change]:
        """Forget the group: what members own before the members, and the group last."""
        group_id, member_ids = self.group_id, sorted(self.members)
        return [
            *(records.no_current(group_id, member_id) for member_id in member_ids),
            *(records.no_target(group_id, member_id) for member_id in member_ids),
            records.no_target_epoch(group_id),
            *(records.no_member(group_id, member_id) for member_id in member_ids),
            *(records.pattern(group_id, pattern, None) for pattern in sorted(self.patterns)),
            records.no_partition_metadata(group_id),
            records.no_group(group_id),
        ]

    def creation(self) -> list[Change]:
        """The records that make another such group."""
        group_id, members = self.group_id, [self.members[name] for name in sorted(self.members)]
        return [
            *(records.member(group_id, member) for member in members),
            records.group_epoch(group_id, self.group_epoch, self.metadata_hash),
            *(records.target(group_id, m.member_id, self.target_of(m.member_id)) for m in members),
            records.target_epoch(group_id, self.assignment_epoch, self.assignment_ms),
            *(records.current(group_id, member) for member in members),
        ]

    # What records do

    def apply(self, key: RecordKey, value: RecordValue | None) -> None:
        _APPLY[type(key)](self, key, value)

    def _apply_group(
        self, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
    ) -> None:
        self.is_deleted = value is None
        if value is not None:
            self.group_epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def _apply_partition_metadata(
        self, key: ConsumerGroupPartitionMetadataKey, value: RecordValue | None
    ) -> None:
        self.has_partition_metadata = value is not None

    def _apply_member(
        self, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
    ) -> None:
        if value is None:
            self._remove(key.member_id)
        else:
            self._put(records.read_member(self._member(key.member_id), value))

    def _apply_target_epoch(
        self,
        key: ConsumerGroupTargetAssignmentMetadataKey,
        value: ConsumerGroupTargetAssignmentMetadataValue | None,
    ) -> None:
        self.assignment_epoch = -1 if value is None else value.assignment_epoch
        self.assignment_ms = 0 if value is None else value.assignment_timestamp

    def _apply_target(
        self,
        key: ConsumerGroupTargetAssignmentMemberKey,
        value: ConsumerGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is None:
            self.target.pop(key.member_id, None)
        else:
            self.target[key.member_id] = records.read_target(value)

    def _apply_current(
        self,
        key: ConsumerGroupCurrentMemberAssignmentKey,
        value: ConsumerGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        if value is not None:
            self._put(
                replace(
                    self._member(key.member_id),
                    epoch=value.member_epoch,
                    previous_epoch=value.previous_member_epoch,
                    state=records.read_state(value),
                    assigned=records.read_holdings(value.assigned_partitions, value.member_epoch),
                    revoking=records.read_holdings(
                        value.partitions_pending_revocation, value.member_epoch
                    ),
                )
            )
        elif (member := self.members.get(key.member_id)) is not None:
            self._put(
                replace(
                    member,
                    epoch=LEAVING,
                    previous_epoch=LEAVING,
                    state=MemberState.STABLE,
                    assigned={},
                    revoking={},
                )
            )

    def _apply_pattern(
        self,
        key: ConsumerGroupRegularExpressionKey,
        value: ConsumerGroupRegularExpressionValue | None,
    ) -> None:
        if value is None:
            self.patterns.pop(key.regular_expression, None)
        else:
            self.patterns[key.regular_expression] = records.read_pattern(value)

    def _member(self, member_id: str) -> ConsumerMember:
        """The member; a compacted log may tell what it owns before it tells who it is."""
        return self.members.get(member_id) or ConsumerMember(member_id=member_id)

    def _put(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if before is None or before.instance_id != member.instance_id:
            self._forget_instance(before)
            if member.instance_id is not None:
                self.static_ids[member.instance_id] = member.member_id
        if before is None or _held(before) != _held(member):
            self._forget_owner(before)
            for held in _held(member):
                self.owners.update(dict.fromkeys(each_partition(held), member.member_id))

    def _remove(self, member_id: str) -> None:
        before = self.members.pop(member_id, None)
        self._forget_owner(before)
        self._forget_instance(before)

    def _forget_owner(self, member: ConsumerMember | None) -> None:
        for held in () if member is None else _held(member):
            for partition in each_partition(held):
                if member is not None and self.owners.get(partition) == member.member_id:
                    del self.owners[partition]

    def _forget_instance(self, member: ConsumerMember | None) -> None:
        if (
            member is not None
            and member.instance_id is not None
            and self.static_ids.get(member.instance_id) == member.member_id
        ):
            del self.static_ids[member.instance_id]


def _held(member: ConsumerMember) -> Iterable[Any]:
    return member.assigned, member.revoking


_APPLY: Final[dict[type[RecordKey], Callable[[GroupState, Any, Any], None]]] = {
    ConsumerGroupMetadataKey: GroupState._apply_group,
    ConsumerGroupPartitionMetadataKey: GroupState._apply_partition_metadata,
    ConsumerGroupMemberMetadataKey: GroupState._apply_member,
    ConsumerGroupTargetAssignmentMetadataKey: GroupState._apply_target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: GroupState._apply_target,
    ConsumerGroupCurrentMemberAssignmentKey: GroupState._apply_current,
    ConsumerGroupRegularExpressionKey: GroupState._apply_pattern,
}
