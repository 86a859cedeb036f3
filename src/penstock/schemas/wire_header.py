"""The header that names a value's schema: a zero byte and the schema's id in four.

Serializers that work with a schema registry put it in front of the value. Protobuf adds the list of
indexes that leads to the message inside its file, since a file may declare several: `[1, 0]` is the
first message declared inside the second one. The list is a count and the indexes as zigzag varints;
the frequent `[0]` is written as a single zero.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from penstock.records.record import varint
from penstock.schemas.errors import DecodeError, EncodeError

MAGIC = 0
HEADER_BYTES = 5
SCHEMA_ID_MAX = 2**31 - 1
_HEADER = struct.Struct(">bi")
_FIRST_MESSAGE = (0,)
_VARINT_BYTES_MAX = 5  # An index is a 32-bit number.


class MessageIndexes(NamedTuple):
    """Which message of a file it is, and where the message itself begins."""

    path: tuple[int, ...]
    payload_at: int


def write_header(schema_id: int) -> bytes:
    """The five bytes in front of a value."""
    if not 0 <= schema_id <= SCHEMA_ID_MAX:
        raise EncodeError(f"schema id {schema_id} is not between 0 and {SCHEMA_ID_MAX}")
    return _HEADER.pack(MAGIC, schema_id)


def read_header(data: bytes) -> int:
    """The schema id in front of a value; the rest begins at HEADER_BYTES."""
    if len(data) < HEADER_BYTES:
        raise DecodeError(
            f"{len(data)} bytes are too few for the header that names the schema "
            f"({HEADER_BYTES} bytes)"
        )
    magic, schema_id = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise DecodeError(
            f"the value begins with byte {data[0]} instead of {MAGIC}: it has no header that "
            "names a schema"
        )
    if schema_id < 0:
        raise DecodeError(f"the header names schema id {schema_id}, which is negative")
    return int(schema_id)


def write_message_indexes(path: Sequence[int]) -> bytes:
    """The list that leads to a message inside its file."""
    if not path or min(path) < 0:
        raise EncodeError(f"message indexes {list(path)} lead to no message")
    if tuple(path) == _FIRST_MESSAGE:
        return b"\x00"
    return b"".join(varint(number) for number in (len(path), *path))


def read_message_indexes(data: bytes, at: int = HEADER_BYTES) -> MessageIndexes:
    """The list that a Protobuf value has behind its header."""
    count, at = _read_zigzag(data, at)
    if count == 0:
        return MessageIndexes(_FIRST_MESSAGE, at)
    if not 0 < count <= len(data) - at:
        raise DecodeError(f"the list of message indexes cannot have {count} elements")
    path: list[int] = []
    for _ in range(count):
        index, at = _read_zigzag(data, at)
        if index < 0:
            raise DecodeError(f"message index {index} is negative")
        path.append(index)
    return MessageIndexes(tuple(path), at)


def _read_zigzag(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
        if at >= len(data):
            raise DecodeError("the value ends inside its list of message indexes")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise DecodeError("a message index is longer than five bytes")
