"""Committing, deleting and expiring the offsets of a shard's groups.

Whether the committer may commit is the group's decision; where the offsets are kept is
`table.py`. This brings both together with the journal: every change is written first.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.coordination.machine import NO_PRODUCER, KeyValue
from penstock.errors import (
    ErrorCode,
    GroupIdNotFound,
    IllegalGeneration,
    InvalidCommitOffsetSize,
    InvalidGroupId,
    RecordBatchTooLarge,
    RecordTooLarge,
)
from penstock.groups.classic.group import ClassicGroup
from penstock.groups.group import Group
from penstock.groups.offsets.table import GroupOffsets, TopicPartition
from penstock.groups.record_formats import NEVER, CommittedOffset, offset_key, offset_value
from penstock.groups.surroundings import MemberClaim

if TYPE_CHECKING:
    from penstock.groups.shard import GroupShard

_GROUP_UNKNOWN_FROM: Final = 9  # OffsetCommit: until then such a group's generation is illegal.
_PIECE_BYTES: Final = 1 << 18  # Of tombstones written at once; well below any max.message.bytes.
_STRING_BYTES_MAX: Final = (1 << 15) - 1  # What the record's schema can hold.

_LONG_MAX = (1 << 63) - 1
_NOT_PLACED: Final = -1  # Of an offset whose record is not in the log yet.


class OffsetToCommit(NamedTuple):
    """What a committer wants noted for one partition."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = None
    commit_ms: int = -1  # -1: now. Version 1 of the request could say otherwise.


class OffsetCommits:
    """The verbs of a shard that are about offsets."""

    def __init__(self, shard: "GroupShard") -> None:
        self._shard = shard
        self._around = shard.around
        self._offsets: GroupOffsets = shard.offsets

    # Committing

    def commit(
        self,
        group_id: str,
        claim: MemberClaim,
        offsets: Sequence[OffsetToCommit],
        *,
        version: int,
        retention_ms: int = NEVER,
    ) -> list[ErrorCode]:
        """Note the offsets; an error for each. Raises where the committer may not commit at all."""
        group = self._admit(group_id, claim, offsets, version=version, is_transactional=False)
        accepted, errors = self._accept(offsets, retention_ms)
        if accepted:
            base_offset = self._write_commits(group_id, accepted)
            self._shard.place(group)
            put = self._offsets.put
            for at, (topic, partition, committed) in enumerate(accepted):
                put(group_id, topic, partition, committed.placed(base_offset + at))
        return errors

    def commit_transactional(
        self,
        group_id: str,
        claim: MemberClaim,
        producer: tuple[int, int],  # Producer id and epoch.
        offsets: Sequence[OffsetToCommit],
        *,
        version: int,
    ) -> list[ErrorCode]:
        """Note the offsets as part of a producer's transaction, which decides over them later."""
        group = self._admit(group_id, claim, offsets, version=version, is_transactional=True)
        accepted, errors = self._accept(offsets, NEVER)
        if accepted:
            producer_id, producer_epoch = producer
            base_offset = self._write_commits(group_id, accepted, producer_id, producer_epoch)
            self._shard.place(group)
            for at, (topic, partition, committed) in enumerate(accepted):
                placed = committed.placed(base_offset + at)
                self._offsets.put_pending(producer_id, group_id, topic, partition, placed)
        return errors

    def complete_transaction(
        self, producer_id: int, *, is_committed: bool, marker_offset: int
    ) -> None:
        """The marker of the producer's transaction is in the log."""
        self._offsets.complete(producer_id, is_committed=is_committed, marker_offset=marker_offset)

    def _admit(
        self,
        group_id: str,
        claim: MemberClaim,
        offsets: Sequence[OffsetToCommit],
        *,
        version: int,
        is_transactional: bool,
    ) -> Group:
        """The group if the claim holds; a committer without a claim may begin a new one."""
        group: Group | None = self._shard.groups.get(group_id)
        if group is None:
            if claim.epoch >= 0 and version >= _GROUP_UNKNOWN_FROM and not is_transactional:
                raise GroupIdNotFound(f"Group {group_id} not found.")
            if claim.epoch >= 0:
                raise IllegalGeneration(f"group {group_id} is not known")
            group = ClassicGroup(group_id, self._around, self._shard.timers)
        partitions = ((offset.topic, offset.partition) for offset in offsets)
        group.admit_commit(claim, partitions, version=version, is_transactional=is_transactional)
        return group

    def _accept(
        self, offsets: Sequence[OffsetToCommit], retention_ms: int
    ) -> tuple[list[tuple[str, int, CommittedOffset]], list[ErrorCode]]:
        now_ms = self._around.clock.now_ms()
        metadata_max = self._around.config().offset_metadata_max_bytes
        topics = self._around.image().topics
        expire_ms = NEVER if retention_ms < 0 else min(now_ms + retention_ms, _LONG_MAX)
        accepted: list[tuple[str, int, CommittedOffset]] = []
        errors: list[ErrorCode] = []
        for topic, partition, offset, leader_epoch, metadata, commit_ms in offsets:
            note = metadata or ""
            if note and (len(note) > metadata_max or len(note.encode()) > _STRING_BYTES_MAX):
                errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            noted_ms = now_ms if commit_ms < 0 else commit_ms
            known = topics.get(topic)
            committed = CommittedOffset(
                offset,
                leader_epoch,
                note,
                noted_ms,
                expire_ms,
                _NOT_PLACED,
                None if known is None else known.topic_id,
            )
            accepted.append((topic, partition, committed))
            errors.append(ErrorCode.NONE)
        return accepted, errors

    def _write_commits(
        self,
        group_id: str,
        accepted: Iterable[tuple[str, int, CommittedOffset]],
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = NO_PRODUCER,
    ) -> int:
        records: list[KeyValue] = [
            (offset_key(group_id, topic, partition), offset_value(committed))
            for topic, partition, committed in accepted
        ]
        try:
            return self._around.journal.write(
                records, producer_id=producer_id, producer_epoch=producer_epoch
            )
        except (RecordTooLarge, RecordBatchTooLarge) as error:
            raise InvalidCommitOffsetSize(str(error)) from error

    # Reading

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        """Refuse a member of another time; anybody may ask about a group that is not there."""
        group = self._shard.groups.get(group_id)
        if group is not None:
            group.check_fetch(member_id, member_epoch)

    # Deleting

    def delete(self, group_id: str, partitions: Iterable[TopicPartition]) -> list[ErrorCode]:
        """Forget offsets that no member needs; an error for each partition."""
        if not group_id:
            raise InvalidGroupId("a group needs a name")
        group = self._shard.group(group_id)
        group.check_offset_delete()
        asked = list(partitions)
        used = {topic for topic in {topic for topic, _ in asked} if group.subscribes_to(topic)}
        known = set(self._offsets.partitions(group_id))
        self.forget(group_id, [tp for tp in asked if tp in known and tp[0] not in used])
        refused, gone = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE
        return [refused if topic in used else gone for topic, _ in asked]

    def delete_all(self, group_id: str) -> None:
        self.forget(group_id, list(self._offsets.partitions(group_id)))

    def delete_topics(self, topics: Iterable[str], *, end_offset: int = _LONG_MAX) -> int:
        """Topics are gone, and a new one of the same name starts anew; how many offsets went.

        What was committed in the log at `end_offset` or after it is of such a new one.
        """
        gone_count = 0
        for topic in topics:
            for group_id in self._offsets.groups_of_topic(topic):
                gone = [
                    tp
                    for tp in self._offsets.partitions(group_id)
                    if tp[0] == topic
                    and self._offsets.last_record_offset(group_id, tp) < end_offset
                ]
                self.forget(group_id, gone)
                gone_count += len(gone)
        return gone_count

    def forget(self, group_id: str, partitions: Sequence[TopicPartition]) -> None:
        """Write tombstones, in pieces; those written count even if a later piece fails."""
        piece: list[TopicPartition] = []
        piece_bytes = 0
        for topic_partition in partitions:
            piece.append(topic_partition)
            piece_bytes += len(offset_key(group_id, *topic_partition))
            if piece_bytes >= _PIECE_BYTES:
                self._forget_piece(group_id, piece)
                piece, piece_bytes = [], 0
        self._forget_piece(group_id, piece)

    def _forget_piece(self, group_id: str, piece: Sequence[TopicPartition]) -> None:
        if not piece:
            return
        self._around.journal.write([(offset_key(group_id, *tp), None) for tp in piece])
        for topic, partition in piece:
            self._offsets.remove(group_id, topic, partition)

    # Expiring

    def expire(self, group_id: str) -> int:
        """Forget what the group has not needed for too long; how many offsets that was."""
        group = self._shard.groups.get(group_id)
        if group is None:
            return 0
        is_old = self._judge(group)
        expired = [
            (topic, partition)
            for (topic, partition), committed in self._offsets.of_group(group_id).items()
            if is_old(topic, committed) and not self._offsets.is_pending(group_id, topic, partition)
        ]
        self.forget(group_id, expired)
        return len(expired)

    def _judge(self, group: Group) -> Callable[[str, CommittedOffset], bool]:
        now_ms = self._around.clock.now_ms()
        retention_ms = self._around.config().offsets_retention_minutes * 60_000

        def is_old(topic: str, committed: CommittedOffset) -> bool:
            base_ms = group.expiry_base_ms(topic, committed.commit_ms)
            if base_ms is None:
                return False
            if committed.expire_ms != NEVER:
                return now_ms >= committed.expire_ms
            return now_ms - base_ms >= retention_ms

        return is_old
