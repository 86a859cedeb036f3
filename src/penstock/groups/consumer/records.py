"""How consumer groups are stored in `__consumer_offsets`, byte for byte as Kafka does.

The schemas are in protocol/messages/consumer_group_records.py; this fills them from values and
reads values out of them. Topics and partitions are written in their order, so that the same state
has the same bytes.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from penstock.coordination.machine import KeyValue
from penstock.groups.classic.members import Strategy
from penstock.groups.consumer.member import (
    ClassicSide,
    ConsumerMember,
    Holdings,
    MemberState,
    Partitions,
)
from penstock.protocol.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
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
    TopicPartition,
    TopicPartitions,
)
from penstock.protocol.stored import RecordKey, RecordValue

Change: TypeAlias = tuple[RecordKey, RecordValue | None]  # None: a tombstone.

RECORD_TYPES: Final = frozenset({3, 4, 5, 6, 7, 8, 16})
_VALUE_VERSION: Final = 0  # Of all of them.


def encoded(key: RecordKey, value: RecordValue | None) -> KeyValue:
    return key.to_bytes(), None if value is None else value.to_bytes(_VALUE_VERSION)


class Resolved(NamedTuple):
    """The topics that matched a pattern, and when that was looked up."""

    topics: frozenset[str]
    version: int  # Of the cluster's image.
    at_ms: int


# What the group is


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Change:
    key = ConsumerGroupMetadataKey(group_id=group_id)
    return key, ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)


def no_group(group_id: str) -> Change:
    return ConsumerGroupMetadataKey(group_id=group_id), None


def no_partition_metadata(group_id: str) -> Change:
    """What releases before 4.1 kept of topics; a hash in the group's record has replaced it."""
    return ConsumerGroupPartitionMetadataKey(group_id=group_id), None


def pattern(group_id: str, text: str, resolved: Resolved | None) -> Change:
    """The topics of a pattern; None: nobody subscribes to it any more."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=text)
    if resolved is None:
        return key, None
    return key, ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.at_ms
    )


def read_pattern(value: ConsumerGroupRegularExpressionValue) -> Resolved:
    return Resolved(frozenset(value.topics), value.version, value.timestamp)


# Who its members are


def member(group_id: str, member: ConsumerMember) -> Change:
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return key, ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_pattern,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=_classic_metadata(member.classic),
    )


def no_member(group_id: str, member_id: str) -> Change:
    return ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None


def read_member(before: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    """The member as it told of itself; what it owns stays as it was."""
    return ConsumerMember(
        member_id=before.member_id,
        epoch=before.epoch,
        previous_epoch=before.previous_epoch,
        state=before.state,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        topic_pattern=value.subscribed_topic_regex or "",
        assignor=value.server_assignor,
        assigned=before.assigned,
        revoking=before.revoking,
        classic=_classic_side(value.classic_member_metadata),
    )


def _classic_metadata(classic: ClassicSide | None) -> ClassicMemberMetadata | None:
    if classic is None:
        return None
    return ClassicMemberMetadata(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.strategies
        ],
    )


def _classic_side(stored: ClassicMemberMetadata | None) -> ClassicSide | None:
    if stored is None:
        return None
    strategies = tuple(Strategy(p.name, p.metadata) for p in stored.supported_protocols)
    return ClassicSide(stored.session_timeout_ms, strategies)


# What they shall own


def target_epoch(group_id: str, epoch: int, at_ms: int) -> Change:
    key = ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
    return key, ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=at_ms
    )


def no_target_epoch(group_id: str) -> Change:
    return ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None


def target(group_id: str, member_id: str, partitions: Partitions) -> Change:
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return key, ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=sorted(numbers))
            for topic_id, numbers in sorted(partitions.items())
        ]
    )


def no_target(group_id: str, member_id: str) -> Change:
    return ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None


def read_target(value: ConsumerGroupTargetAssignmentMemberValue) -> dict[bytes, frozenset[int]]:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}


# What they own


def current(group_id: str, member: ConsumerMember) -> Change:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return key, ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=int(member.state),
        assigned_partitions=_topic_partitions(member.assigned),
        partitions_pending_revocation=_topic_partitions(member.revoking),
    )


def no_current(group_id: str, member_id: str) -> Change:
    return ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None


def _topic_partitions(held: Holdings) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(epochs),
            assignment_epochs=[epoch for _, epoch in sorted(epochs.items())],
        )
        for topic_id, epochs in sorted(held.items())
    ]


def read_holdings(stored: Iterable[TopicPartitions], member_epoch: int) -> Holdings:
    """Releases before 4.2 kept no epochs of partitions; the member's own is the safe one."""
    held = {}
    for topic in stored:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        held[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return held


def read_state(value: ConsumerGroupCurrentMemberAssignmentValue) -> MemberState:
    return MemberState.of(value.state)
