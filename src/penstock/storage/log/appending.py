"""One append before it is written: batches with their offsets, and what they change.

Everything that can be refused is refused here, while the log is still untouched. Writing, and
applying the changes once the bytes are in the file, is `log.py`'s.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.errors import CorruptRecord, RecordTooLarge
from penstock.records.batch import CONTROL, LEAD, BatchHeader, stamp_append_time
from penstock.storage.producers.producers import ProducerTable, ProducerUpdate, SequencedBatch
from penstock.storage.segments.segment import Placed

Batches = Sequence[tuple[BatchHeader, memoryview]]
NO_TIMESTAMP: Final = -1


class Appended(NamedTuple):
    """Where a batch, or several in one append, came to lie."""

    base_offset: int
    last_offset: int  # A batch sent twice gets its first offsets back, and waits like the first.
    log_append_ms: int | None  # None: the producer's own timestamps stand.
    log_start_offset: int
    is_duplicate: bool = False


class Append:
    """Batches that will follow each other in one segment."""

    __slots__ = (
        "buffers",
        "duplicate",
        "epochs",
        "first_offset",
        "largest_timestamp",
        "next_offset",
        "placed",
        "size",
        "table",
        "update",
    )

    def __init__(self, first_offset: int, table: ProducerTable) -> None:
        self.first_offset = first_offset
        self.next_offset = first_offset
        self.size = 0
        self.largest_timestamp = NO_TIMESTAMP
        self.buffers: list[memoryview] = []
        self.placed: list[Placed] = []
        self.epochs: list[tuple[int, int]] = []  # Epochs that begin here, with their offsets.
        self.table = table
        self.update: ProducerUpdate | None = None  # None: no batch is of an idempotent producer.
        self.duplicate: SequencedBatch | None = None  # None: nothing was sent before.

    def place(self, batch: memoryview, last_offset: int, timestamp: int) -> None:
        size = len(batch)
        self.buffers.append(batch)
        self.placed.append(tuple.__new__(Placed, (size, last_offset, timestamp)))
        self.size += size
        self.next_offset = last_offset + 1
        if timestamp > self.largest_timestamp:
            self.largest_timestamp = timestamp


def gather_as_leader(
    append: Append,
    batches: Batches,
    *,
    leader_epoch: int,
    append_ms: int | None,
    bytes_max: int,
    verify_producer: bool,
    transaction_version: int,
) -> None:
    """Give each batch the next offsets; stops at one that is in the log already."""
    for header, batch in batches:
        if len(batch) > bytes_max:
            raise RecordTooLarge(f"a batch of {len(batch)} bytes; {bytes_max} are allowed")
        offset = append.next_offset
        timestamp = header.max_timestamp if append_ms is None else append_ms
        if header.producer_id >= 0:
            _admit(append, header, batch, timestamp, verify_producer, transaction_version)
            if append.duplicate is not None:
                return
        LEAD.pack_into(batch, 0, offset, header.batch_length, leader_epoch)
        if append_ms is not None:
            stamp_append_time(batch, append_ms)
        append.place(batch, offset + header.last_offset_delta, timestamp)


def _admit(
    append: Append,
    header: BatchHeader,
    batch: memoryview,
    timestamp: int,
    verify_producer: bool,
    transaction_version: int,
) -> None:
    update = append.update
    if update is None:
        update = append.update = ProducerUpdate(append.table)
    offset = append.next_offset
    if header.attributes & CONTROL:
        update.add_control(header, batch, offset, transaction_version=transaction_version)
        return
    if verify_producer:
        append.duplicate = update.duplicate_of(header)
        if append.duplicate is not None:
            return
    update.add(header, offset, timestamp, is_sequence_checked=verify_producer)


def gather_as_follower(append: Append, batches: Batches, latest_epoch: int) -> None:
    """Take batches as the leader placed them; the leader checked their producers."""
    append.first_offset = batches[0][0].base_offset
    for header, batch in batches:
        base_offset = header.base_offset
        if base_offset < append.next_offset:
            raise CorruptRecord(
                f"a batch begins at offset {base_offset}, before {append.next_offset}"
            )
        if header.producer_id >= 0:
            _replay(append, header, batch)
        if header.leader_epoch > latest_epoch:
            latest_epoch = header.leader_epoch
            append.epochs.append((latest_epoch, base_offset))
        append.place(batch, base_offset + header.last_offset_delta, header.max_timestamp)


def _replay(append: Append, header: BatchHeader, batch: memoryview) -> None:
    update = append.update
    if update is None:
        update = append.update = ProducerUpdate(append.table, is_replay=True)
    if header.attributes & CONTROL:
        update.add_control(header, batch, header.base_offset)
    else:
        update.add(header, header.base_offset, header.max_timestamp)
