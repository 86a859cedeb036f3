import struct

import pytest

from penstock.errors import CorruptRecord
from penstock.records.compression import Codec, compress, decompress

TEXT = b"".join(b"line %d of many\n" % i for i in range(8000))
HEADER = b"\x82SNAPPY\0" + bytes((0, 0, 0, 1, 0, 0, 0, 1))


def bare(data: bytes) -> bytes:
    import snappy

    return bytes(snappy.compress(data))


def test_snappy_is_written_in_the_frame_of_javas_library() -> None:
    packed = compress(Codec.SNAPPY, TEXT)
    assert packed.startswith(HEADER)
    (first_bytes,) = struct.unpack_from(">i", packed, 16)
    import snappy

    assert snappy.decompress(packed[20 : 20 + first_bytes]) == TEXT[: 32 * 1024]


def test_a_bare_block_is_read_too() -> None:
    assert decompress(Codec.SNAPPY, bare(TEXT)) == TEXT


def test_frames_in_a_row_are_one_stream() -> None:
    two = compress(Codec.SNAPPY, TEXT[:5]) + compress(Codec.SNAPPY, TEXT[5:])
    assert decompress(Codec.SNAPPY, two) == TEXT


def test_versions_in_the_wrong_byte_order_do_not_matter() -> None:
    block = bare(TEXT)
    packed = HEADER[:8] + bytes((1, 0, 0, 0, 1, 0, 0, 0)) + struct.pack(">i", len(block)) + block
    assert decompress(Codec.SNAPPY, packed) == TEXT


@pytest.mark.parametrize("size", [-1, -(1 << 31), 1 << 30])
def test_a_block_size_that_cannot_be_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptRecord, match="beyond its stream"):
        decompress(Codec.SNAPPY, HEADER + struct.pack(">i", size) + bare(TEXT))
