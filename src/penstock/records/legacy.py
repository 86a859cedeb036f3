"""Between the message formats of old clients and the one on disk.

Produce requests up to version 2 bring formats 0 and 1, which are converted up before the append;
fetch requests up to version 3 expect them back. Both cost decoding and are for old clients only.
The formats themselves are in `message_set` and `batch`.
"""

import struct
from collections.abc import Iterable, Iterator
from itertools import chain, groupby

from penstock.errors import CorruptRecord, InvalidTimestamp
from penstock.records import Bytes
from penstock.records.batch import MAGIC, build_batch, check_batch, read_records
from penstock.records.compression import DECOMPRESSED_BYTES_MAX, Codec
from penstock.records.message_set import (
    LOG_OVERHEAD,
    MAGIC_AT,
    LegacyMessage,
    read_message,
    split_messages,
    write_message_set,
)
from penstock.records.record import INT32_MAX, Record

_SIZE_AT = 8


def is_legacy(data: Bytes) -> bool:
    """Whether a record set starts with a message of format 0 or 1."""
    return len(data) > MAGIC_AT and data[MAGIC_AT] < MAGIC


def convert_up(
    message_set: Bytes,
    *,
    append_time_ms: int | None = None,
    keep_offsets: bool = False,
    bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bytearray:
    """The message set as v2 batches: one for each wrapper, one for each run of plain messages.

    A producer's offsets mean nothing, so each batch counts from zero unless `keep_offsets` is set,
    as for message sets that come from a log. With `append_time_ms` the broker's clock replaces
    the timestamps.
    """
    batches = bytearray()
    for codec, time_ms, records in _runs(split_messages(message_set), bytes_max):
        if time_ms is not None and not keep_offsets:
            raise InvalidTimestamp("a producer must not set the timestamp type LogAppendTime")
        time_ms = time_ms if append_time_ms is None else append_time_ms
        for base_offset, run in _batches(records, keep_offsets=keep_offsets):
            batches += build_batch(
                run, base_offset=base_offset, codec=codec, append_time_ms=time_ms
            )
    return batches


def _runs(
    messages: Iterable[LegacyMessage], bytes_max: int
) -> Iterator[tuple[Codec, int | None, Iterator[Record]]]:
    """What belongs in one batch: a wrapper, or plain messages with one kind of timestamp."""
    numbered = enumerate(messages)
    # A wrapper's own number keeps it apart from the next one; plain messages share a number.
    runs = groupby(
        numbered, lambda pair: (pair[1].codec, pair[1].append_time_ms, pair[1].codec and pair[0])
    )
    for (codec, time_ms, _), pairs in runs:
        read = (read_message(message, bytes_max=bytes_max) for _, message in pairs)
        yield codec, time_ms, chain.from_iterable(read)


def _batches(
    records: Iterator[Record], *, keep_offsets: bool
) -> Iterator[tuple[int, Iterable[Record]]]:
    if not keep_offsets:
        yield 0, (record._replace(offset=at) for at, record in enumerate(records))
        return
    run: list[Record] = []
    for record in records:
        if run and not run[-1].offset < record.offset <= run[0].offset + INT32_MAX:
            yield run[0].offset, run
            run = []
        run.append(record)
    if run:
        yield run[0].offset, run


def convert_down(
    batches: Bytes,
    magic: int,
    *,
    start_offset: int = 0,
    bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bytes:
    """The batches as a message set of format 0 or 1, at the same offsets.

    Compressed batches become one wrapper each. Control batches and record headers have no place in
    these formats and are left out, as are plain records before `start_offset`, because readers of
    that time take what they get. A batch cut off at the end is left out too. Raises
    UnsupportedCompressionType for zstd.
    """
    view = memoryview(batches)
    message_set = bytearray()
    for entry in _whole_entries(view):
        if entry[MAGIC_AT] <= magic:
            message_set += entry
        elif entry[MAGIC_AT] < MAGIC:
            message_set += _message_down(entry, magic, bytes_max=bytes_max)
        else:
            message_set += _batch_down(entry, magic, start_offset, bytes_max=bytes_max)
    return bytes(message_set)


def _whole_entries(view: memoryview) -> Iterator[memoryview]:
    at = 0
    while at + MAGIC_AT < len(view):
        (size,) = struct.unpack_from(">i", view, at + _SIZE_AT)
        if size < MAGIC_AT - LOG_OVERHEAD + 1:
            raise CorruptRecord(f"size {size} of a batch or message")
        end = at + LOG_OVERHEAD + size
        if end > len(view):
            return
        yield view[at:end]
        at = end


def _batch_down(batch: memoryview, magic: int, start_offset: int, *, bytes_max: int) -> bytearray:
    header = check_batch(batch)
    if header.is_control:
        return bytearray()
    codec = header.codec
    records = read_records(batch, bytes_max=bytes_max)
    if codec is Codec.NONE:
        records = (record for record in records if record.offset >= start_offset)
    return write_message_set(
        records,
        magic=magic,
        codec=codec,
        append_time_ms=header.max_timestamp if header.is_log_append_time else None,
    )


def _message_down(entry: memoryview, magic: int, *, bytes_max: int) -> bytearray:
    (message,) = split_messages(entry)
    return write_message_set(
        read_message(message, bytes_max=bytes_max), magic=magic, codec=message.codec
    )
