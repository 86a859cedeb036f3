import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.records.samples import LEGACY_CODECS, MIB, mutations, record_lists

from penstock.errors import CorruptRecord, ProtocolError, UnsupportedCompressionType
from penstock.records import lz4_frame
from penstock.records.compression import Codec, compress
from penstock.records.message_set import read_message_set, split_messages, write_message_set
from penstock.records.record import Record

PLAIN = [Record(3, 50, b"k", b"v"), Record(5, 40, None, b"w"), Record(6, 60, b"l", None)]


def message(
    *, offset: int = 0, magic: int = 1, attributes: int = 0, value: bytes | None, timestamp: int = 7
) -> bytes:
    """A message written out by hand, with no key."""
    body = struct.pack(">bb", magic, attributes)
    body += struct.pack(">q", timestamp) if magic else b""
    body += struct.pack(">i", -1)
    body += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def read(data: bytes) -> list[Record]:
    return list(read_message_set(data, bytes_max=MIB))


@settings(max_examples=60)
@given(
    record_lists(base_offset=9, with_headers=False),
    st.sampled_from((0, 1)),
    st.sampled_from(LEGACY_CODECS),
)
def test_records_come_back_as_they_went_in(records: list[Record], magic: int, codec: Codec) -> None:
    data = bytes(write_message_set(records, magic=magic, codec=codec))
    expected = records if magic else [record._replace(timestamp=-1) for record in records]
    assert read(data) == expected
    assert len(list(split_messages(data))) == (1 if codec else len(records))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_stands_at_its_last_offset_with_the_largest_timestamp(magic: int) -> None:
    data = write_message_set(PLAIN, magic=magic, codec=Codec.GZIP)
    (wrapper,) = split_messages(data)
    assert wrapper.offset == 6
    assert wrapper.codec is Codec.GZIP
    assert wrapper.timestamp == (60 if magic else -1)
    assert wrapper.key is None
    inner = zlib.decompress(wrapper.value or b"", 31)
    offsets = [message.offset for message in split_messages(inner)]
    assert offsets == ([0, 2, 3] if magic else [3, 5, 6])


def test_append_time_is_told_in_format_one_and_forgotten_in_format_zero() -> None:
    for codec in LEGACY_CODECS:
        data = write_message_set(PLAIN, magic=1, codec=codec, append_time_ms=999)
        assert {outer.append_time_ms for outer in split_messages(data)} == {999}
        assert {record.timestamp for record in read(data)} == {999}
    old = write_message_set(PLAIN, magic=0, append_time_ms=999)
    assert {(outer.attributes, outer.timestamp) for outer in split_messages(old)} == {(0, -1)}


def test_a_wrapper_with_append_time_overrides_what_is_inside() -> None:
    inner = message(value=b"a", timestamp=1) + message(offset=1, value=b"b", timestamp=2)
    packed = compress(Codec.GZIP, inner)
    outer = message(offset=11, attributes=Codec.GZIP | 8, value=packed, timestamp=500)
    assert read(outer) == [Record(10, 500, None, b"a"), Record(11, 500, None, b"b")]


def test_a_wrapper_at_offset_zero_leaves_the_inner_offsets_alone() -> None:
    inner = message(value=b"a") + message(offset=1, value=b"b")
    outer = message(attributes=Codec.GZIP, value=compress(Codec.GZIP, inner))
    assert [record.offset for record in read(outer)] == [0, 1]


@pytest.mark.parametrize(
    "outer",
    [
        message(attributes=1, value=None),
        message(attributes=1, value=b"not gzip"),
        message(attributes=1, value=compress(Codec.GZIP, b"")),
        message(attributes=1, value=compress(Codec.GZIP, b"too short")),
        message(attributes=1, value=compress(Codec.GZIP, message(magic=0, value=b""))),
        message(attributes=1, value=compress(Codec.GZIP, message(attributes=1, value=b""))),
        message(attributes=1, offset=3, value=compress(Codec.GZIP, message(offset=4, value=b""))),
        message(attributes=1, offset=-3, value=compress(Codec.GZIP, message(offset=-4, value=b""))),
        message(offset=-1, value=b""),
        message(magic=2, value=b""),
    ],
    ids=[
        "no value",
        "not compressed",
        "nothing inside",
        "rubbish inside",
        "other magic inside",
        "compressed twice",
        "wrapper before its inner offset",
        "negative inner offset",
        "negative offset",
        "magic 2",
    ],
)
def test_a_message_that_cannot_be_is_corrupt(outer: bytes) -> None:
    with pytest.raises(CorruptRecord):
        read(outer)


@pytest.mark.parametrize("number", [4, 5, 6, 7])
def test_old_formats_know_three_codecs(number: int) -> None:
    with pytest.raises(UnsupportedCompressionType):
        read(message(attributes=number, value=b"x"))


def test_zstd_cannot_be_written_in_old_formats() -> None:
    with pytest.raises(UnsupportedCompressionType):
        write_message_set(PLAIN, magic=1, codec=Codec.ZSTD)


def test_lz4_of_format_zero_has_the_checksum_of_its_time() -> None:
    (old,) = split_messages(write_message_set(PLAIN, magic=0, codec=Codec.LZ4))
    (new,) = split_messages(write_message_set(PLAIN, magic=1, codec=Codec.LZ4))
    assert old.value is not None
    assert new.value is not None
    assert lz4_frame.with_true_checksum(old.value) != old.value
    assert lz4_frame.with_true_checksum(new.value) == new.value


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", LEGACY_CODECS)
def test_a_change_of_any_byte_under_the_checksum_is_noticed(magic: int, codec: Codec) -> None:
    data = bytes(write_message_set(PLAIN[:1], magic=magic, codec=codec))
    for at in range(8, len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0x04
        with pytest.raises(CorruptRecord):
            read(bytes(damaged))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_set_cut_anywhere_is_corrupt(magic: int) -> None:
    data = bytes(write_message_set(PLAIN[:1], magic=magic))
    for size in range(1, len(data)):
        with pytest.raises(CorruptRecord):
            read(data[:size])


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", LEGACY_CODECS)
def test_damaged_messages_raise_nothing_but_protocol_errors(magic: int, codec: Codec) -> None:
    inner = bytes(write_message_set(PLAIN, magic=magic))
    for damaged in mutations(inner, count=300, seed=codec * 2 + magic):
        outer = message(
            offset=9, magic=magic, attributes=codec, value=compress(codec, bytes(damaged))
        )
        for data in (bytes(damaged), outer):
            try:
                read(data)
            except ProtocolError:
                continue


def test_fields_damaged_under_a_true_checksum_raise_only_what_clients_know() -> None:
    data = message(value=b"value")
    for at in range(17, len(data)):
        for byte in (0x00, 0x7F, 0xFF):
            body = bytearray(data[16:])
            body[at - 16] = byte
            sealed = data[:12] + struct.pack(">I", zlib.crc32(body)) + bytes(body)
            try:
                read(sealed)
            except (CorruptRecord, UnsupportedCompressionType):
                continue
