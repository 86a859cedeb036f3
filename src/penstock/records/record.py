"""One record inside a v2 batch: to bytes and back.

Only tools, compaction and the checks of some topics decode records; the way from producer to disk
to consumer never comes here. The loops are written out flat, because a record costs what its
varints cost.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from penstock.errors import CorruptRecord

INT32_MAX = (1 << 31) - 1
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """A record as a reader sees it: absolute offset, absolute timestamp."""

    offset: int
    timestamp: int  # Milliseconds; -1: the record has none.
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Encoded(NamedTuple):
    """Records as bytes, and what the header of their batch must say about them."""

    payload: bytearray
    record_count: int
    last_offset: int
    max_timestamp: int


def varint(number: int) -> bytes:
    """A signed number in zigzag form, seven bits to a byte, lowest first."""
    bits = number << 1 if number >= 0 else (-number << 1) - 1
    if bits < 128:
        return _ONE_BYTE[bits]
    if bits < 16384:
        return bytes((bits & 127 | 128, bits >> 7))
    encoded = bytearray()
    while bits > 127:
        encoded.append(bits & 127 | 128)
        bits >>= 7
    encoded.append(bits)
    return bytes(encoded)


_ONE_BYTE = [bytes((bits,)) for bits in range(128)]
_NULL = varint(-1)
_NO_HEADERS = varint(0)


def encode_records(records: Iterable[Record], *, base_offset: int, base_timestamp: int) -> Encoded:
    """The records one after the other, relative to their batch, in one pass."""
    payload = bytearray()
    record_count, offset, max_timestamp = 0, base_offset - 1, INT64_MIN
    for record in records:
        if not offset < record.offset <= base_offset + INT32_MAX:
            raise ValueError(f"offset {record.offset} does not follow {offset} in one batch")
        offset, timestamp, key, value, headers = record
        delta = timestamp - base_timestamp
        if not INT64_MIN <= delta <= INT64_MAX:
            delta = _wrapped(delta)
        body = (
            b"\0"  # Record attributes: none was ever defined.
            + varint(delta)
            + varint(offset - base_offset)
            + (_NULL if key is None else varint(len(key)) + key)
            + (_NULL if value is None else varint(len(value)) + value)
            + (_encode_headers(headers) if headers else _NO_HEADERS)
        )
        payload += varint(len(body))
        payload += body
        record_count += 1
        if timestamp > max_timestamp:
            max_timestamp = timestamp
    return Encoded(payload, record_count, offset, max_timestamp)


def _encode_headers(headers: Headers) -> bytes:
    parts = [varint(len(headers))]
    for name, value in headers:
        name_bytes = name.encode("utf-8", "surrogateescape")
        parts += (varint(len(name_bytes)), name_bytes)
        parts += (_NULL,) if value is None else (varint(len(value)), value)
    return b"".join(parts)


def decode_records(
    data: bytes,
    *,
    record_count: int,
    base_offset: int,
    last_offset_delta: int,
    base_timestamp: int,
    append_time_ms: int | None,  # None: each record's own timestamp stands.
) -> Iterator[Record]:
    """The records of an uncompressed payload, which they must fill exactly."""
    at = 0
    size = len(data)
    delta_min, delta_max = INT64_MIN - base_timestamp, INT64_MAX - base_timestamp
    if not 0 <= base_offset <= INT64_MAX - last_offset_delta:
        raise CorruptRecord(f"base offset {base_offset} leaves no room for the batch")
    new_record = tuple.__new__
    try:
        for _ in range(record_count):
            # A varint has nearly always one or two bytes, so both are written out each time.
            bits = data[at]
            at += 1
            if bits > 127:
                high = data[at]
                if high > 127:
                    bits, at = _long_varint(data, at, bits, 5)
                else:
                    bits += (high << 7) - 128
                    at += 1
            if bits & 1:
                raise CorruptRecord("a record has a negative length")
            end = at + (bits >> 1)
            if end > size:
                raise CorruptRecord("a record reaches beyond its batch")
            at += 1  # Attributes: unused.

            bits = data[at]
            at += 1
            if bits > 127:
                high = data[at]
                if high > 127:
                    bits, at = _long_varint(data, at, bits, 10)
                else:
                    bits += (high << 7) - 128
                    at += 1
            timestamp = -(bits >> 1) - 1 if bits & 1 else bits >> 1
            if not delta_min <= timestamp <= delta_max:
                timestamp = _wrapped(base_timestamp + timestamp) - base_timestamp

            bits = data[at]
            at += 1
            if bits > 127:
                high = data[at]
                if high > 127:
                    bits, at = _long_varint(data, at, bits, 5)
                else:
                    bits += (high << 7) - 128
                    at += 1
            offset_delta = bits >> 1
            if bits & 1 or offset_delta > last_offset_delta:
                raise CorruptRecord(f"a record's offset is outside its batch ({offset_delta})")

            bits = data[at]
            at += 1
            if bits > 127:
                high = data[at]
                if high > 127:
                    bits, at = _long_varint(data, at, bits, 5)
                else:
                    bits += (high << 7) - 128
                    at += 1
            if bits & 1:
                if bits != 1:
                    raise CorruptRecord("a key has a negative length")
                key = None
            else:
                start = at
                at += bits >> 1
                key = data[start:at]
                if at > end:
                    raise CorruptRecord("a key reaches beyond its record")

            bits = data[at]
            at += 1
            if bits > 127:
                high = data[at]
                if high > 127:
                    bits, at = _long_varint(data, at, bits, 5)
                else:
                    bits += (high << 7) - 128
                    at += 1
            if bits & 1:
                if bits != 1:
                    raise CorruptRecord("a value has a negative length")
                value = None
            else:
                start = at
                at += bits >> 1
                value = data[start:at]
                if at > end:
                    raise CorruptRecord("a value reaches beyond its record")

            headers: Headers = ()
            if data[at]:
                headers, at = _decode_headers(data, at, end)
            else:
                at += 1
            if at != end:
                raise CorruptRecord("a record does not fill its length")
            timestamp = base_timestamp + timestamp if append_time_ms is None else append_time_ms
            yield new_record(Record, (base_offset + offset_delta, timestamp, key, value, headers))
    except IndexError:
        raise CorruptRecord("the records end before their count is reached") from None
    if at != size:
        raise CorruptRecord(f"{size - at} bytes follow the last record of the batch")


def _wrapped(number: int) -> int:
    """As 64-bit arithmetic has it: timestamps at both ends of the range still come back right."""
    return (number - INT64_MIN) % (1 << 64) + INT64_MIN


def _long_varint(data: bytes, at: int, first: int, bytes_max: int) -> tuple[int, int]:
    """The unsigned bits of a varint whose first byte is read already, and where it ends."""
    bits = first & 127
    shift = 7
    while True:
        byte = data[at]
        at += 1
        bits |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift >= 7 * bytes_max:
            raise CorruptRecord(f"a varint is longer than {bytes_max} bytes")
    if bits >> (32 if bytes_max == 5 else 64):
        raise CorruptRecord("a varint is larger than its type")
    return bits, at


def _decode_headers(data: bytes, at: int, end: int) -> tuple[Headers, int]:
    count, at = _length(data, at)
    if count < 0:
        raise CorruptRecord("a record has a negative number of headers")
    headers = []
    for _ in range(count):
        size, at = _length(data, at)
        if size < 0 or at + size > end:
            raise CorruptRecord("a header's name is missing or reaches beyond its record")
        # Names need not be UTF-8 on the wire; escaped surrogates keep any bytes through a rewrite.
        name = str(data[at : at + size], "utf-8", "surrogateescape")
        at += size
        size, at = _length(data, at)
        if size < -1 or at + size > end:
            raise CorruptRecord("a header's value reaches beyond its record")
        headers.append((name, None if size < 0 else data[at : at + size]))
        at += max(size, 0)
    return tuple(headers), at


def _length(data: bytes, at: int) -> tuple[int, int]:
    bits = data[at]
    at += 1
    if bits > 127:
        bits, at = _long_varint(data, at, bits, 5)
    return -(bits >> 1) - 1 if bits & 1 else bits >> 1, at
