"""The smallest pieces of the wire format: unsigned varints, strings with a length, topic ids.

Message bodies are read and written by compiled codecs (`decoding`, `encoding`), which call in here
only for what is rare or long. Signed varints occur only inside records and live with them.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from struct import Struct
from struct import error as StructError
from typing import NoReturn

from penstock.errors import InvalidRequest

ZERO_UUID = bytes(16)
UVARINT_MAX = 0xFFFF_FFFF  # Kafka's unsigned varints are 32 bits wide: five bytes at most.

_INT16 = Struct(">h")

# Lengths and counts below 128 are one byte, which is nearly all of them: the bytes are ready here.
SHORT_UVARINTS = tuple(bytes((value,)) for value in range(128))


class MalformedMessage(InvalidRequest):
    """Bytes that are not the message they claim to be; the code on the wire is INVALID_REQUEST."""


def malformed(reason: str) -> NoReturn:
    """Refuse from within an expression, as compiled codecs do."""
    raise MalformedMessage(reason)


def encode_uvarint(value: int) -> bytes:
    """Seven bits per byte, lowest first; the high bit says that more follow."""
    if value < 128:
        return SHORT_UVARINTS[value]
    # Two and three bytes hold the size of every usual batch, so they are spelled out.
    if value < 1 << 14:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 1 << 21:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    return bytes((value & 0x7F | 0x80,)) + encode_uvarint(value >> 7)


def decode_uvarint(data: memoryview, at: int) -> tuple[int, int]:
    """The value at a position, and the position after it."""
    try:
        byte = data[at]
        if byte < 128:
            return byte, at + 1
        return decode_long_uvarint(data, at + 1, byte)
    except IndexError:
        raise MalformedMessage("the message ends inside a varint") from None


def decode_long_uvarint(data: memoryview, at: int, first: int) -> tuple[int, int]:
    """The rest of a varint whose first byte, already read, had its high bit set."""
    byte = data[at]
    if byte < 128:
        return first & 0x7F | byte << 7, at + 1
    value = first & 0x7F | (byte & 0x7F) << 7
    for shift in (14, 21, 28):
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 128 and value <= UVARINT_MAX:
            return value, at + 1
    raise MalformedMessage("a varint is longer than 32 bits")


def encode_nullable_string(value: str | None) -> bytes:
    """A string with a 16-bit length, where -1 stands for null: the form all headers use."""
    if value is None:
        return b"\xff\xff"
    encoded = value.encode()
    return _INT16.pack(len(encoded)) + encoded


def decode_nullable_string(data: memoryview, at: int) -> tuple[str | None, int]:
    """The string at a position, and the position after it."""
    try:
        (length,) = _INT16.unpack_from(data, at)
    except StructError:
        raise MalformedMessage("the message ends inside a string length") from None
    at += 2
    if length < 0:
        return None, at
    if at + length > len(data):
        raise MalformedMessage(f"a string of {length} bytes runs past the end of the message")
    try:
        return str(data[at : at + length], "utf-8"), at + length
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"a string is not UTF-8: {error.reason}") from None


def skip_tagged_fields(data: memoryview, at: int) -> int:
    """The position after a block of tagged fields none of which is of interest."""
    count, at = decode_uvarint(data, at)
    for _ in range(count):
        _, at = decode_uvarint(data, at)
        size, at = decode_uvarint(data, at)
        at += size
        if at > len(data):
            raise MalformedMessage("a tagged field runs past the end of the message")
    return at


def uuid_text(value: bytes) -> str:
    """A topic or directory id as Kafka prints it: URL-safe base64 without padding."""
    return urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """The sixteen bytes of an id printed by `uuid_text`."""
    try:
        value = urlsafe_b64decode(text + "==")
    except (Base64Error, ValueError):
        value = b""
    if len(value) != 16:
        raise ValueError(f"{text!r} is not an id: expected 22 characters of URL-safe base64")
    return value
