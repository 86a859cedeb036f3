"""Message formats 0 and 1, which clients up to 0.10 speak: to records and back.

A message set is a row of messages, each with its own CRC-32. Compression wraps a whole message set
into the value of one message, whose offset is that of the last message inside. Format 1 adds the
timestamp and counts inner offsets from the first inner message. Turning these into v2 batches and
back is `legacy`'s business.
"""

import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple
from zlib import crc32

from penstock.errors import CorruptRecord, UnsupportedCompressionType
from penstock.records import Bytes, lz4_frame
from penstock.records.compression import Codec, compress, decompress
from penstock.records.record import INT64_MAX, Record

LOG_OVERHEAD = 12  # Offset and size, which the size itself does not count.
MAGIC_AT = 16
NO_TIMESTAMP = -1

_FRAME = struct.Struct(">qi")  # Offset, size.
_FIXED = struct.Struct(">Ibb")  # CRC, magic, attributes.
_CRC = struct.Struct(">I")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_CODEC_BITS = 0x07
_LOG_APPEND_TIME = 0x08


class LegacyMessage(NamedTuple):
    """One message as it stands in its set; compressed ones hold a message set as value."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> Codec:
        number = self.attributes & _CODEC_BITS
        if number > Codec.LZ4:
            raise UnsupportedCompressionType(f"messages of format 0 and 1 have no codec {number}")
        return Codec(number)

    @property
    def append_time_ms(self) -> int | None:
        """When the broker stamped the message; None: the timestamp is the producer's."""
        if self.magic == 0 or not self.attributes & _LOG_APPEND_TIME:
            return None
        return self.timestamp


def split_messages(data: Bytes) -> Iterator[LegacyMessage]:
    """The messages of a set, not looking into wrappers, each with its CRC checked."""
    view = memoryview(data)
    at, size = 0, len(view)
    while at < size:
        end = _message_end(view, at)
        yield _read_message(view, at, end)
        at = end


def _message_end(view: memoryview, at: int) -> int:
    if at + LOG_OVERHEAD > len(view):
        raise CorruptRecord(f"{len(view) - at} bytes are too few for a message")
    _, size = _FRAME.unpack_from(view, at)
    end = int(at + LOG_OVERHEAD + size)
    if size < _FIXED.size or end > len(view):
        raise CorruptRecord(f"message size {size} does not fit the set it is in")
    return end


def _read_message(view: memoryview, at: int, end: int) -> LegacyMessage:
    offset, _ = _FRAME.unpack_from(view, at)
    at += LOG_OVERHEAD
    crc, magic, attributes = _FIXED.unpack_from(view, at)
    if crc32(view[at + _CRC.size : end]) != crc:
        raise CorruptRecord(f"the CRC of the message at offset {offset} is wrong")
    if magic not in (0, 1):
        raise CorruptRecord(f"magic {magic} in a set of messages of format 0 or 1")
    at += _FIXED.size
    timestamp = NO_TIMESTAMP
    try:
        if magic == 1:
            (timestamp,) = _TIMESTAMP.unpack_from(view, at)
            at += _TIMESTAMP.size
        key, at = _read_bytes(view, at, end)
        value, at = _read_bytes(view, at, end)
    except struct.error:
        raise CorruptRecord(f"the message at offset {offset} is too short") from None
    if at != end:
        raise CorruptRecord(f"{end - at} bytes follow the value of the message at offset {offset}")
    return LegacyMessage(offset, magic, attributes, timestamp, key, value)


def _read_bytes(view: memoryview, at: int, end: int) -> tuple[bytes | None, int]:
    (size,) = _LENGTH.unpack_from(view, at)
    at += _LENGTH.size
    if size == -1:
        return None, at
    if size < 0 or at + size > end:
        raise CorruptRecord(f"a key or value of {size} bytes reaches beyond its message")
    return bytes(view[at : at + size]), at + size


def unwrap(wrapper: LegacyMessage, *, bytes_max: int) -> Iterator[Record]:
    """The records inside a compressed message, with the offsets and timestamps that are meant."""
    inner = memoryview(_decompress(wrapper, bytes_max=bytes_max))
    shift = _offset_shift(wrapper, inner)
    for message in split_messages(inner):
        if message.magic != wrapper.magic:
            raise CorruptRecord(f"magic {message.magic} inside a message of {wrapper.magic}")
        if message.attributes & _CODEC_BITS:
            raise CorruptRecord("a compressed message inside a compressed message")
        yield _record(message, shift=shift, append_time_ms=wrapper.append_time_ms)


def _decompress(wrapper: LegacyMessage, *, bytes_max: int) -> Bytes:
    data = wrapper.value
    if data is None:
        raise CorruptRecord("a compressed message without a value")
    codec = wrapper.codec
    if codec is Codec.LZ4:
        # Clients of format 0 send the wrong checksum, and Kafka never looked at it.
        data = lz4_frame.with_true_checksum(data)
    return decompress(codec, data, bytes_max=bytes_max)


def _offset_shift(wrapper: LegacyMessage, inner: memoryview) -> int:
    """What to add to inner offsets: nothing in format 0, which has absolute ones."""
    last = _last_offset(inner)
    if wrapper.magic == 0 or wrapper.offset == 0:
        return 0  # Some producers leave the wrapper's offset zero; the broker will number anyway.
    if wrapper.offset < last:
        raise CorruptRecord(f"wrapper offset {wrapper.offset} is below inner offset {last}")
    return wrapper.offset - last


def _last_offset(inner: memoryview) -> int:
    if not len(inner):
        raise CorruptRecord("a compressed message with no messages inside")
    at = last = 0
    while at < len(inner):
        end = _message_end(inner, at)
        last, _ = _FRAME.unpack_from(inner, at)
        at = end
    return last


def _record(message: LegacyMessage, *, shift: int, append_time_ms: int | None) -> Record:
    offset = message.offset + shift
    if not 0 <= offset <= INT64_MAX:
        raise CorruptRecord(f"offset {offset} of a message is out of range")
    timestamp = message.timestamp if append_time_ms is None else append_time_ms
    return Record(offset, timestamp, message.key, message.value)


def read_message(message: LegacyMessage, *, bytes_max: int) -> Iterator[Record]:
    """The records of one outer message: those inside, or itself."""
    if message.attributes & _CODEC_BITS:
        return unwrap(message, bytes_max=bytes_max)
    return iter((_record(message, shift=0, append_time_ms=None),))


def read_message_set(data: Bytes, *, bytes_max: int) -> Iterator[Record]:
    """All records of a message set, wrapped or not."""
    for message in split_messages(data):
        yield from read_message(message, bytes_max=bytes_max)


def write_message_set(
    records: Iterable[Record],
    *,
    magic: int,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    append_time_ms: int | None = None,  # None: the producer's timestamps stand.
) -> bytearray:
    """Records as messages at their offsets, in one wrapper if compressed; headers are lost."""
    if codec > Codec.LZ4:
        raise UnsupportedCompressionType(
            f"readers of message format {magic} do not know {codec.name.lower()}"
        )
    attributes = _LOG_APPEND_TIME if magic and append_time_ms is not None else 0
    left = iter(records)
    first = next(left, None)
    if first is None:
        return bytearray()
    shift = -first.offset if magic and codec else 0
    messages = bytearray()
    last, timestamp = first, NO_TIMESTAMP
    for record in chain((first,), left):
        messages += _write_message(
            record, shift=shift, magic=magic, attributes=attributes, append_time_ms=append_time_ms
        )
        last, timestamp = record, max(timestamp, record.timestamp)
    if not codec:
        return messages
    wrapper = Record(last.offset, timestamp, None, _compress(codec, messages, magic, level))
    return _write_message(
        wrapper, shift=0, magic=magic, attributes=attributes | codec, append_time_ms=append_time_ms
    )


def _compress(codec: Codec, messages: Bytes, magic: int, level: int | None) -> bytes:
    data = compress(codec, messages, level=level)
    if codec is Codec.LZ4 and magic == 0:
        return lz4_frame.with_old_checksum(data)
    return data


def _write_message(
    record: Record, *, shift: int, magic: int, attributes: int, append_time_ms: int | None
) -> bytearray:
    timestamp = record.timestamp if append_time_ms is None else append_time_ms
    body = b"".join(
        (
            bytes((magic, attributes)),
            _TIMESTAMP.pack(timestamp) if magic else b"",
            _sized(record.key),
            _sized(record.value),
        )
    )
    message = bytearray(_FRAME.pack(record.offset + shift, _CRC.size + len(body)))
    message += _CRC.pack(crc32(body))
    message += body
    return message


def _sized(data: bytes | None) -> bytes:
    return _LENGTH.pack(-1) if data is None else _LENGTH.pack(len(data)) + data
