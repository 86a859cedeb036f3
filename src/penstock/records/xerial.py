"""The frame that Java's snappy library puts around snappy blocks, and Kafka with it.

A header of sixteen bytes, then blocks of at most 32 KB, each with its compressed length in front.
Some clients send one bare snappy block instead, so both are read; only the frame is written.
"""

import struct

from penstock.records import Bytes

_MAGIC = b"\x82SNAPPY\0"
_HEADER = _MAGIC + struct.pack(">ii", 1, 1)  # Version, oldest version that can read it.
_LENGTH = struct.Struct(">i")
_BLOCK_BYTES = 32 * 1024


def compress(data: Bytes) -> bytes:
    import cramjam

    view = memoryview(data)
    parts = [_HEADER]
    for at in range(0, len(view), _BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[at : at + _BLOCK_BYTES]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def decompress_into(data: Bytes, output: bytearray | memoryview) -> int:
    """Fill the output and say how far; cramjam's DecompressionError for damage or no room."""
    import cramjam

    view = memoryview(data)
    if view[: len(_MAGIC)] != _MAGIC:
        return int(cramjam.snappy.decompress_raw_into(view, output))
    room = memoryview(output)
    at = filled = 0
    while at < len(view):
        if view[at : at + len(_MAGIC)] == _MAGIC:  # Streams may follow each other.
            at += len(_HEADER)
            if at > len(view):
                raise cramjam.DecompressionError("a snappy stream ends in its header")
            continue
        block = _block(view, at)
        at += _LENGTH.size + len(block)
        filled += cramjam.snappy.decompress_raw_into(block, room[filled:])
    return filled


def _block(view: memoryview, at: int) -> memoryview:
    import cramjam

    start = at + _LENGTH.size
    size = _LENGTH.unpack_from(view, at)[0] if start <= len(view) else -1
    if size < 0 or start + size > len(view):
        raise cramjam.DecompressionError("a snappy block reaches beyond its stream")
    return view[start : start + size]
