"""What the transaction coordinator stores."""

from penstock.protocol.schema import Struct, array, int8, int16, int32, int64, string
from penstock.protocol.stored import RecordKey, RecordValue


class TransactionLogKey(RecordKey, record_type=0):
    """The transaction."""

    transactional_id: str = string("0+")


class PartitionsSchema(Struct):
    """A topic and the partitions written."""

    topic: str = string("0+")
    partition_ids: list[int] = array(int32, "0+")


class TransactionLogValue(RecordValue, record_type=0, versions="0-1", flexible="1+"):
    """The state of a transaction and the partitions it has written."""

    producer_id: int = int64("0+")
    previous_producer_id: int = int64("1+", default=-1, tag=0)
    next_producer_id: int = int64("1+", default=-1, tag=1)
    producer_epoch: int = int16("0+")
    next_producer_epoch: int = int16("1+", default=-1, tag=3)
    transaction_timeout_ms: int = int32("0+")
    transaction_status: int = int8("0+")
    transaction_partitions: list[PartitionsSchema] | None = array(
        PartitionsSchema, "0+", nullable=True
    )
    transaction_last_update_timestamp_ms: int = int64("0+")
    transaction_start_timestamp_ms: int = int64("0+")
    client_transaction_version: int = int16("1+", tag=2)
