import struct
import subprocess
import sys
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.records.samples import MIB, mutations

from penstock.errors import CorruptRecord
from penstock.records.compression import Codec, compress, decompress

REAL_CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
TEXT = b'{"page": "/start", "user": 4711}\n' * 3000


def gzip_bomb() -> bytes:
    return compress(Codec.GZIP, bytes(MIB)) * 300  # Members may follow each other.


def snappy_bomb() -> bytes:
    stream = compress(Codec.SNAPPY, bytes(32 * 1024))
    return stream[:16] + stream[16:] * 9000


def snappy_claim() -> bytes:
    return b"\xff\xff\xff\xff\x0f" + bytes(20)  # A bare block that says it holds 4 GB.


def lz4_bomb() -> bytes:
    frame = compress(Codec.LZ4, bytes(64 * 1024))
    return frame[:7] + frame[7:-4] * 5000 + bytes(4)


def lz4_claim() -> bytes:
    import lz4.frame
    import xxhash

    frame = bytearray(lz4.frame.compress(bytes(100), store_size=True))
    struct.pack_into("<Q", frame, 6, 1 << 50)
    frame[14] = xxhash.xxh32(bytes(frame[4:14])).intdigest() >> 8 & 0xFF
    return bytes(frame)


def zstd_frame(*, claimed_bytes: int | None, window_log: int, blocks: int) -> bytes:
    """Blocks that repeat one byte 131,072 times, in four bytes each."""
    size = b"" if claimed_bytes is None else claimed_bytes.to_bytes(8, "little")
    descriptor = 0xC0 if size else 0x00
    frame = struct.pack("<IBB", 0xFD2FB528, descriptor, (window_log - 10) << 3) + size
    for at in range(blocks):
        is_last = at == blocks - 1
        frame += ((128 * 1024) << 3 | 1 << 1 | is_last).to_bytes(3, "little") + b"A"
    return frame


def zstd_bomb() -> bytes:
    return zstd_frame(claimed_bytes=None, window_log=17, blocks=3000)


def zstd_wide_bomb() -> bytes:
    return zstd_frame(claimed_bytes=None, window_log=27, blocks=3000)


def zstd_claim() -> bytes:
    return zstd_frame(claimed_bytes=1 << 60, window_log=17, blocks=3000)


BOMBS = {
    "gzip_bomb": Codec.GZIP,
    "snappy_bomb": Codec.SNAPPY,
    "snappy_claim": Codec.SNAPPY,
    "lz4_bomb": Codec.LZ4,
    "lz4_claim": Codec.LZ4,
    "zstd_bomb": Codec.ZSTD,
    "zstd_wide_bomb": Codec.ZSTD,
    "zstd_claim": Codec.ZSTD,
}


@settings(max_examples=40)
@given(st.sampled_from(Codec), st.binary(max_size=3000), st.integers(1, 60))
def test_data_comes_back_from_every_codec(codec: Codec, piece: bytes, times: int) -> None:
    data = piece * times
    assert decompress(codec, compress(codec, data), bytes_max=MIB) == data


@pytest.mark.parametrize("codec", Codec)
def test_memoryviews_and_bytearrays_are_taken_as_they_are(codec: Codec) -> None:
    packed = compress(codec, memoryview(bytearray(TEXT)))
    assert decompress(codec, memoryview(packed), bytes_max=MIB) == TEXT
    assert decompress(codec, bytearray(packed), bytes_max=MIB) == TEXT


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Codec.GZIP, (1, 9)), (Codec.LZ4, (1, 9, 12, 17)), (Codec.ZSTD, (-50, 1, 3, 22))],
)
def test_higher_levels_never_give_more_bytes(codec: Codec, levels: tuple[int, ...]) -> None:
    text = b"".join(b'{"user": %d, "page": %d}' % (i * 7919, i % 37) for i in range(4000))
    fast, *_, small = (compress(codec, text, level=level) for level in levels)
    assert len(small) < len(fast)
    assert decompress(codec, fast) == decompress(codec, small) == text


def test_kafkas_default_level_is_taken_when_none_is_given() -> None:
    assert compress(Codec.ZSTD, TEXT) == compress(Codec.ZSTD, TEXT, level=3)
    assert compress(Codec.LZ4, TEXT) == compress(Codec.LZ4, TEXT, level=9)
    assert compress(Codec.GZIP, TEXT) == compress(Codec.GZIP, TEXT, level=-1)


@pytest.mark.parametrize("codec", REAL_CODECS)
@pytest.mark.parametrize("size", [1, 1000, 70_000, 300_000])
def test_the_bound_is_exact(codec: Codec, size: int) -> None:
    packed = compress(codec, bytes(size))
    assert decompress(codec, packed, bytes_max=size) == bytes(size)
    with pytest.raises(CorruptRecord, match=f"more than {size - 1} bytes"):
        decompress(codec, packed, bytes_max=size - 1)


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_data_cut_anywhere_is_corrupt(codec: Codec) -> None:
    packed = compress(codec, TEXT[:200])
    for size in range(len(packed)):
        if codec is Codec.SNAPPY and size == 16:
            continue  # The header alone is a whole stream of no blocks.
        with pytest.raises(CorruptRecord):
            decompress(codec, packed[:size], bytes_max=MIB)


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_damaged_data_is_corrupt_or_stays_within_the_bound(codec: Codec) -> None:
    for damaged in mutations(compress(codec, TEXT[:3000]), count=800, seed=codec):
        try:
            assert len(decompress(codec, damaged, bytes_max=50_000)) <= 50_000
        except CorruptRecord:
            continue


def test_gzip_members_in_a_row_are_one_stream() -> None:
    halves = compress(Codec.GZIP, TEXT[:50]) + compress(Codec.GZIP, TEXT[50:])
    assert decompress(Codec.GZIP, halves) == TEXT


def test_gzip_is_what_zlib_reads() -> None:
    assert zlib.decompress(compress(Codec.GZIP, TEXT), 31) == TEXT


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused(bomb: str) -> None:
    with pytest.raises(CorruptRecord):
        decompress(BOMBS[bomb], globals()[bomb](), bytes_max=4 * MIB)


def test_bombs_cost_no_more_memory_than_the_bound() -> None:
    """In a process of its own, whose peak memory shows what the libraries took as well."""
    script = f"""
import resource, sys
sys.path[:0] = {sys.path!r}
from tests.unit.records.test_compression import BOMBS, CorruptRecord, decompress
bombs = [(codec, globals_()) for name, codec in BOMBS.items()
         for globals_ in [getattr(sys.modules["tests.unit.records.test_compression"], name)]]
before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for codec, data in bombs:
    try:
        decompress(codec, data, bytes_max=8 * 1024 * 1024)
        print("read", codec)
    except CorruptRecord:
        pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    grown_kb = int(done.stdout)
    # The output, and the window that zstd keeps of it while it works.
    assert grown_kb < 24 * 1024
