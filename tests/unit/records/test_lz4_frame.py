import random

import lz4.frame
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CorruptRecord
from penstock.records import lz4_frame
from penstock.records.compression import Codec, decompress

TEXT = b"".join(b"line %d of many\n" % i for i in range(8000))


@given(st.binary(max_size=15))
def test_the_short_hash_is_xxhash(data: bytes) -> None:
    assert lz4_frame.xxh32_short(data) == xxhash.xxh32(data).intdigest()


def test_the_short_hash_says_when_data_is_too_long() -> None:
    with pytest.raises(ValueError, match="sixteen"):
        lz4_frame.xxh32_short(bytes(16))


def test_the_frame_has_kafkas_header() -> None:
    info = lz4.frame.get_frame_info(lz4_frame.compress(TEXT))
    assert not info["block_linked"]
    assert info["block_size"] == 64 * 1024
    assert not info["content_checksum"]
    assert info["content_size"] == 0
    assert lz4_frame.compress(TEXT)[:7].hex() == "04224d18604082"


@pytest.mark.parametrize("level", [None, 1, 8, 17])
def test_other_implementations_read_the_frame(level: int | None) -> None:
    assert lz4.frame.decompress(lz4_frame.compress(TEXT, level)) == TEXT


def test_what_does_not_shrink_is_stored() -> None:
    noise = random.Random(4).randbytes(70_000)
    frame = lz4_frame.compress(noise)
    assert len(frame) == 7 + 4 + 65_536 + 4 + (70_000 - 65_536) + 4
    assert lz4.frame.decompress(frame) == noise


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("sized", [True, False])
def test_frames_of_other_writers_are_read(linked: bool, sized: bool) -> None:
    frame = lz4.frame.compress(
        TEXT, block_linked=linked, store_size=sized, content_checksum=True, block_checksum=True
    )
    assert decompress(Codec.LZ4, frame) == TEXT


def test_the_old_checksum_counts_the_magic_bytes_too() -> None:
    frame = lz4_frame.with_old_checksum(lz4_frame.compress(TEXT))
    assert frame[6] == xxhash.xxh32(frame[:6]).intdigest() >> 8 & 0xFF
    with pytest.raises(CorruptRecord):
        decompress(Codec.LZ4, frame)
    assert lz4_frame.with_true_checksum(frame) == lz4_frame.compress(TEXT)


@pytest.mark.parametrize("sized", [True, False])
def test_a_header_of_any_length_gets_its_true_checksum(sized: bool) -> None:
    frame = lz4.frame.compress(TEXT, store_size=sized)
    at = 14 if sized else 6
    broken = frame[:at] + bytes((frame[at] ^ 0x55,)) + frame[at + 1 :]
    assert lz4_frame.with_true_checksum(broken) == frame


@pytest.mark.parametrize("data", [b"", b"\x04\x22", b"\x04\x22\x4d\x18", b"no frame at all"])
def test_what_is_no_frame_stays_as_it_is(data: bytes) -> None:
    assert lz4_frame.with_true_checksum(data) == data


def test_a_frame_that_ends_in_its_header_is_corrupt() -> None:
    for size in range(7):
        with pytest.raises(CorruptRecord):
            decompress(Codec.LZ4, lz4_frame.with_true_checksum(lz4_frame.compress(TEXT)[:size]))
