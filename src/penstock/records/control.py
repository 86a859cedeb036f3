"""Control records: the markers that end a transaction in the log.

A marker's key says what it is, its value who wrote it. The batch around it is built in `batch`.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from penstock.errors import CorruptRecord
from penstock.records.record import Record

_KEY = struct.Struct(">hh")  # Version, type.
_VALUE = struct.Struct(">hi")  # Version, epoch of the transaction coordinator.
_VERSION = 0


class ControlType(IntEnum):
    """What a control record says; a reader skips types it does not know."""

    ABORT = 0
    COMMIT = 1


class EndTransactionMarker(NamedTuple):
    """The end of one producer's transaction in one partition."""

    type: ControlType
    coordinator_epoch: int


def marker_record(marker: EndTransactionMarker, *, offset: int, timestamp: int) -> Record:
    key = _KEY.pack(_VERSION, marker.type)
    return Record(offset, timestamp, key, _VALUE.pack(_VERSION, marker.coordinator_epoch))


def read_marker(record: Record) -> EndTransactionMarker | None:
    """The marker a record of a control batch holds; None for control records of other kinds."""
    if record.key is None or len(record.key) < _KEY.size:
        raise CorruptRecord("a control record's key is too short")
    version, number = _KEY.unpack_from(record.key)
    if version < 0:
        raise CorruptRecord(f"a control record's key has version {version}")
    if number not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise CorruptRecord("a transaction marker's value is too short")
    # Newer versions only add fields behind these two.
    _, coordinator_epoch = _VALUE.unpack_from(record.value)
    return EndTransactionMarker(ControlType(number), coordinator_epoch)
