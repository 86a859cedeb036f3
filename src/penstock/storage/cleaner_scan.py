"""Looking through the records of a batch for compaction, without decoding what it does not need.

`scan_keys` gives keys and offsets, by which it is decided what stays; `scan_spans` tells where each
record begins and ends, so that those that stay are copied as they are. Both are flat loops: all
records of a log go through the first, and a record costs what its varints cost.
"""

from typing import Final, NamedTuple

from penstock.errors import CorruptRecord
from penstock.records.record import INT64_MAX, INT64_MIN

_NULL: Final = 1  # A length of -1, as the zigzag varint that stands in the record.


class Keys(NamedTuple):
    """The records of a batch that have a key, in order."""

    keys: list[bytes]
    offsets: list[int]
    tombstones: list[int]  # The offsets of those without a value.


# One record: where it begins and ends in the payload, its offset and its timestamp.
Span = tuple[int, int, int, int]


def scan_keys(data: bytes, *, record_count: int, base_offset: int) -> Keys:
    """The keys of an uncompressed payload."""
    keys: list[bytes] = []
    offsets: list[int] = []
    tombstones: list[int] = []
    at = 0
    try:
        for _ in range(record_count):
            # A varint has nearly always one or two bytes, so both are written out each time.
            bits = data[at]
            at += 1
            if bits > 127:
                high = data[at]
                at += 1
                if high > 127:
                    bits, at = _varint(data, at - 2)
                else:
                    bits += (high << 7) - 128
            end = at + (bits >> 1)

            at += 1  # Attributes: unused.
            while data[at] > 127:  # The timestamp.
                at += 1
            at += 1

            bits = data[at]
            at += 1
            if bits > 127:
                high = data[at]
                at += 1
                if high > 127:
                    bits, at = _varint(data, at - 2)
                else:
                    bits += (high << 7) - 128
            offset = base_offset + (bits >> 1)

            bits = data[at]
            at += 1
            if bits > 127:
                high = data[at]
                at += 1
                if high > 127:
                    bits, at = _varint(data, at - 2)
                else:
                    bits += (high << 7) - 128
            if bits != _NULL:
                start = at
                at += bits >> 1
                if at >= end or bits & 1:
                    raise CorruptRecord(f"the key of the record at offset {offset} is too long")
                keys.append(data[start:at])
                offsets.append(offset)
                if data[at] == _NULL:
                    tombstones.append(offset)
            at = end
    except IndexError:
        raise CorruptRecord("the records end before their count is reached") from None
    if at != len(data):
        raise CorruptRecord(f"the records of a batch take {at} of its {len(data)} bytes")
    return Keys(keys, offsets, tombstones)


def scan_spans(
    data: bytes, *, record_count: int, base_offset: int, base_timestamp: int
) -> list[Span]:
    """Where the records of an uncompressed payload lie, and how old they are."""
    spans: list[Span] = []
    at = 0
    try:
        for _ in range(record_count):
            start = at
            bits, at = _varint(data, at)
            end = at + (bits >> 1)
            bits, at = _varint(data, at + 1)
            timestamp = base_timestamp + (-(bits >> 1) - 1 if bits & 1 else bits >> 1)
            if not INT64_MIN <= timestamp <= INT64_MAX:  # As 64-bit arithmetic has it.
                timestamp = (timestamp - INT64_MIN) % (1 << 64) + INT64_MIN
            bits, at = _varint(data, at)
            spans.append((start, end, base_offset + (bits >> 1), timestamp))
            at = end
    except IndexError:
        raise CorruptRecord("the records end before their count is reached") from None
    if at != len(data):
        raise CorruptRecord(f"the records of a batch take {at} of its {len(data)} bytes")
    return spans


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The bits of a varint of any length, and where it ends."""
    bits = shift = 0
    while True:
        byte = data[at]
        at += 1
        bits |= (byte & 127) << shift
        if byte < 128:
            return bits, at
        shift += 7
        if shift > 63:
            raise CorruptRecord("a varint is longer than ten bytes")
