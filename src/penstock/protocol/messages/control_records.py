"""The records that end transactions inside partitions, unseen by consumers."""

from penstock.protocol.schema import int16, int32
from penstock.protocol.stored import Versioned


class ControlRecordTypeSchema(Versioned, versions="0"):
    """The key of a control record: 0 aborts, 1 commits."""

    type: int = int16("0+")


class EndTxnMarker(Versioned, versions="0"):
    """The value of a record that ends a transaction."""

    coordinator_epoch: int = int32("0+")
