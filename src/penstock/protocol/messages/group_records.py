"""What the group coordinator stores of classic groups, and every committed offset."""

from penstock.protocol.schema import Struct, array, blob, int32, int64, string, uuid
from penstock.protocol.stored import RecordKey, RecordValue


class LegacyOffsetCommitKey(RecordKey, record_type=0):
    """The partition of a commit, as written before 0.9; still read."""

    group: str = string("0+")
    topic: str = string("0+")
    partition: int = int32("0+")


class LegacyOffsetCommitValue(RecordValue, record_type=0, versions="0"):
    """An offset as committed before 0.9."""

    offset: int = int64("0+")
    metadata: str = string("0+")
    commit_timestamp: int = int64("0+")


class OffsetCommitKey(RecordKey, record_type=1):
    """The group and partition of a commit."""

    group: str = string("0+")
    topic: str = string("0+")
    partition: int = int32("0+")


class OffsetCommitValue(RecordValue, record_type=1, versions="0-4", flexible="4+"):
    """How far the group has read."""

    offset: int = int64("0+")
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string("0+")
    commit_timestamp: int = int64("0+")
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: bytes = uuid("4+", tag=0, ignorable=True)


class GroupMetadataKey(RecordKey, record_type=2):
    """The group."""

    group: str = string("0+")


class MemberMetadata(Struct):
    """A member, its subscription and its assignment."""

    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable=True, default=None, ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32("0+")
    subscription: bytes = blob("0+")
    assignment: bytes = blob("0+")


class GroupMetadataValue(RecordValue, record_type=2, versions="0-4", flexible="4+"):
    """A group's generation and its members."""

    protocol_type: str = string("0+")
    generation: int = int32("0+")
    protocol: str | None = string("0+", nullable=True)
    leader: str | None = string("0+", nullable=True)
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata, "0+")
