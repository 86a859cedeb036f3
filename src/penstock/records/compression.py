"""The four compressions of Kafka, written as Kafka writes them and read with a bound.

A few kilobytes can decompress to gigabytes, so reading never trusts a size that the data claims:
the output goes into memory of a fixed size, and data that does not fit is refused. The frames
around snappy and lz4 are in `xerial` and `lz4_frame`; cramjam is loaded when first needed,
because a broker that only passes batches on never does.
"""

import mmap
from collections.abc import Callable
from enum import IntEnum

from penstock.errors import CorruptRecord
from penstock.records import Bytes, lz4_frame, xerial

# No client can send a larger batch uncompressed: it is the default socket.request.max.bytes.
DECOMPRESSED_BYTES_MAX = 100 * 1024 * 1024

_ZSTD_LEVEL = 3
_ZLIB_LEVEL = -1
_GZIP_WINDOW_BITS = 31
_SMALL_RATIO = 8
_SMALL_BYTES = 4 * 1024 * 1024


class Codec(IntEnum):
    """The number in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, data: Bytes, level: int | None = None) -> bytes:
    """The data in one frame of the codec; no level means Kafka's default one."""
    if codec is Codec.NONE:
        return bytes(data)
    if codec is Codec.GZIP:
        return _gzip(data, level)
    if codec is Codec.SNAPPY:
        return xerial.compress(data)
    if codec is Codec.LZ4:
        return lz4_frame.compress(data, level)
    import cramjam

    return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL if level is None else level))


def _gzip(data: Bytes, level: int | None) -> bytes:
    import zlib  # Twice as fast as cramjam's at the default level.

    stream = zlib.compressobj(
        _ZLIB_LEVEL if level is None else level, zlib.DEFLATED, _GZIP_WINDOW_BITS
    )
    return stream.compress(data) + stream.flush()


def decompress(codec: Codec, data: Bytes, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Bytes:
    """The data as it was before; CorruptRecord when it is damaged or larger than `bytes_max`."""
    if codec is Codec.NONE:
        return data
    import cramjam

    into = _decompressor(codec)
    room = len(data) * _SMALL_RATIO + 1024
    if room < min(bytes_max, _SMALL_BYTES):
        try:
            small = bytearray(room)
            return bytes(memoryview(small)[: into(data, small)])
        except cramjam.DecompressionError:
            pass  # Damaged, or an unusual ratio: the large buffer tells which.
    # Fresh pages take memory only once written, so this costs what comes out, not the bound.
    large = mmap.mmap(-1, max(bytes_max, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    view = memoryview(large)
    try:
        # Not copied: a copy of so much would keep other threads waiting, unlike the codecs.
        return view[: into(data, view[:bytes_max])]
    except cramjam.DecompressionError as error:
        raise CorruptRecord(
            f"{len(data)} bytes of {codec.name.lower()} are damaged or hold more than "
            f"{bytes_max} bytes: {error}"
        ) from None


def _decompressor(codec: Codec) -> Callable[[Bytes, bytearray | memoryview], int]:
    import cramjam

    if codec is Codec.GZIP:
        return cramjam.gzip.decompress_into
    if codec is Codec.SNAPPY:
        return xerial.decompress_into
    if codec is Codec.LZ4:
        return cramjam.lz4.decompress_into
    return cramjam.zstd.decompress_into
