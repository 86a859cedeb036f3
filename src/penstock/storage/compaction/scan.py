"""Looking through the records of a batch for compaction, without decoding what it does not need.

`scan_keys` gives keys and offsets, by which it is decided what stays; `splice` copies the records
that do, without making them anew. All records of a log go through the first, so both are done by
native code where it was built; what that does not take, and all else, is done by the flat loops
here, in which a record costs what its varints cost.
"""

from typing import Final, NamedTuple

from penstock.errors import CorruptRecord
from penstock.native import NATIVE, NativeModule
from penstock.records.record import INT64_MIN

_NULL: Final = 1  # A length of -1, as the zigzag varint that stands in the record.


class Keys(NamedTuple):
    """The records of a batch that have a key, in order."""

    keys: list[bytes]
    offsets: list[int]
    tombstones: list[int]  # The offsets of those without a value.


class Spliced(NamedTuple):
    """Records that stay, one after the other as they were."""

    payload: bytes
    record_count: int
    max_timestamp: int  # Means nothing where no record stays.


def scan_keys(
    data: bytes, *, record_count: int, base_offset: int, native: NativeModule | None = NATIVE
) -> Keys:
    """The keys of an uncompressed payload."""
    found = None if native is None else native.scan_keys(data, record_count, base_offset)
    return _scan_keys(data, record_count, base_offset) if found is None else Keys(*found)


def _scan_keys(data: bytes, record_count: int, base_offset: int) -> Keys:
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


def splice(
    data: bytes,
    kept: set[int],
    *,
    record_count: int,
    base_offset: int,
    base_timestamp: int,
    native: NativeModule | None = NATIVE,
) -> Spliced:
    """The records of an uncompressed payload whose offsets are kept."""
    found = None if native is None else native.splice(data, kept, record_count, base_offset)
    if found is None:
        return _splice(data, kept, record_count, base_offset, base_timestamp)
    payload, kept_count, newest = found
    return Spliced(payload, kept_count, base_timestamp + newest)


def _splice(
    data: bytes, kept: set[int], record_count: int, base_offset: int, base_timestamp: int
) -> Spliced:
    pieces: list[bytes] = []
    kept_count = 0
    newest = INT64_MIN
    at = begin = 0  # From `begin` on all records so far stay.
    try:
        for _ in range(record_count):
            start = at
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
            bits = data[at]
            at += 1
            if bits > 127:
                bits, at = _varint(data, at - 1)
            delta = -(bits >> 1) - 1 if bits & 1 else bits >> 1

            bits = data[at]
            at += 1
            if bits > 127:
                high = data[at]
                at += 1
                if high > 127:
                    bits, at = _varint(data, at - 2)
                else:
                    bits += (high << 7) - 128
            if base_offset + (bits >> 1) in kept:
                kept_count += 1
                if delta > newest:
                    newest = delta
            else:
                if begin < start:
                    pieces.append(data[begin:start])
                begin = end
            at = end
    except IndexError:
        raise CorruptRecord("the records end before their count is reached") from None
    if at != len(data):
        raise CorruptRecord(f"the records of a batch take {at} of its {len(data)} bytes")
    pieces.append(data[begin:])
    return Spliced(b"".join(pieces), kept_count, base_timestamp + newest)


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
