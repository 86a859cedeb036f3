"""What the keeper of share state stores of deliveries in share groups (KIP-932)."""

from penstock.protocol.schema import Struct, array, int8, int16, int32, int64, string, uuid
from penstock.protocol.stored import RecordKey, RecordValue


class ShareSnapshotKey(RecordKey, record_type=0):
    """The group and partition."""

    group_id: str = string("0+")
    topic_id: bytes = uuid("0+")
    partition: int = int32("0+")


class StateBatch(Struct):
    """A run of records and how far their delivery is."""

    first_offset: int = int64("0+")
    last_offset: int = int64("0+")
    delivery_state: int = int8("0+")
    delivery_count: int = int16("0+")


class ShareSnapshotValue(RecordValue, record_type=0, versions="0", flexible="0+"):
    """All that is known of one partition."""

    snapshot_epoch: int = int32("0+")
    state_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("0+", default=-1, tag=0)
    create_timestamp: int = int64("0+")
    write_timestamp: int = int64("0+")
    state_batches: list[StateBatch] = array(StateBatch, "0+")


class ShareUpdateKey(RecordKey, record_type=1):
    """The group and partition."""

    group_id: str = string("0+")
    topic_id: bytes = uuid("0+")
    partition: int = int32("0+")


class ShareUpdateValue(RecordValue, record_type=1, versions="0", flexible="0+"):
    """What changed since the snapshot."""

    snapshot_epoch: int = int32("0+")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0+")
    delivery_complete_count: int = int32("0+", default=-1, tag=0)
    state_batches: list[StateBatch] = array(StateBatch, "0+")
