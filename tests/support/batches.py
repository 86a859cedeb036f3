"""Record batches of format 2, packed and unpacked by hand.

An independent second pair of eyes for penstock.records: plain, slow, uncompressed unless the
caller brings the compressed bytes.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crc32c import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
CRC_FROM = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """A batch as a fetch returned it."""

    base_offset: int
    last_offset: int
    producer_id: int
    base_sequence: int
    attributes: int
    crc_is_right: bool
    records: bytes


def varint(number: int) -> bytes:
    """A zigzag varint."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def record(
    delta: int, value: bytes, *, key: bytes | None = None, timestamp_delta: int = 0
) -> bytes:
    """One record without headers, behind its length."""
    keyed = varint(-1) if key is None else varint(len(key)) + key
    body = b"\0" + varint(timestamp_delta) + varint(delta) + keyed
    body += varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def batch(
    values: Sequence[bytes],
    *,
    timestamp: int = 1_700_000_000_000,
    producer: tuple[int, int] = (-1, -1),
    sequence: int = -1,
    attributes: int = 0,
    records: bytes | None = None,
) -> bytes:
    """A batch of the values; `records` replaces their bytes, for instance by compressed ones."""
    if records is None:
        records = b"".join(record(i, value) for i, value in enumerate(values))
    count = len(values)
    fields = (count - 1, timestamp, timestamp, *producer, sequence, count)
    checked = struct.pack(">hiqqqhii", attributes, *fields) + records
    length = len(checked) + CRC_FROM - 12
    return struct.pack(">qiibI", 0, length, -1, 2, crc32c(checked)) + checked


def stored_batches(data: bytes) -> Iterator[StoredBatch]:
    """The whole batches at the front of `data`; a cut one at the end is left out."""
    at = 0
    while at + HEADER_BYTES <= len(data):
        fields = HEADER.unpack_from(data, at)
        end = at + 12 + fields[1]
        if end > len(data):
            return
        yield StoredBatch(
            base_offset=fields[0],
            last_offset=fields[0] + fields[6],
            producer_id=fields[9],
            base_sequence=fields[11],
            attributes=fields[5],
            crc_is_right=crc32c(data[at + CRC_FROM : end]) == fields[4],
            records=data[at + HEADER_BYTES : end],
        )
        at = end


def values(stored: StoredBatch) -> Iterator[tuple[int, bytes]]:
    """Offset and value of each record of an uncompressed batch."""
    data, at = stored.records, 0
    while at < len(data):
        size, at = _varint(data, at)
        end = at + size
        _timestamp, at = _varint(data, at + 1)
        delta, at = _varint(data, at)
        key_size, at = _varint(data, at)
        value_size, at = _varint(data, at + max(key_size, 0))
        yield stored.base_offset + delta, data[at : at + value_size]
        at = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
