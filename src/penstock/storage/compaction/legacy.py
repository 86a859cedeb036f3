"""Compaction of messages in formats 0 and 1, as a log may hold that an old Kafka wrote.

A message, or a compressed wrapper with many, that stays whole is left as it is. Where only some of
a wrapper stay, they become a batch of today's format, with their offsets and timestamps.
"""

from collections.abc import Callable

from penstock.records.batch import BatchHeader, build_batch
from penstock.records.compression import DECOMPRESSED_BYTES_MAX
from penstock.records.message_set import read_message, split_messages
from penstock.records.record import Record
from penstock.storage.compaction.scan import Keys


def legacy_keys(batch: memoryview) -> Keys:
    """The keys in one message, or in the messages it wraps."""
    records = _records(batch)
    keyed = [(record.key, record.offset) for record in records if record.key is not None]
    tombstones = [r.offset for r in records if r.key is not None and r.value is None]
    return Keys([key for key, _ in keyed], [offset for _, offset in keyed], tombstones)


def filter_legacy(
    header: BatchHeader, batch: memoryview, stays: Callable[[list[Record]], list[bool]]
) -> memoryview | bytearray | None:
    """The message as it is, a batch of what stays of it, or None."""
    records = _records(batch)
    verdicts = stays(records)
    if all(verdicts):
        return batch
    kept = [record for record, verdict in zip(records, verdicts, strict=True) if verdict]
    if not kept:
        return None
    (wrapper,) = split_messages(batch)
    base_offset = kept[0].offset
    return build_batch(
        kept,
        base_offset=base_offset,
        codec=wrapper.codec,
        append_time_ms=wrapper.append_time_ms,
        last_offset_delta=header.last_offset - base_offset,
    )


def _records(batch: memoryview) -> list[Record]:
    return [
        record
        for message in split_messages(batch)
        for record in read_message(message, bytes_max=DECOMPRESSED_BYTES_MAX)
    ]
