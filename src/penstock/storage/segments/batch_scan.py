"""Going through the batches of a segment file, header by header.

A batch says how long it is, so a scan jumps from one to the next; where batches are small, one
read brings many headers. `walk` tells just enough to find an offset, `read_headers` gives whole
headers, and `verified_batches` reads everything and checks it, which is what recovery does.

A scan takes the open file, not its descriptor: as long as it holds the file, nobody closes it.

Files of old Kafka versions may hold message formats 0 and 1. They begin with offset and length
too and have their magic at the same place, so a scan can pass over them and recovery can check
them; what is in them is for `records/legacy.py`.
"""

import os
import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from penstock.errors import CorruptRecord
from penstock.records.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    check_batch,
    read_header,
)
from penstock.storage.segments.file_slice import LogFile

_BRIEF: Final = Struct(">qi4xb6xi")  # Base offset, length, magic, last offset delta.
_LEGACY: Final = Struct(">qiIbbq")  # Offset, length, CRC-32, magic, attributes, timestamp (v1).
_LEGACY_LENGTH_MIN: Final = 14
_LENGTH_MIN: Final = HEADER_BYTES - LOG_OVERHEAD
_CHUNK_BYTES: Final = 4096  # About the distance of two index entries.
_VERIFY_BYTES: Final = 4 * 1024 * 1024


class BatchPlace(NamedTuple):
    """Where one batch lies: its bytes, and its offsets."""

    position: int
    end: int
    base_offset: int
    last_offset: int


def walk(file: LogFile, position: int, end: int) -> Iterator[BatchPlace]:
    """The batches from a batch's beginning on; all of them must lie before `end`."""
    chunk, start = b"", position
    while position < end:
        at = position - start
        if at + _BRIEF.size > len(chunk):
            chunk, start, at = os.pread(file.fd, _CHUNK_BYTES, position), position, 0
            if len(chunk) < _BRIEF.size:
                raise CorruptRecord(f"a batch at {position} is cut off")
        base_offset, length, magic, delta = _BRIEF.unpack_from(chunk, at)
        if magic != MAGIC:
            delta = _legacy_delta(magic, length)
        elif length < _LENGTH_MIN or delta < 0:
            raise CorruptRecord(f"no batch is {length} bytes long")
        batch_end = position + LOG_OVERHEAD + length
        if batch_end > end:
            raise CorruptRecord(f"the batch at {position} reaches beyond {end}")
        yield BatchPlace(position, batch_end, base_offset, base_offset + delta)
        position = batch_end


def _legacy_delta(magic: int, length: int) -> int:
    if magic not in (0, 1) or length < _LEGACY_LENGTH_MIN:
        raise CorruptRecord(f"no batch has magic {magic} and length {length}")
    return 0  # An old message's offset is that of its last inner message.


def read_headers(file: LogFile, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Positions and whole headers; old messages get a header with what they have."""
    chunk, start = b"", position
    while position < end:
        at = position - start
        if at + HEADER_BYTES > len(chunk):
            chunk, start, at = os.pread(file.fd, _CHUNK_BYTES, position), position, 0
        header = _header(memoryview(chunk)[at:])
        if position + header.size_bytes > end:
            raise CorruptRecord(f"the batch at {position} reaches beyond {end}")
        yield position, header
        position += header.size_bytes


def _header(data: memoryview) -> BatchHeader:
    if len(data) > 16 and data[16] < MAGIC:
        return _legacy_header(data)
    header = read_header(data)
    if header.magic != MAGIC or header.batch_length < _LENGTH_MIN or header.last_offset_delta < 0:
        raise CorruptRecord(f"magic {header.magic} and length {header.batch_length}")
    return header


def _legacy_header(data: memoryview) -> BatchHeader:
    if len(data) < LOG_OVERHEAD + _LEGACY_LENGTH_MIN:
        raise CorruptRecord(f"{len(data)} bytes are too few for a message")
    offset, length, crc, magic, attributes, timestamp = _LEGACY.unpack_from(data)
    _legacy_delta(magic, length)
    return BatchHeader(
        base_offset=offset,
        batch_length=length,
        leader_epoch=-1,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp=timestamp if magic else NO_TIMESTAMP,
        max_timestamp=timestamp if magic else NO_TIMESTAMP,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=1,
    )


def verified_batches(
    file: LogFile, position: int, size: int, *, buffer_bytes: int = _VERIFY_BYTES
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Every batch with length, magic and CRC checked; CorruptRecord at the first that is not.

    A batch stays readable until the next is asked for.
    """
    buffer = memoryview(bytearray(min(buffer_bytes, max(size - position, 1))))
    start = end = position  # The file's bytes that the buffer holds.
    while position < size:
        wanted = _wanted_bytes(buffer[position - start : end - start], size - position)
        if position + wanted > end:
            if wanted > len(buffer):
                buffer = memoryview(bytearray(wanted))
            start, end = position, position + _fill(file.fd, position, buffer)
            if end - start < wanted:
                raise CorruptRecord(f"the file ends {size - end} bytes early")
            continue
        batch = buffer[position - start : position - start + wanted]
        yield position, _check(batch), batch
        position += wanted


def _fill(fd: int, position: int, buffer: memoryview) -> int:
    filled = 0
    while filled < len(buffer):
        count = os.preadv(fd, [buffer[filled:]], position + filled)
        if not count:
            break
        filled += count
    return filled


def _wanted_bytes(have: memoryview, left: int) -> int:
    """How many bytes the next batch needs: its own size, once its length can be seen."""
    if len(have) < _BRIEF.size:
        if left < LOG_OVERHEAD + _LEGACY_LENGTH_MIN:
            raise CorruptRecord(f"{left} bytes are too few for a batch")
        return min(HEADER_BYTES, left)
    length: int
    _, length, magic, _ = _BRIEF.unpack_from(have)
    if length < (_LENGTH_MIN if magic >= MAGIC else _LEGACY_LENGTH_MIN):
        raise CorruptRecord(f"no batch is {length} bytes long")
    if LOG_OVERHEAD + length > left:
        raise CorruptRecord(f"a batch of {LOG_OVERHEAD + length} bytes ends after {left}")
    return LOG_OVERHEAD + length


def _check(batch: memoryview) -> BatchHeader:
    if batch[16] >= MAGIC:
        return check_batch(batch)
    header = _legacy_header(batch)
    if header.size_bytes != len(batch):
        raise CorruptRecord(f"a message of {header.size_bytes} bytes ends after {len(batch)}")
    if zlib.crc32(batch[16:]) != header.crc:
        raise CorruptRecord(f"the CRC of the message at offset {header.base_offset} is wrong")
    return header
