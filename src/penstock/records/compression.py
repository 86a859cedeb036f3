"""The four compressions of Kafka, read with a bound and written as Kafka writes them."""

from enum import IntEnum

from penstock.errors import CorruptRecord

DECOMPRESSED_BYTES_MAX = 100 * 1024 * 1024


class Codec(IntEnum):
    """The number in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, data: bytes, level: int | None = None) -> bytes:
    if codec is Codec.NONE:
        return data
    raise NotImplementedError


def decompress(codec: Codec, data: bytes | memoryview, *, bytes_max: int) -> bytes | memoryview:
    if codec is Codec.NONE:
        if len(data) > bytes_max:
            raise CorruptRecord("")
        return data
    raise NotImplementedError
