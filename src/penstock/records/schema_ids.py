"""The schema ids in front of the keys or values of a batch, without decoding anything else.

Serializers that work with a schema registry put a zero byte and the schema's id, four bytes, in
front of what they write. A topic that checks ids looks at nothing more than these five bytes of
each record. The loop is written out flat: it costs under a microsecond for a record, and numpy
pays off only beyond a thousand of them.
"""

import struct
from typing import Final

from penstock.errors import CorruptRecord

NULL: Final = -1  # The key or value is null, so there is nothing to check.
NO_HEADER: Final = -2  # It does not begin with a zero byte and an id.
HEADER_BYTES: Final = 5

_ID = struct.Struct(">i")


def read_schema_ids(payload: bytes, record_count: int, *, is_key: bool) -> list[int]:
    """The id of each record's key or value, NULL or NO_HEADER, of an uncompressed payload.

    A producer numbers its records without gaps and fills its batch; CorruptRecord if it did not.
    """
    ids: list[int] = []
    # A varint has nearly always one or two bytes, so both are written out each time.
    note, read_id, size = ids.append, _ID.unpack_from, len(payload)
    at = 0
    try:
        for index in range(record_count):
            bits = payload[at]
            at += 1
            if bits > 127:
                high = payload[at]
                if high > 127:
                    bits, at = _varint(payload, at, bits)
                else:
                    bits += (high << 7) - 128
                    at += 1
            end = at + (bits >> 1)
            at += 1  # Attributes: unused. Behind them, the timestamp.
            bits = payload[at]
            at += 1
            if bits > 127:
                high = payload[at]
                if high > 127:
                    bits, at = _varint(payload, at, bits)
                else:
                    bits += (high << 7) - 128
                    at += 1
            bits = payload[at]
            at += 1
            if bits > 127:
                high = payload[at]
                if high > 127:
                    bits, at = _varint(payload, at, bits)
                else:
                    bits += (high << 7) - 128
                    at += 1
            if bits != index << 1:
                raise CorruptRecord(f"record {index} of a batch has the offset delta {bits >> 1}")
            bits = payload[at]
            at += 1
            if bits > 127:
                high = payload[at]
                if high > 127:
                    bits, at = _varint(payload, at, bits)
                else:
                    bits += (high << 7) - 128
                    at += 1
            if not is_key:
                if not bits & 1:
                    at += bits >> 1
                bits = payload[at]
                at += 1
                if bits > 127:
                    high = payload[at]
                    if high > 127:
                        bits, at = _varint(payload, at, bits)
                    else:
                        bits += (high << 7) - 128
                        at += 1
            if bits & 1:
                note(NULL)
            elif at + (bits >> 1) > end or end > size:
                raise CorruptRecord(f"record {index} of a batch reaches beyond its end")
            elif bits >> 1 < HEADER_BYTES or payload[at]:
                note(NO_HEADER)
            else:
                (schema_id,) = read_id(payload, at + 1)
                note(schema_id if schema_id >= 0 else NO_HEADER)
            at = end
    except IndexError:
        raise CorruptRecord("the records end before their count is reached") from None
    if at != size:
        raise CorruptRecord(f"{size - at} bytes follow the last record of the batch")
    return ids


def _varint(payload: bytes, at: int, first: int) -> tuple[int, int]:
    """The unsigned bits of a varint whose first byte is read already, and where it ends."""
    bits, shift = first & 127, 7
    while True:
        byte = payload[at]
        at += 1
        bits |= (byte & 127) << shift
        if byte < 128:
            return bits, at
        shift += 7
        if shift > 63:
            raise CorruptRecord("a varint is longer than 10 bytes")
