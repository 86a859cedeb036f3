"""How offsets and classic groups are stored in `__consumer_offsets`, byte for byte as Kafka does.

The schemas are in protocol/messages/group_records.py. An offset commit is by far the most frequent
record, so its bytes are put together and taken apart by hand here; a test holds them against the
schema.
"""

import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from penstock.coordination.machine import KeyValue
from penstock.groups.classic.members import ClassicMember, ClassicMembers, Strategy
from penstock.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from penstock.protocol.stored import read_prefix

OFFSET_TYPES: Final = frozenset({0, 1})  # Of the key; 0 is from before 0.9 and reads the same.
GROUP_TYPE: Final = 2
NEVER: Final = -1
_NO_ID: Final = bytes(16)

# Versions of values, as Kafka 4.3 writes them. Of offsets it has read version 4 since 3.5.
_OFFSET_VERSION: Final = 4
_OFFSET_VERSION_WITH_EXPIRY: Final = 1
_GROUP_VERSION: Final = 3

# Version, offset, leader epoch, and one more than the length of metadata.
_OFFSET_HEAD: Final = struct.Struct(">hqiB")
_OFFSET_PREFIX: Final = struct.pack(">h", _OFFSET_VERSION)
_SHORT_BYTES_MAX: Final = 126  # Of metadata whose length fits into that byte.
# Commit timestamp, and the tagged fields: one, with the tag 0, of 16 bytes, the topic's id.
_OFFSET_TAIL: Final = struct.Struct(">q3s16s")
_ID_FOLLOWS: Final = bytes((1, 0, 16))


class CommittedOffset(NamedTuple):
    """How far a group has read one partition."""

    offset: int
    leader_epoch: int  # -1: the committer did not know.
    metadata: str  # A note of the client's choosing.
    commit_ms: int
    expire_ms: int = NEVER  # -1: by the rules of the group; else the committer said until when.
    record_offset: int = -1  # Where the record is in the log.
    topic_id: bytes | None = None  # None: nobody noted it, as before Kafka 4.3.

    def placed(self, record_offset: int) -> "CommittedOffset":
        """The same once its record is in the log; `_replace` would cost twice as much."""
        offset, leader_epoch, metadata, commit_ms, expire_ms, _, topic_id = self
        return CommittedOffset(
            offset, leader_epoch, metadata, commit_ms, expire_ms, record_offset, topic_id
        )


@lru_cache(maxsize=16_384)
def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    """The key of an offset; the same few come again and again."""
    return OffsetCommitKey(group=group_id, topic=topic, partition=partition).to_bytes()


def offset_value(committed: CommittedOffset) -> bytes:
    if committed.expire_ms != NEVER:
        return _offset_value_with_expiry(committed)
    metadata = committed.metadata.encode()
    size, topic_id = len(metadata), committed.topic_id
    if size > _SHORT_BYTES_MAX or topic_id is None:
        return _offset_value_by_schema(committed)
    return (
        _OFFSET_HEAD.pack(_OFFSET_VERSION, committed.offset, committed.leader_epoch, size + 1)
        + metadata
        + _OFFSET_TAIL.pack(committed.commit_ms, _ID_FOLLOWS, topic_id)
    )


def _offset_value_by_schema(committed: CommittedOffset) -> bytes:
    return OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_ms,
        topic_id=committed.topic_id or _NO_ID,
    ).to_bytes(_OFFSET_VERSION)


def _offset_value_with_expiry(committed: CommittedOffset) -> bytes:
    return OffsetCommitValue(
        offset=committed.offset,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_ms,
        expire_timestamp=committed.expire_ms,
    ).to_bytes(_OFFSET_VERSION_WITH_EXPIRY)


@lru_cache(maxsize=16_384)
def read_offset_key(key: bytes) -> tuple[str, str, int]:
    """Group, topic and partition."""
    read = OffsetCommitKey.decode(key, 0, 2)
    return read.group, read.topic, read.partition


def read_offset_value(value: bytes, record_offset: int) -> CommittedOffset:
    """The offset, in whichever version it was stored; raises MalformedMessage."""
    if value[:2] == _OFFSET_PREFIX:  # Nearly all of them, and loading is mostly this.
        try:
            _, offset, leader_epoch, size = _OFFSET_HEAD.unpack_from(value)
            end = _OFFSET_HEAD.size + size - 1
            if 0 < size <= _SHORT_BYTES_MAX + 1 and len(value) == end + _OFFSET_TAIL.size:
                note = str(value[_OFFSET_HEAD.size : end], "utf-8") if size > 1 else ""
                commit_ms, tags, topic_id = _OFFSET_TAIL.unpack_from(value, end)
                if tags == _ID_FOLLOWS:
                    return CommittedOffset(
                        offset,
                        leader_epoch,
                        note,
                        commit_ms,
                        NEVER,
                        record_offset,
                        _shared_id(topic_id),
                    )
        except (struct.error, UnicodeDecodeError):
            pass  # The schema says what is wrong with it.
    read = OffsetCommitValue.from_bytes(value)
    return CommittedOffset(
        read.offset,
        read.leader_epoch,
        read.metadata,
        read.commit_timestamp,
        read.expire_timestamp,
        record_offset,
        _shared_id(read.topic_id),
    )


@lru_cache(maxsize=4096)
def _shared_id(topic_id: bytes) -> bytes | None:
    """One object for all offsets of a topic; None: there is none."""
    return topic_id if topic_id != _NO_ID else None


def group_key(group_id: str) -> bytes:
    return GroupMetadataKey(group=group_id).to_bytes()


def read_group_key(key: bytes) -> str:
    return GroupMetadataKey.from_bytes(key).group


def read_group_value(value: bytes) -> GroupMetadataValue:
    return GroupMetadataValue.from_bytes(value)


def group_record(
    group_id: str,
    members: ClassicMembers,
    assignments: Mapping[str, bytes] | None,  # None: those that the members have.
    *,
    protocol_type: str,
    generation: int,
    strategy: str | None,
    since_ms: int,
) -> KeyValue:
    """A classic group: of each member only what its generation's strategy needs is kept."""
    value = GroupMetadataValue(
        protocol_type=protocol_type,
        generation=generation,
        protocol=strategy,
        leader=members.leader_id,
        current_state_timestamp=since_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata_for(strategy),
                assignment=(
                    member.assignment
                    if assignments is None
                    else assignments.get(member.member_id, b"")
                ),
            )
            for member in members
        ],
    )
    return group_key(group_id), value.to_bytes(_GROUP_VERSION)


def stored_members(value: GroupMetadataValue) -> list[ClassicMember]:
    return [
        ClassicMember(
            member_id=stored.member_id,
            instance_id=stored.group_instance_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            session_timeout_ms=stored.session_timeout,
            rebalance_timeout_ms=(
                stored.rebalance_timeout
                if stored.rebalance_timeout >= 0
                else stored.session_timeout
            ),
            strategies=(Strategy(value.protocol or "", stored.subscription),),
            assignment=stored.assignment,
        )
        for stored in value.members
    ]


def record_type(key: bytes) -> int:
    """What kind of record a key belongs to."""
    return read_prefix(key)
