"""The lz4 frame as Kafka writes it: independent blocks of 64 KB, no content size.

Kafka's Java reader refuses blocks that refer to earlier ones. Its first version (message format 0)
also computed the header's checksum over four bytes too many, and so must whoever talks to the
clients of that time: `with_old_checksum` for what they read, `with_true_checksum` for what they
send.
"""

import struct

from penstock.records import Bytes

_MAGIC = b"\x04\x22\x4d\x18"
_DESCRIPTOR = bytes((0x60, 0x40))  # Version 1 with independent blocks; blocks of 64 KB.
_BLOCK_BYTES = 64 * 1024
_STORED = 0x80000000  # This block would not shrink and stands as it is.
_END = bytes(4)
_LENGTH = struct.Struct("<I")

_HAS_CONTENT_SIZE = 0x08
_HAS_DICTIONARY = 0x01

# Kafka's level 9 is the fast compressor, and its default; every other level is high compression.
_FAST_LEVEL = 9
_LEVEL_MAX = 12


def compress(data: Bytes, level: int | None = None) -> bytes:
    if level is None or level == _FAST_LEVEL:
        return _compress_fast(memoryview(data))
    import cramjam

    stream = cramjam.lz4.Compressor(
        level=min(level, _LEVEL_MAX), content_checksum=False, block_linked=False
    )
    stream.compress(data)
    return bytes(stream.finish())  # It adds a checksum to each block, which all readers know.


def _compress_fast(view: memoryview) -> bytes:
    import cramjam

    parts = [_MAGIC, _DESCRIPTOR, bytes((_checksum(_DESCRIPTOR),))]
    for at in range(0, len(view), _BLOCK_BYTES):
        raw = view[at : at + _BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(raw, store_size=False))
        if len(block) < len(raw):
            parts += (_LENGTH.pack(len(block)), block)
        else:
            parts += (_LENGTH.pack(len(raw) | _STORED), bytes(raw))
    parts.append(_END)
    return b"".join(parts)


def with_old_checksum(frame: bytes) -> bytes:
    """The frame with the header checksum that readers of message format 0 expect."""
    at = _checksum_at(frame)
    return frame[:at] + bytes((_checksum(frame[:at]),)) + frame[at + 1 :]


def with_true_checksum(frame: bytes) -> bytes:
    """The frame with its header checksum corrected; anything but a frame stays as it is."""
    if frame[:4] != _MAGIC or len(frame) <= 4:
        return frame
    at = _checksum_at(frame)
    return frame[:at] + bytes((_checksum(frame[4:at]),)) + frame[at + 1 :]


def _checksum_at(frame: bytes) -> int:
    flags = frame[4]
    return 6 + (8 if flags & _HAS_CONTENT_SIZE else 0) + (4 if flags & _HAS_DICTIONARY else 0)


def _checksum(descriptor: bytes) -> int:
    return xxh32_short(descriptor) >> 8 & 0xFF


_PRIME_1, _PRIME_2, _PRIME_3 = 2654435761, 2246822519, 3266489917
_PRIME_4, _PRIME_5 = 668265263, 374761393
_MASK = 0xFFFFFFFF


def xxh32_short(data: bytes) -> int:
    """The xxHash-32 of less than sixteen bytes, which is all a frame header has."""
    if len(data) >= 16:
        raise ValueError("only for less than sixteen bytes")
    whole = len(data) & ~3
    mixed = _PRIME_5 + len(data)
    for (word,) in _LENGTH.iter_unpack(data[:whole]):
        mixed = _rotated(mixed + word * _PRIME_3, 17) * _PRIME_4
    for byte in data[whole:]:
        mixed = _rotated(mixed + byte * _PRIME_5, 11) * _PRIME_1
    mixed &= _MASK
    mixed = (mixed ^ mixed >> 15) * _PRIME_2 & _MASK
    mixed = (mixed ^ mixed >> 13) * _PRIME_3 & _MASK
    return mixed ^ mixed >> 16


def _rotated(number: int, by: int) -> int:
    number &= _MASK
    return (number << by | number >> 32 - by) & _MASK
